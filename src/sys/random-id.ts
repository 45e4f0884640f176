import { randomBytes } from 'node:crypto'

const letters = 'abcdefghijklmnopqrstuvwxyz0123456789'

/** 20 lower-case letters and digits: over 100 bits, and a DNS label. */
export function randomId(): string {
  // 252 is the largest multiple of 36 in a byte; what lies above would favour some letters.
  const picks: string[] = []
  while (picks.length < 20) {
    for (const byte of randomBytes(32)) {
      if (byte < 252 && picks.length < 20) picks.push(letters[byte % 36] as string)
    }
  }
  return picks.join('')
}
