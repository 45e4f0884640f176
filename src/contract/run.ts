import * as z from 'zod'
import { runLimitsSchema } from './limits.js'
import { bytesSchema, durationSchema } from './quantities.js'
import { envSchema, labelSchema, pathSchema, textSchema } from './spec.js'
import { userNames } from './spec-words.js'

/** A string is given to the cell's shell; an array is executed as it is. */
export const commandSchema = z.union([textSchema.min(1, 'must not be empty'), z.array(textSchema).min(1, 'must name a program')], {
  error: 'must be a string for the shell, or a non-empty array of strings',
})

export type Command = z.input<typeof commandSchema>

export const onOutputLimit = ['kill', 'truncate'] as const

const edgeSchema = z.int().min(1).max(4096)

/** In characters. */
export const terminalSizeSchema = z.strictObject({ cols: edgeSchema, rows: edgeSchema })

export type TerminalSize = Readonly<z.output<typeof terminalSizeSchema>>

/** What one run needs; the sandbox's spec fills in the rest. */
export const runRequestSchema = z.strictObject({
  command: commandSchema.refine((command) => typeof command === 'string' || command[0] !== '', 'the program name must not be empty'),
  cwd: pathSchema.optional(),
  env: envSchema.default({}),
  user: z.enum(userNames).optional(),
  /** Whether stdin will be fed; otherwise the program reads an end of file. */
  stdin: z.boolean().default(false),
  /** A process to be kept rather than a run: bounded by the sandbox's lifetime and its own `timeout`, not by `limits.time`. */
  background: z.boolean().default(false),
  /** A name for a process that is kept, which no other that runs in its sandbox may have. */
  tag: labelSchema.optional(),
  /** Its stdin, stdout and stderr are one terminal of this size, which is its controlling one. Bounded in time as a kept process is; needs `stdin`. */
  terminal: terminalSizeSchema.optional(),
  /** Wall time; may lower the sandbox's `limits.time`, never raise it. */
  timeout: durationSchema({ min: 1, max: 7 * 86_400_000, example: '60s' }).optional(),
  /** May lower the sandbox's limits for this run, never raise them. */
  limits: runLimitsSchema.default({}),
  /**
   * Set for a captured run: stdout and stderr together are kept up to this many bytes. A streamed run has back-pressure instead, and is killed at
   * `limits.output` when its sandbox states that or a policy caps it.
   */
  output: z
    .strictObject({ limit: bytesSchema({ min: 0, max: 2 ** 30, example: '10m' }).optional(), onLimit: z.enum(onOutputLimit).default('kill') })
    .optional(),
})

export type RunRequest = z.input<typeof runRequestSchema>

/** `SIGTERM`, or `SIG40` for a real-time signal. */
export type SignalName = `SIG${string}`

/** How a program ended. A value, never an exception. */
export type Outcome =
  | { readonly kind: 'exited'; readonly code: number }
  | { readonly kind: 'signaled'; readonly signal: string }
  | { readonly kind: 'timed-out'; readonly by: 'wall' | 'cpu'; readonly limitMs: number }
  | { readonly kind: 'out-of-memory'; readonly limitBytes: number }
  | { readonly kind: 'output-limit'; readonly limitBytes: number }
  | { readonly kind: 'killed'; readonly reason: string }
  | { readonly kind: 'not-started'; readonly code: 126 | 127; readonly reason: string }

/** What a run used, with all its processes as far as the cell can count them; `null` where nothing counts it. */
export interface Usage {
  readonly wallMs: number
  readonly cpuUserMs: number
  readonly cpuSystemMs: number
  readonly memoryPeakBytes: number
  /** Processes and threads at once. Where forks were refused by the sandbox's own limit it may be one too high: the kernel notes the try. */
  readonly processesPeak: number | null
  /** From and to storage; what stays in memory is not counted. */
  readonly readBytes: number
  readonly writtenBytes: number
  /** stdout and stderr together, as printed, kept or not. */
  readonly outputBytes: number
  readonly hits: LimitHits
}

/** How often a limit was met that leaves the program running: `null` where nothing counts it. */
export interface LimitHits {
  /** Processes killed for want of memory. */
  readonly memory: number | null
  /** Forks refused at the limit of processes. */
  readonly processes: number | null
}

export interface Ending {
  readonly outcome: Outcome
  readonly usage: Usage
  /** True when output was dropped at the limit. */
  readonly truncated: boolean
}

export interface OutputEvent {
  readonly type: 'stdout' | 'stderr'
  readonly bytes: Uint8Array
  /** How many bytes of this stream the reader missed just before these, which may be none; only a reader of a kept process can. */
  readonly dropped?: number
}
