import { randomInt } from 'node:crypto'
import { SandboxError } from '../contract/errors.js'
import { parseId } from '../policy/spec.js'
import type { LiveSandbox } from './live-sandbox.js'

const idAlphabet = 'abcdefghijklmnopqrstuvwxyz0123456789'
const idLength = 20
const mostRemembered = 1000

/** The sandboxes that there are, and why the latest that were are gone. */
export class SandboxRegister {
  readonly #sandboxes = new Map<string, LiveSandbox>()
  /** So that a late call is told more than that there is nothing. */
  readonly #gone = new Map<string, SandboxError>()

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
    return this.#sandboxes.get(parseId(id))
  }

  /** Throws why it is gone, or SandboxError('not-found'). */
  async find(id: string): Promise<LiveSandbox> {
    const sandbox = this.get(id)
    if (sandbox && !sandbox.over) return sandbox
    throw (await sandbox?.over) ?? this.#gone.get(id) ?? new SandboxError('not-found', `there is no sandbox ${id} here`)
  }

  forget(id: string, why: SandboxError): void {
    this.#sandboxes.delete(id)
    this.#gone.set(id, why)
    for (const oldest of this.#gone.keys()) {
      if (this.#gone.size <= mostRemembered) break
      this.#gone.delete(oldest)
    }
  }

  newId(): string {
    const id = Array.from({ length: idLength }, () => idAlphabet[randomInt(idAlphabet.length)]).join('')
    return this.#sandboxes.has(id) || this.#gone.has(id) ? this.newId() : id
  }
}
