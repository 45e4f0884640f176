import type { Usage } from '../contract/run.js'

/** Times are kept to the microsecond: no clock here knows more, and what follows is the noise of a division. */
export function toMicroseconds(usage: Usage): Usage {
  const { wallMs, cpuUserMs, cpuSystemMs, ...rest } = usage
  return { wallMs: rounded(wallMs), cpuUserMs: rounded(cpuUserMs), cpuSystemMs: rounded(cpuSystemMs), ...rest }
}

function rounded(milliseconds: number): number {
  return Math.round(milliseconds * 1000) / 1000
}
