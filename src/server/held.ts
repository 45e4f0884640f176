import { randomBytes } from 'node:crypto'
import { SandboxError } from '../contract/errors.js'

const alphabet = 'abcdefghijklmnopqrstuvwxyz234567'

/** 128 bits that nobody guesses, as letters and digits that a name of a host may have. */
export function randomName(): string {
  return Array.from(randomBytes(26), (byte) => alphabet[byte & 31]).join('')
}

interface Entry<Value> {
  readonly tenant: string
  readonly value: Value
}

/** What the server holds for callers between two of their requests. What is another tenant's answers as what never was. */
export class Held<Value> {
  readonly #what: string
  readonly #most: number
  readonly #entries = new Map<string, Entry<Value>>()

  /** The oldest go when there are more than `most`. */
  constructor(what: string, most: number) {
    this.#what = what
    this.#most = most
  }

  get count(): number {
    return this.#entries.size
  }

  add(tenant: string, value: Value, name = randomName()): string {
    this.#entries.set(name, { tenant, value })
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#most) break
      this.#entries.delete(oldest)
    }
    return name
  }

  find(tenant: string, name: string): Value | undefined {
    const entry = this.#entries.get(name)
    return entry?.tenant === tenant ? entry.value : undefined
  }

  /** Throws SandboxError('not-found'). */
  get(tenant: string, name: string): Value {
    const value = this.find(tenant, name)
    if (value === undefined) throw new SandboxError('not-found', `there is no such ${this.#what} here`)
    return value
  }

  remove(name: string): void {
    this.#entries.delete(name)
  }

  of(tenant: string): readonly Value[] {
    return [...this.#entries.values()].filter((entry) => entry.tenant === tenant).map(({ value }) => value)
  }
}
