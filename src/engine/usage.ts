import type { Usage } from '../contract/run.js'

export const nothingUsed: Usage = {
  wallMs: 0,
  cpuUserMs: 0,
  cpuSystemMs: 0,
  memoryPeakBytes: 0,
  processesPeak: null,
  readBytes: 0,
  writtenBytes: 0,
  outputBytes: 0,
  hits: { memory: null, processes: null },
}

/** Times are kept to the microsecond: no clock here knows more, and what follows is the noise of a division. */
export function toMicroseconds(usage: Usage): Usage {
  const { wallMs, cpuUserMs, cpuSystemMs, ...rest } = usage
  return { wallMs: rounded(wallMs), cpuUserMs: rounded(cpuUserMs), cpuSystemMs: rounded(cpuSystemMs), ...rest }
}

function rounded(milliseconds: number): number {
  return Math.round(milliseconds * 1000) / 1000
}
