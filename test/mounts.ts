import { readFileSync } from 'node:fs'

/** Every mount that this process sees, one line each, but for the small disks that other tests make in folders of their own at the same time. */
export function mountsButThoseOfTests(): string[] {
  const lines = readFileSync('/proc/self/mountinfo', 'latin1').split('\n').filter(Boolean)
  return lines.filter((line) => !/\/(gbx|file-worker)-[^/]*\//.test(line.split(' ')[4] ?? ''))
}
