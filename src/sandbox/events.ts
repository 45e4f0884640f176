import { SandboxError } from '../contract/errors.js'
import type { SandboxEvent } from '../contract/lifetimes.js'
import { kindOf } from '../contract/plain-object.js'

export const sandboxEventTypes = ['exit', 'paused', 'resumed', 'expired', 'limited', 'denied', 'missed', 'closed'] as const
export type SandboxEventType = (typeof sandboxEventTypes)[number]
export type SandboxEventOf<Type extends SandboxEventType> = Extract<SandboxEvent, { readonly type: Type }>

type Listener = (event: SandboxEvent) => unknown

/** Who wants to be told what of one sandbox. The platform is asked only while there is someone. */
export class EventListeners {
  readonly #events: (signal: AbortSignal) => AsyncIterable<SandboxEvent>
  readonly #listeners = new Set<{ readonly type: SandboxEventType; readonly listener: Listener }>()
  #listening: AbortController | undefined
  #failure: SandboxError | undefined

  constructor(events: (signal: AbortSignal) => AsyncIterable<SandboxEvent>) {
    this.#events = events
  }

  /** Returns what ends it; calling that twice is quiet. */
  on<Type extends SandboxEventType>(type: Type, listener: (event: SandboxEventOf<Type>) => unknown): () => void {
    if (!sandboxEventTypes.includes(type)) throw new SandboxError('invalid', `type: expected one of ${sandboxEventTypes.join(', ')}`)
    if (typeof listener !== 'function') throw new SandboxError('invalid', `listener: expected a function, got ${kindOf(listener)}`)
    if (this.#failure !== undefined) throw this.#failure
    const entry = { type, listener: listener as Listener }
    this.#listeners.add(entry)
    this.#listening ??= this.#listen()
    return () => {
      this.#listeners.delete(entry)
      if (this.#listeners.size > 0) return
      this.#listening?.abort()
      this.#listening = undefined
    }
  }

  /** There is nothing more to be told: whoever asks from now on is refused with this. */
  end(failure: SandboxError): void {
    this.#failure ??= failure
  }

  #listen(): AbortController {
    const controller = new AbortController()
    this.#deliver(this.#events(controller.signal)).catch((error: unknown) => {
      if (error instanceof SandboxError) this.#failure = error
    })
    return controller
  }

  async #deliver(events: AsyncIterable<SandboxEvent>): Promise<void> {
    for await (const event of events) {
      for (const { type, listener } of [...this.#listeners]) if (type === event.type) callQuietly(listener, event)
    }
  }
}

/** What a listener throws is its own affair: neither the others nor the sandbox are to suffer. */
function callQuietly(listener: Listener, event: SandboxEvent): void {
  Promise.resolve()
    .then(() => listener(event))
    .catch(() => undefined)
}
