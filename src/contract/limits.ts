import { z } from 'zod'
import { bytesSchema, durationSchema } from './quantities.js'

const MiB = 2 ** 20

/** Limits as users write them. What is not stated takes `defaultLimits`; what is stated is strict. */
export const limitsSchema = z.strictObject({
  memory: bytesSchema({ min: 4 * MiB, max: 2 ** 44, example: '512m' }).optional(),
  cpus: z.number().min(0.01).max(4096).optional(),
  /** Wall time of one run. */
  time: durationSchema({ min: 1, max: 7 * 86_400_000, example: '60s' }).optional(),
  /** All that is writable in the cell together. */
  disk: bytesSchema({ min: 64 * 1024, max: 2 ** 44, example: '100m' }).optional(),
  processes: z.int().min(1).max(100_000).optional(),
  /** What one captured run may print, stdout and stderr together. */
  output: bytesSchema({ min: 0, max: 2 ** 30, example: '10m' }).optional(),
})

export type LimitsInput = z.input<typeof limitsSchema>
export type LimitName = keyof z.output<typeof limitsSchema>

/** Every limit with a value, in base units, and the names of those the user stated. */
export interface Limits {
  readonly memoryBytes: number
  readonly cpus: number
  readonly timeMs: number
  readonly diskBytes: number
  readonly processes: number
  readonly outputBytes: number
  readonly stated: readonly LimitName[]
}

export const defaultLimits: Omit<Limits, 'stated'> = {
  memoryBytes: 512 * MiB,
  cpus: 0.5,
  timeMs: 60_000,
  diskBytes: 100 * MiB,
  processes: 64,
  outputBytes: 10 * MiB,
}
