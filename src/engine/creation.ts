import { SandboxError } from '../contract/errors.js'
import type { StoredSnapshot } from '../contract/snapshot-store.js'
import type { Spec } from '../contract/spec.js'
import type { PlannedSandbox } from '../policy/apply.js'

/** A sandbox that is being made. Whoever holds it can call it off; it then leaves nothing. */
export class Creation {
  readonly planned: PlannedSandbox
  /** What it begins with; undefined when with nothing. */
  readonly origin: StoredSnapshot | undefined
  readonly #controller = new AbortController()
  readonly #caller: AbortSignal | undefined
  readonly #onAbort = (): void => this.abort(this.#caller?.reason)
  readonly #finished: Promise<void>
  #finish!: () => void

  constructor({ planned, origin }: Pick<Creation, 'planned' | 'origin'>, caller: AbortSignal | undefined) {
    this.planned = planned
    this.origin = origin
    this.#caller = caller
    this.#finished = new Promise((resolve) => {
      this.#finish = resolve
    })
    caller?.addEventListener('abort', this.#onAbort, { once: true })
  }

  get spec(): Spec {
    return this.planned.spec
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  abort(reason: unknown): void {
    this.#controller.abort(reason)
  }

  /** Resolves when it is called off or was too late. */
  async callOff(): Promise<void> {
    this.abort(closedMeanwhile())
    await this.#finished
  }

  finish(): void {
    this.#caller?.removeEventListener('abort', this.#onAbort)
    this.#finish()
  }
}

export function closedMeanwhile(): SandboxError {
  return new SandboxError('closed', 'the sandbox was closed while it was created')
}
