import { randomInt } from 'node:crypto'
import { type ErrorCode, SandboxError } from '../contract/errors.js'
import { parseId } from '../policy/spec.js'
import type { LiveSandbox } from './live-sandbox.js'

const idAlphabet = 'abcdefghijklmnopqrstuvwxyz0123456789'
const idLength = 20
const mostRemembered = 1000

/** Why a sandbox is gone, in words: an error also holds what its stack led through, which is all that there was of the sandbox. */
interface Gone {
  readonly code: ErrorCode
  readonly message: string
  readonly hint: string | undefined
}

/** The sandboxes that there are, and why the latest that were are gone. */
export class SandboxRegister {
  readonly #sandboxes = new Map<string, LiveSandbox>()
  /** So that a late call is told more than that there is nothing. */
  readonly #gone = new Map<string, Gone>()

  get count(): number {
    return this.#sandboxes.size
  }

  get all(): readonly LiveSandbox[] {
    return [...this.#sandboxes.values()]
  }

  add(id: string, sandbox: LiveSandbox): void {
    this.#sandboxes.set(id, sandbox)
  }

  /** Also one that is over and not gone yet. */
  get(id: string): LiveSandbox | undefined {
    return this.#sandboxes.get(id) ?? this.#sandboxes.get(parseId(id))
  }

  /** Throws why it is gone, or SandboxError('not-found'). */
  async find(id: string): Promise<LiveSandbox> {
    const sandbox = this.get(id)
    if (sandbox && !sandbox.over) return sandbox
    throw (await sandbox?.over) ?? this.#whyGone(id) ?? new SandboxError('not-found', `there is no sandbox ${id} here`)
  }

  forget(id: string, { code, message, hint }: SandboxError): void {
    this.#sandboxes.delete(id)
    this.#gone.set(id, { code, message, hint })
    for (const oldest of this.#gone.keys()) {
      if (this.#gone.size <= mostRemembered) break
      this.#gone.delete(oldest)
    }
  }

  #whyGone(id: string): SandboxError | undefined {
    const gone = this.#gone.get(id)
    return gone && new SandboxError(gone.code, gone.message, gone.hint === undefined ? {} : { hint: gone.hint })
  }

  newId(): string {
    const id = Array.from({ length: idLength }, () => idAlphabet[randomInt(idAlphabet.length)]).join('')
    return this.#sandboxes.has(id) || this.#gone.has(id) ? this.newId() : id
  }
}
