import * as z from 'zod'
import { deferred } from './deferred.js'
import type { CallOptions } from './platform.js'
import { durationSchema } from './quantities.js'
import type { Outcome } from './run.js'
import { envSchema, labelSchema, pathSchema } from './spec.js'

export const languages = ['python', 'javascript', 'typescript', 'bash'] as const
export type Language = (typeof languages)[number]

/** `javascript` and `typescript` are spoken by the same contexts. */
export const languageSchema = z.enum(languages)

export const mostSourceBytes = 16 * 2 ** 20

const sourceSchema = z.string().refine((source) => Buffer.byteLength(source) <= mostSourceBytes, `must have at most ${mostSourceBytes} bytes`)

export const contextIdSchema = z.string().regex(/^[a-z0-9]{20}$/, 'must be a context id: 20 lower-case letters and digits')

export const contextRequestSchema = deferred(() =>
  z.strictObject({
    language: languageSchema.default('python'),
    /** Where it begins; the sandbox's cwd when not given. */
    cwd: pathSchema.optional(),
    env: envSchema.default({}),
    name: labelSchema.optional(),
  }),
)

export type ContextRequest = z.input<typeof contextRequestSchema>

export const codeRequestSchema = deferred(() =>
  z.strictObject({
    code: sourceSchema,
    /** That of the context when one is named, else python. */
    language: languageSchema.optional(),
    /** The default context of the language when not given, which is made at its first use. */
    context: contextIdSchema.optional(),
    /** For this execution only. */
    env: envSchema.default({}),
    /** Wall time from its turn on; `limits.time` of the sandbox when not given, and never more. */
    timeout: durationSchema({ min: 1, max: 7 * 86_400_000, example: '60s' }).optional(),
    /** Whether code that reads a line of input asks for it (an `ask` event), or is refused. */
    input: z.boolean().default(false),
    /** Whether files of the workspace are looked over before and after. */
    artifacts: z.boolean().default(true),
  }),
)

export type CodeRequest = z.input<typeof codeRequestSchema>

export type ContextState = 'idle' | 'busy' | 'ended'

export interface ContextInfo {
  readonly id: string
  readonly language: Language
  readonly name?: string
  /** Of the interpreter. */
  readonly version: string
  readonly cwd: string
  readonly pid: number
  readonly state: ContextState
  /** Whether it is what code without a context runs in. */
  readonly isDefault: boolean
  readonly executions: number
  /** Executions that wait for their turn. */
  readonly queued: number
  readonly createdAt: string
  /** How often its interpreter was started anew, by `restart` or because it had ended. */
  readonly restarts: number
  /** Bytes that its code printed while no execution ran: they belong to none, and are dropped. */
  readonly droppedBytes: number
  /** How its interpreter ended, where it has: the next execution starts it anew, without its memory. */
  readonly ended?: Outcome
}

/** A value as MIME types and what it is in each: text, base64 of png, jpeg and pdf, JSON of types that end in json. */
export interface CodeResult {
  /** The value of the last expression, rather than something displayed on the way. */
  readonly isMain: boolean
  readonly data: Readonly<Record<string, unknown>>
  /** Types that were shortened or left out, because a result has a bound. */
  readonly cut: readonly string[]
}

export type ColumnType = 'integer' | 'number' | 'boolean' | 'string' | 'datetime' | 'duration' | 'category' | 'other'

export interface TableColumn {
  readonly name: string
  readonly type: ColumnType
  /** Of the rows that are told; dates as ISO 8601, null where there is none. */
  readonly values: readonly unknown[]
}

/** A table's columns, as `application/vnd.glovebox.table+json` has them. */
export interface Table {
  readonly columns: readonly TableColumn[]
  /** All that there are, of which at most 1,000 are told. */
  readonly rows: number
  readonly index?: TableColumn
}

export interface CodeError {
  readonly name: string
  readonly value: string
  /** The user's own frames. */
  readonly traceback: string
  /** With the frames of libraries and of the interpreter. */
  readonly fullTraceback: string
  readonly line?: number
  readonly column?: number
}

/** A file below the workspace that was there or different after the execution. */
export interface Artifact {
  readonly path: string
  readonly change: 'created' | 'changed'
  readonly size: number
  /** By its name, and by its first bytes where the name says nothing. */
  readonly mime: string
  /** SHA-256, hexadecimal. */
  readonly hash: string
}

export type CodeEvent =
  | { readonly type: 'stdout' | 'stderr'; readonly bytes: Uint8Array }
  | { readonly type: 'result'; readonly result: CodeResult }
  | { readonly type: 'ask'; readonly prompt: string; readonly isSecret: boolean }

/** `crashed`: its interpreter ended under it, and with it the context's memory. */
export type CodeStatus = 'ok' | 'error' | 'exit' | 'interrupted' | 'timed-out' | 'crashed'

export interface CodeEnding {
  readonly status: CodeStatus
  readonly context: string
  readonly language: Language
  /** The context's executions from 1; 0 when it did not begin. */
  readonly number: number
  /** Of `exit`, and of a shell's last command. */
  readonly code?: number
  /** Of `error`; of `interrupted` and `timed-out` where the code was in the middle of something. */
  readonly error?: CodeError
  /** Of `crashed`: how the interpreter ended. */
  readonly outcome?: Outcome
  /** Whether the context still has its memory. */
  readonly isStateKept: boolean
  readonly wallMs: number
  readonly artifacts: readonly Artifact[]
  /** Why artifacts are not, or not all, told. */
  readonly artifactsMissing?: string
  /** Results that were not passed on: there were more than 10,000, or it was killed while nobody read them. */
  readonly resultsDropped?: number
  /** Bytes of output that were not passed on: it was killed while nobody read them. */
  readonly outputDropped?: number
}

/** One execution, from its place in the context's queue on. */
export interface PlatformExecution {
  /** One consumer; leaving it early interrupts. Not reading holds the code back. */
  readonly events: AsyncIterable<CodeEvent>
  /** To an `ask`: a line, or null for the end of input. 'conflict' when nothing was asked. */
  answer(line: string | null): Promise<void>
  /** Interrupts, and kills after a grace; quiet when it is over. Resolves when the execution is. */
  interrupt(): Promise<void>
  /** Settles when the events have ended. Rejects only when the sandbox fails. */
  readonly ended: Promise<CodeEnding>
}

export interface PlatformCode {
  /** Which languages there are, each with why not where its interpreter is not in the template. */
  languages(
    id: string,
    options?: CallOptions,
  ): Promise<Readonly<Record<Language, { readonly available: true; readonly version: string } | { readonly available: false; readonly why: string }>>>
  execute(id: string, request: CodeRequest, options?: CallOptions): Promise<PlatformExecution>
  createContext(id: string, request?: ContextRequest, options?: CallOptions): Promise<ContextInfo>
  listContexts(id: string, options?: CallOptions): Promise<readonly ContextInfo[]>
  /** A new interpreter without the old one's memory; what runs and waits in it ends as `crashed`. */
  restartContext(id: string, context: string, options?: CallOptions): Promise<ContextInfo>
  /** False when there was none. */
  removeContext(id: string, context: string, options?: CallOptions): Promise<boolean>
}
