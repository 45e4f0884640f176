import type { WardenExit } from '../channel/index.js'
import type { RunCounts } from '../contract/driver.js'
import type { LimitHits, Usage } from '../contract/run.js'

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

export interface RunFacts {
  /** By the warden's wait: of what was reaped when the program ended. */
  readonly exit: WardenExit
  /** By whoever counts the run as a whole, where someone does. */
  readonly counts: RunCounts
  readonly wallMs: number
  readonly outputBytes: number
  /** What something holds its memory to; undefined where nothing does. */
  readonly memoryLimitBytes?: number | undefined
}

/** What a run used: as a whole where it is counted so, otherwise what its program waited for. */
export function usageOf({ exit, counts, wallMs, outputBytes, memoryLimitBytes = Number.POSITIVE_INFINITY }: RunFacts): Usage {
  const { readBytes, writtenBytes } = exit
  return toMicroseconds({
    wallMs,
    ...processorTimes(exit, counts.cpuMs),
    // The kernel notes what a group asked for before the group above it refuses, so a peak may be told that never was.
    memoryPeakBytes: counts.memoryPeakBytes === undefined ? exit.memoryPeakBytes : Math.min(counts.memoryPeakBytes, memoryLimitBytes),
    processesPeak: counts.processesPeak ?? null,
    readBytes,
    writtenBytes,
    outputBytes,
    hits: hitsOf(counts),
  })
}

/** Without what was used before the program began. */
export function countsSince(counts: RunCounts, spentMs = 0): RunCounts {
  return counts.cpuMs === undefined ? counts : { ...counts, cpuMs: Math.max(0, counts.cpuMs - spentMs) }
}

export function exitSince(exit: WardenExit, spentMs = 0): WardenExit {
  const { cpuUserMs, cpuSystemMs } = exit
  const usedMs = cpuUserMs + cpuSystemMs
  const share = usedMs === 0 ? 0 : Math.max(0, usedMs - spentMs) / usedMs
  return { ...exit, cpuUserMs: cpuUserMs * share, cpuSystemMs: cpuSystemMs * share }
}

export function hitsOf({ hits }: Pick<RunCounts, 'hits'>): LimitHits {
  return { memory: hits.memory ?? null, processes: hits.processes ?? null }
}

/** A group knows only the total; how it divides is told by what was waited for. */
function processorTimes({ cpuUserMs, cpuSystemMs }: WardenExit, totalMs: number | undefined): Pick<Usage, 'cpuUserMs' | 'cpuSystemMs'> {
  if (totalMs === undefined) return { cpuUserMs, cpuSystemMs }
  const known = cpuUserMs + cpuSystemMs
  const userMs = known === 0 ? totalMs : totalMs * (cpuUserMs / known)
  return { cpuUserMs: userMs, cpuSystemMs: totalMs - userMs }
}

/** Times are kept to the microsecond: no clock here knows more, and what follows is the noise of a division. */
export function toMicroseconds(usage: Usage): Usage {
  const { wallMs, cpuUserMs, cpuSystemMs, ...rest } = usage
  return { wallMs: rounded(wallMs), cpuUserMs: rounded(cpuUserMs), cpuSystemMs: rounded(cpuSystemMs), ...rest }
}

export function rounded(milliseconds: number): number {
  return Math.round(milliseconds * 1000) / 1000
}
