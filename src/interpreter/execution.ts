import { randomBytes } from 'node:crypto'
import type { Artifact, CodeEnding, Language, PlatformExecution } from '../contract/code.js'
import { SandboxError } from '../contract/errors.js'
import { EventQueue } from './event-queue.js'
import { mostPayloadBytes } from './frames.js'
import type { Kernel } from './kernel.js'

/** What was left in the workspace, told by comparing it before and after. */
export interface ArtifactWatch {
  /** Never throws. */
  begin(): Promise<{ end(): Promise<Pick<CodeEnding, 'artifacts' | 'artifactsMissing'>> }>
}

/** One execution as it was asked for, checked. */
export interface ExecutionRequest {
  readonly source: string
  readonly language: Language
  readonly env: Readonly<Record<string, string>>
  readonly timeoutMs: number
  readonly takesInput: boolean
  readonly watch: ArtifactWatch | undefined
}

export type StopReason = 'interrupted' | 'timed-out'

/** All of an ending but what every ending of the same context has. */
export type Conclusion = Omit<CodeEnding, 'context' | 'language' | 'artifacts' | 'artifactsMissing' | 'resultsDropped' | 'outputDropped' | 'wallMs'> & {
  readonly wallMs?: number
  readonly artifacts?: readonly Artifact[]
  readonly artifactsMissing?: string
}

interface Settle {
  resolve(ending: CodeEnding): void
  reject(reason: unknown): void
}

/** One execution, from its place in the context's queue to its end. */
export class Execution implements PlatformExecution {
  readonly events: EventQueue
  readonly ended: Promise<CodeEnding>
  readonly request: ExecutionRequest
  /** Nobody can guess it: whoever says it was told. */
  readonly token = randomBytes(16).toString('hex')
  readonly #context: string
  readonly #onStop: (reason: StopReason) => void
  #settle: Settle | undefined
  #stop: StopReason | undefined
  #kernel: Kernel | undefined
  #isAsked = false

  /** `onStop` is called once, when it is to end before it would. */
  constructor(
    request: ExecutionRequest,
    { context, onStop }: { readonly context: string; readonly onStop: (execution: Execution, reason: StopReason) => void },
  ) {
    this.request = request
    this.#context = context
    this.#onStop = (reason) => onStop(this, reason)
    this.events = new EventQueue(() => this.interrupt())
    this.ended = new Promise((resolve, reject) => (this.#settle = { resolve, reject }))
    this.ended.catch(() => undefined)
  }

  /** Why it is to end, where somebody said so. */
  get stop(): StopReason | undefined {
    return this.#stop
  }

  get isOver(): boolean {
    return this.#settle === undefined
  }

  /** Its kernel was given the code. */
  get isRunning(): boolean {
    return this.#kernel !== undefined
  }

  // eslint-disable-next-line @typescript-eslint/require-await -- what is wrong rejects
  async answer(line: string | null): Promise<void> {
    if (line !== null && (typeof line !== 'string' || /[\n\0]/.test(line)))
      throw new SandboxError('invalid', 'line: expected a line of text without its end, or null')
    if (line !== null && Buffer.byteLength(line) > mostPayloadBytes)
      throw new SandboxError('invalid', `line: must have at most ${mostPayloadBytes} bytes, has ${Buffer.byteLength(line)}`)
    if (!this.#isAsked || !this.#kernel) throw new SandboxError('conflict', 'the code asks for no input now')
    this.#isAsked = false
    this.#kernel.answer(line)
  }

  async interrupt(): Promise<void> {
    this.stopWith('interrupted')
    await this.ended.catch(() => undefined)
  }

  stopWith(reason: StopReason): void {
    if (this.isOver || this.#stop !== undefined) return
    this.#stop = reason
    this.#onStop(reason)
  }

  /** It runs in this kernel from now on. */
  runIn(kernel: Kernel): void {
    this.#kernel = kernel
  }

  ask(): void {
    this.#isAsked = true
  }

  conclude({ wallMs = 0, artifacts = [], ...rest }: Conclusion): void {
    const { language } = this.request
    this.#finish()?.resolve({ context: this.#context, language, wallMs: Math.round(wallMs * 1000) / 1000, artifacts, ...this.events.dropped, ...rest })
  }

  /** The sandbox failed under it. */
  fail(reason: unknown): void {
    this.#finish({ reason })?.reject(reason)
  }

  #finish(failure?: { readonly reason: unknown }): Settle | undefined {
    const settle = this.#settle
    this.#settle = undefined
    this.#kernel = undefined
    this.#isAsked = false
    this.events.end(failure)
    return settle
  }
}
