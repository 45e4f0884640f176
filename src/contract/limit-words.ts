/** The names of limits and what they are where nobody states them. Without schemas, as the words of specs are. */

const MiB = 2 ** 20

export const limitNames = [
  'memory',
  'cpus',
  'cpuTime',
  'time',
  'disk',
  'inodes',
  'fileSize',
  'openFiles',
  'processes',
  'readRate',
  'writeRate',
  'output',
] as const
export type LimitName = (typeof limitNames)[number]

/** Every limit in base units, and the names of those the user stated. Undefined: not limited by itself, because nobody asked for it. */
export interface Limits {
  readonly memoryBytes: number
  readonly cpus: number
  readonly cpuTimeMs: number | undefined
  readonly timeMs: number
  readonly diskBytes: number
  readonly inodes: number
  readonly fileSizeBytes: number
  readonly openFiles: number
  readonly processes: number
  readonly readBytesPerSecond: number | undefined
  readonly writeBytesPerSecond: number | undefined
  readonly outputBytes: number
  readonly stated: readonly LimitName[]
}

/** `inodes` and `fileSize` follow the disk when they are not stated. */
export const defaultLimits: Omit<Limits, 'stated' | 'inodes' | 'fileSizeBytes'> = {
  memoryBytes: 512 * MiB,
  cpus: 0.5,
  cpuTimeMs: undefined,
  timeMs: 60_000,
  diskBytes: 100 * MiB,
  openFiles: 4096,
  processes: 64,
  readBytesPerSecond: undefined,
  writeBytesPerSecond: undefined,
  outputBytes: 10 * MiB,
}
