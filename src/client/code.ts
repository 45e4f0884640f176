import { checkCallOptions } from '../contract/call-options.js'
import type { CodeEnding, CodeEvent, CodeRequest, ContextInfo, ContextRequest, PlatformCode, PlatformExecution } from '../contract/code.js'
import { SandboxError } from '../contract/errors.js'
import type { CallOptions } from '../contract/platform.js'
import type { EventStream } from './event-stream.js'
import { allPages } from './pages.js'
import type { Wire } from './wire.js'

export class ClientCode implements PlatformCode {
  readonly #wire: Wire

  constructor(wire: Wire) {
    this.#wire = wire
  }

  async languages(id: string, options: CallOptions = {}): ReturnType<PlatformCode['languages']> {
    const { signal } = checkCallOptions(options)
    return this.#wire.call('code.languages', { params: { id }, signal })
  }

  async execute(id: string, request: CodeRequest, options: CallOptions = {}): Promise<PlatformExecution> {
    const { signal } = checkCallOptions(options)
    const stream = await this.#wire.stream('code.execute', { params: { id }, body: request, what: 'code', signal })
    const begun = await stream.next()
    if (begun?.type !== 'begun') throw new SandboxError('broken', 'the server does not say what it began')
    return new RemoteExecution(stream, { wire: this.#wire, params: { id, execution: String((begun as { readonly execution?: unknown }).execution) } })
  }

  async createContext(id: string, request: ContextRequest = {}, options: CallOptions = {}): Promise<ContextInfo> {
    const { signal } = checkCallOptions(options)
    return (await this.#wire.call('contexts.create', { params: { id }, body: request, what: 'context', signal })) as ContextInfo
  }

  async listContexts(id: string, options: CallOptions = {}): Promise<readonly ContextInfo[]> {
    const { signal } = checkCallOptions(options)
    return allPages<ContextInfo>((query) => this.#wire.call('contexts.list', { params: { id }, query, signal }))
  }

  async restartContext(id: string, context: string, options: CallOptions = {}): Promise<ContextInfo> {
    const { signal } = checkCallOptions(options)
    return (await this.#wire.call('contexts.restart', { params: { id, context }, signal })) as ContextInfo
  }

  async removeContext(id: string, context: string, options: CallOptions = {}): Promise<boolean> {
    const { signal } = checkCallOptions(options)
    return (await this.#wire.call('contexts.remove', { params: { id, context }, signal })).removed
  }
}

interface Where {
  readonly wire: Wire
  readonly params: { readonly id: string; readonly execution: string }
}

/** So much is read ahead of whoever reads. */
const mostWaiting = 64

class RemoteExecution implements PlatformExecution {
  readonly events: AsyncIterable<CodeEvent>
  readonly ended: Promise<CodeEnding>
  readonly #where: Where
  readonly #ready: CodeEvent[] = []
  #isClaimed = false
  #isLeft = false
  #end: { readonly failure?: { readonly error: unknown } } | undefined
  #wakeReader: (() => void) | undefined
  #wakeWriter: (() => void) | undefined
  #settle!: { resolve(ending: CodeEnding): void; reject(error: unknown): void }

  constructor(stream: EventStream, where: Where) {
    this.#where = where
    this.ended = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject }
    })
    this.ended.catch(() => undefined)
    this.events = { [Symbol.asyncIterator]: () => this.#claim() }
    void this.#follow(stream)
  }

  async answer(line: string | null): Promise<void> {
    if (this.#end) throw new SandboxError('conflict', 'nothing was asked: the execution is over')
    await this.#where.wire.call('code.answer', { params: this.#where.params, body: { line } }).catch((error: unknown) => {
      if (error instanceof SandboxError && error.code === 'not-found') throw new SandboxError('conflict', 'nothing was asked: the execution is over')
      throw error
    })
  }

  async interrupt(): Promise<void> {
    if (!this.#end) {
      await this.#where.wire.call('code.interrupt', { params: this.#where.params }).catch((error: unknown) => {
        if (!(error instanceof SandboxError) || error.code !== 'not-found') throw error
      })
    }
  }

  async #follow(stream: EventStream): Promise<void> {
    try {
      for (let event = await stream.next(); event; event = await stream.next()) {
        if (event.type === 'ended') {
          await this.#finish((event as unknown as { readonly ending: CodeEnding }).ending)
          return
        }
        await this.#push(event as CodeEvent)
      }
      throw new SandboxError('broken', 'the server does not say how the code ended')
    } catch (error) {
      this.#end = { failure: { error } }
      this.#wakeReader?.()
      this.#settle.reject(error)
    }
  }

  /** Told when all of the events were read, as everywhere. */
  async #finish(ending: CodeEnding): Promise<void> {
    while (this.#ready.length > 0 && !this.#hasLeft()) await this.#room()
    this.#end = {}
    this.#wakeReader?.()
    this.#settle.resolve(ending)
  }

  async #push(event: CodeEvent): Promise<void> {
    if (this.#isLeft) return
    this.#ready.push(event)
    this.#wakeReader?.()
    while (this.#ready.length > mostWaiting) {
      await this.#room()
      if (this.#hasLeft()) return
    }
  }

  /** Asked anew after each wait. */
  #hasLeft(): boolean {
    return this.#isLeft
  }

  #room(): Promise<void> {
    return new Promise((resolve) => {
      this.#wakeWriter = resolve
    })
  }

  #claim(): AsyncIterator<CodeEvent, undefined> {
    if (this.#isClaimed) throw new SandboxError('conflict', 'the events of an execution have one consumer, and they have one already')
    this.#isClaimed = true
    return { next: () => this.#next(), return: () => this.#leave() }
  }

  async #next(): Promise<IteratorResult<CodeEvent, undefined>> {
    for (;;) {
      const event = this.#ready.shift()
      this.#wakeWriter?.()
      if (event) return { done: false, value: event }
      if (this.#end?.failure) throw this.#end.failure.error
      if (this.#end || this.#isLeft) return { done: true, value: undefined }
      await new Promise<void>((resolve) => {
        this.#wakeReader = resolve
      })
    }
  }

  /** Interrupts. */
  async #leave(): Promise<IteratorResult<CodeEvent, undefined>> {
    if (!this.#isLeft && !this.#end) {
      this.#isLeft = true
      this.#ready.length = 0
      this.#wakeWriter?.()
      await this.interrupt()
    }
    return { done: true, value: undefined }
  }
}
