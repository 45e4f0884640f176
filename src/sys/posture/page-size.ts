import { readFileSync } from 'node:fs'

const pageSizeTag = 6n
const usual = 4096

/** Bytes of a page of memory, as the kernel told this process when it started: limits of memory and of memory file systems are whole pages. */
export function pageBytes(): number {
  const vector = readFileSync('/proc/self/auxv')
  for (let at = 0; at + 16 <= vector.length; at += 16) if (vector.readBigUInt64LE(at) === pageSizeTag) return Number(vector.readBigUInt64LE(at + 8))
  return usual
}
