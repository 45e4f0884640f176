import { readFileSync } from 'node:fs'

/** Whether something is mounted there by another test, which makes small disks in folders of its own at the same time. */
export function isOfATest(mountPoint: string): boolean {
  return /\/(gbx|file-worker)-[^/]*\//.test(mountPoint)
}

/** Every mount that this process sees, one line each, but for those of other tests. */
export function mountsButThoseOfTests(): string[] {
  const lines = readFileSync('/proc/self/mountinfo', 'latin1').split('\n').filter(Boolean)
  return lines.filter((line) => !isOfATest(line.split(' ')[4] ?? ''))
}
