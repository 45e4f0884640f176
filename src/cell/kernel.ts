import { release } from 'node:os'

/** Whether the running one is at least this. */
export function isKernel(major: number, minor: number): boolean {
  const [runs = 0, runsMinor = 0] = release().split('.').map(Number)
  return runs > major || (runs === major && runsMinor >= minor)
}
