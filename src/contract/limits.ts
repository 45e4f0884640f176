import * as z from 'zod'
import type { LimitName } from './limit-words.js'
import { bytesSchema, durationSchema } from './quantities.js'

export type { LimitName, Limits } from './limit-words.js'

const MiB = 2 ** 20

/** Limits as users write them. What is not stated takes `defaultLimits`; what is stated is strict. */
export const limitsSchema = z.strictObject({
  /** With swap, and with all that is written to the cell's disk. */
  memory: bytesSchema({ min: 4 * MiB, max: 2 ** 44, example: '512m' }).optional(),
  cpus: z.number().min(0.01).max(4096).optional(),
  /** Processor time of one run, user and system together, of all its processes. */
  cpuTime: durationSchema({ min: 1, max: 7 * 86_400_000, example: '10s' }).optional(),
  /** Wall time of one run. */
  time: durationSchema({ min: 1, max: 7 * 86_400_000, example: '60s' }).optional(),
  /** All that is writable in the cell together. */
  disk: bytesSchema({ min: 64 * 1024, max: 2 ** 44, example: '100m' }).optional(),
  /** Files, folders and links on that disk together. */
  inodes: z
    .int()
    .min(64)
    .max(2 ** 32)
    .optional(),
  /** The size that one file may have. */
  fileSize: bytesSchema({ min: 0, max: 2 ** 44, example: '50m' }).optional(),
  /** Descriptors that one process may have open. */
  openFiles: z
    .int()
    .min(16)
    .max(2 ** 20)
    .optional(),
  /** Threads count as processes. */
  processes: z.int().min(1).max(100_000).optional(),
  /** Bytes per second from block devices. */
  readRate: bytesSchema({ min: 4096, max: 2 ** 44, example: '10m' }).optional(),
  /** Bytes per second to block devices. */
  writeRate: bytesSchema({ min: 4096, max: 2 ** 44, example: '10m' }).optional(),
  /** What one run may print, stdout and stderr together. Stated or capped, it holds every run; the default only those that are captured. Background processes have none. */
  output: bytesSchema({ min: 0, max: 2 ** 30, example: '10m' }).optional(),
} satisfies Record<LimitName, z.ZodType>)

export type LimitsInput = z.input<typeof limitsSchema>

/** What a single run may be held to below its sandbox's own limits. Time and output have fields of their own in a run's request. */
export const runLimitsSchema = limitsSchema.pick({ memory: true, cpuTime: true, processes: true, fileSize: true, openFiles: true })

export type RunLimitsInput = z.input<typeof runLimitsSchema>
