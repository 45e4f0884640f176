import { checkCallOptions } from '../contract/call-options.js'
import { SandboxError } from '../contract/errors.js'
import { kindOf } from '../contract/plain-object.js'
import type { CreationOptions, RequestJudge } from '../contract/platform-network.js'
import type { StoredSnapshot } from '../contract/snapshot-store.js'
import type { Spec } from '../contract/spec.js'
import type { PlannedSandbox } from '../policy/apply.js'

export type CreationOrder = Pick<Creation, 'planned' | 'origin'> & Partial<Pick<Creation, 'onRequest'>>

/** A sandbox that is being made. Whoever holds it can call it off; it then leaves nothing. */
export class Creation {
  readonly planned: PlannedSandbox
  /** What it begins with; undefined when with nothing. */
  readonly origin: StoredSnapshot | undefined
  /** Asked about what no rule of its network decides. */
  readonly onRequest: RequestJudge | undefined
  readonly #controller = new AbortController()
  readonly #caller: AbortSignal | undefined
  readonly #onAbort = (): void => this.abort(this.#caller?.reason)
  readonly #finished: Promise<void>
  #finish!: () => void

  constructor({ planned, origin, onRequest }: CreationOrder, caller: AbortSignal | undefined) {
    this.planned = planned
    this.origin = origin
    this.onRequest = onRequest
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

/** Throws SandboxError('invalid') naming the one that is wrong. */
export function checkCreationOptions(options: CreationOptions): CreationOptions {
  checkJudge(checkCallOptions(options, ['signal', 'onRequest']).onRequest)
  return options
}

/** Throws SandboxError('invalid') for what cannot be asked. */
export function checkJudge(onRequest: unknown): void {
  if (onRequest !== undefined && typeof onRequest !== 'function') throw new SandboxError('invalid', `onRequest: expected a function, got ${kindOf(onRequest)}`)
}

/** As long as it is under way, it can be called off. */
export async function during<T>(creation: Creation, underWay: Set<Creation>, act: () => Promise<T>): Promise<T> {
  underWay.add(creation)
  try {
    return await act()
  } finally {
    underWay.delete(creation)
    creation.finish()
  }
}
