/** One kernel: the program in a cell that keeps a context's memory, from its start to its end. Everything that it says is judged. */
import type { CodeEvent } from '../contract/code.js'
import { SandboxError } from '../contract/errors.js'
import type { Ending, Outcome, OutputEvent, SignalName } from '../contract/run.js'
import { EventOrder, type Timers } from './event-order.js'
import type { EventQueue } from './event-queue.js'
import { encodeRequest, KernelFault, ReplyDecoder, type ReplyFrame } from './frames.js'
import { type DoneReply, parseAsk, parseDone, parseReady, parseResult, type Ready } from './replies.js'
import { ResultBounds } from './result-bounds.js'

/** A program with a side channel, as the engine starts it. */
export interface KernelProcess {
  /** 0 when it did not start, which `ended` tells. */
  readonly pid: number
  readonly output: AsyncIterable<OutputEvent>
  /** What it writes to its descriptor 4. */
  readonly aside: AsyncIterable<Uint8Array>
  /** To its descriptor 3. */
  write(bytes: Uint8Array): Promise<void>
  signal(name: SignalName): Promise<void>
  kill(reason?: string): Promise<void>
  ref(): void
  unref(): void
  readonly ended: Promise<Ending>
}

export interface KernelOrder {
  /** The kernel's source, as its bootstrap takes it. */
  readonly load: Uint8Array
  readonly timers: Timers
}

export interface ExecutionOrder {
  /** What it has to be given first, where it was not before. */
  readonly load: Uint8Array | undefined
  /** 32 hexadecimal digits that nobody could guess. */
  readonly token: string
  readonly source: string
  readonly env: Readonly<Record<string, string>>
  readonly options: Readonly<Record<string, string>>
  readonly queue: EventQueue
  /** What code that asks for input is told; undefined refuses. */
  readonly onAsk: (() => void) | undefined
}

/** Of one result, and beyond that what stands around it in its frame. */
export const mostResultBytes = 10 * 2 ** 20
const mostAroundResultBytes = 64 * 1024
/** How long until a kill that could not be is tried again. */
const againMs = 20
/** How long a kernel may take from a request to the beginning of its execution, before it is interrupted anyway. */
const beginMs = 5000

/** How an execution ended as far as its kernel can say; `ended` when the kernel did first. */
export type Executed = { readonly done: DoneReply } | { readonly ended: Outcome }

export class Kernel {
  readonly ended: Promise<Outcome>
  readonly ready: Promise<Ready>
  readonly #process: KernelProcess
  readonly #order: EventOrder
  readonly #timers: Timers
  #current: { readonly order: ExecutionOrder; readonly bounds: ResultBounds; readonly finish: (executed: Executed) => void } | undefined
  #becomeReady: ((ready: Ready) => void) | undefined
  #signalled = Promise.resolve()

  constructor(process: KernelProcess, { load, timers }: KernelOrder) {
    this.#process = process
    this.#timers = timers
    this.#order = new EventOrder(timers)
    this.ready = new Promise((resolve) => (this.#becomeReady = resolve))
    const pumps = Promise.all([this.#pumpOutput(), this.#pumpReplies()])
    this.ended = this.#finish(pumps)
    this.ended.catch(() => undefined)
    this.#write([encodeRequest({ type: 'load', payload: load })])
  }

  get pid(): number {
    return this.#process.pid
  }

  /** What was printed while nothing was executed. */
  get lateBytes(): number {
    return this.#order.lateBytes
  }

  /** One at a time. Rejects only when the sandbox fails. */
  async execute(order: ExecutionOrder): Promise<Executed> {
    const { token, env, options, source, load } = order
    const executed = new Promise<Executed>((finish) => (this.#current = { order, bounds: new ResultBounds(), finish }))
    this.#order.begin(token, order.queue)
    const pairs = (type: 'env' | 'option', values: Readonly<Record<string, string>>): Uint8Array[] =>
      Object.entries(values).map(([name, value]) => encodeRequest({ type, token, payload: bytesOf(`${name}=${value}`) }))
    const loaded = load ? [encodeRequest({ type: 'load', payload: load })] : []
    this.#write([...loaded, ...pairs('env', env), ...pairs('option', options), encodeRequest({ type: 'execute', token, payload: bytesOf(source) })])
    return Promise.race([executed, this.ended.then((ended) => ({ ended }))])
  }

  /** To an `ask`: a line, or null for the end of input. */
  answer(line: string | null): void {
    const token = this.#current?.order.token
    if (token === undefined) return
    this.#write([encodeRequest(line === null ? { type: 'eof', token } : { type: 'input', token, payload: bytesOf(line) })])
  }

  /** Resolves when no interrupt is on its way, which the next execution would get. */
  get signalled(): Promise<void> {
    return this.#signalled
  }

  /** What is executed. A kernel that has not yet begun would not know what is meant; so that is waited for, but not for ever. */
  async interrupt(): Promise<void> {
    const current = this.#current
    let patience: { cancel(): void } | undefined
    const late = new Promise<void>((resolve) => (patience = this.#timers.after(beginMs, resolve)))
    await Promise.race([this.#order.begun, late]).finally(() => patience?.cancel())
    if (!current || this.#current !== current) return
    const signalled = this.#process.signal('SIGINT')
    this.#signalled = signalled.catch(() => undefined)
    await signalled
  }

  /** With all that it started. */
  async kill(reason: string): Promise<void> {
    // What it printed and nobody reads must not keep its end from being told.
    this.#current?.order.queue.overflow()
    for (;;) {
      try {
        await this.#process.kill(reason)
        return
      } catch (error) {
        // What stands still cannot be killed: its time goes on when it does.
        if (!(error instanceof SandboxError) || error.code !== 'conflict') throw error
        await new Promise<void>((resolve) => this.#timers.after(againMs, resolve))
      }
    }
  }

  /** This process stays alive for it. */
  ref(): void {
    this.#process.ref()
  }

  unref(): void {
    this.#process.unref()
  }

  /** In one piece, so that a cork is not needed; a kernel that does not take it is ended by its time. */
  #write(frames: readonly Uint8Array[]): void {
    // What ended under the write is told by its end.
    this.#process.write(Buffer.concat(frames)).catch(() => undefined)
  }

  async #finish(pumps: Promise<unknown>): Promise<Outcome> {
    await pumps
    this.#order.finish()
    const { outcome } = await this.#process.ended
    // What it left behind is of no use to anyone: its memory is gone.
    if (this.#process.pid !== 0) await this.#process.kill('its interpreter ended').catch(() => undefined)
    return outcome
  }

  async #pumpOutput(): Promise<void> {
    for await (const event of this.#process.output) {
      this.#order.output(event)
      await this.#current?.order.queue.room()
    }
    this.#order.endStreams()
  }

  async #pumpReplies(): Promise<void> {
    const decoder = new ReplyDecoder()
    try {
      for await (const piece of this.#process.aside) {
        for (const frame of decoder.push(piece)) await this.#receive(frame)
      }
    } catch (error) {
      if (!(error instanceof KernelFault)) throw error
      await this.kill(`its interpreter broke the protocol: ${error.message}`)
    }
  }

  async #receive({ type, token, payload }: ReplyFrame): Promise<void> {
    if (type === 'ready') {
      this.#receiveReady(parseReady(payload))
      return
    }
    const current = this.#current
    if (!current || token !== current.order.token) throw new KernelFault(`it sent '${type}' for an execution that does not run`)
    const { queue } = current.order
    switch (type) {
      case 'result': {
        if (payload.length > mostResultBytes + mostAroundResultBytes) throw new KernelFault(`it sent a result of ${payload.length} bytes`)
        const { mark, result, extraBytes } = parseResult(payload)
        const bytes = payload.length + extraBytes
        const held = current.bounds.hold(result, bytes)
        await this.#order.frame(mark, () => (held ? queue.push({ type: 'result', result: held }, bytes) : queue.drop({ type: 'result', result })))
        break
      }
      case 'ask':
        await this.#receiveAsk(current.order, parseAsk(payload))
        break
      case 'done': {
        const done = parseDone(payload)
        await this.#order.frame(done.mark, () => {
          this.#order.finish(done.mark)
          this.#current = undefined
          current.finish({ done })
        })
        break
      }
    }
    await queue.room()
  }

  async #receiveAsk({ queue, onAsk }: ExecutionOrder, { mark, prompt, isSecret }: ReturnType<typeof parseAsk>): Promise<void> {
    if (!onAsk) throw new KernelFault("it sent 'ask', which was refused before")
    const event: CodeEvent = { type: 'ask', prompt, isSecret }
    await this.#order.frame(mark, () => {
      onAsk()
      queue.push(event, prompt.length)
    })
  }

  #receiveReady(ready: Ready): void {
    if (!this.#becomeReady) throw new KernelFault("it sent 'ready' twice")
    this.#becomeReady(ready)
    this.#becomeReady = undefined
  }
}

function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}
