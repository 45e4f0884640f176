/**
 * Appending in groups: what is asked for while the disk is busy is written together afterwards, with one transaction and one wait for all. What tells of an act that was done
 * is owed: it stays until it is written, and while anything is owed that could not be, nothing new is taken.
 */
import type { AuditEntry, Appended } from '../contract/audit.js'
import { SandboxError } from '../contract/errors.js'
import type { Link } from './chain.js'

interface Waiting {
  readonly entry: AuditEntry
  readonly isOwed: boolean
  readonly resolve: (appended: Appended) => void
  readonly reject: (error: unknown) => void
}

const mostTogether = 1000
const mostWaiting = 20_000
const againMs = 500

export type WriteEntries = (entries: readonly AuditEntry[]) => Promise<readonly Link[]>

export class AppendQueue {
  readonly #write: WriteEntries
  #waiting: Waiting[] = []
  /** What could not be written, and must be before anything else is. */
  #refusal: SandboxError | undefined
  #writing: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(write: WriteEntries) {
    this.#write = write
  }

  /** Something that was not done yet: refused when it cannot be written. */
  append(entry: AuditEntry): Promise<Appended> {
    if (this.#refusal) return Promise.reject(this.#refusal)
    if (this.#waiting.length >= mostWaiting) return Promise.reject(new SandboxError('busy', `${mostWaiting} records wait to be written to the audit trail`))
    return this.#add(entry, { isOwed: false })
  }

  /** Something that happened. */
  owe(entry: AuditEntry): Promise<Appended> {
    return this.#add(entry, { isOwed: true })
  }

  /** Tries once more what is owed, and settles whatever waits. */
  async close(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    await this.#writing
    if (this.#waiting.length > 0) await this.#writeSome()
    clearTimeout(this.#timer)
    const left = this.#waiting
    this.#waiting = []
    for (const { reject } of left) reject(this.#refusal ?? new SandboxError('closed', 'the audit trail was closed'))
  }

  #add(entry: AuditEntry, { isOwed }: { isOwed: boolean }): Promise<Appended> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ entry, isOwed, resolve, reject })
      // All that is asked for in this turn goes together.
      if (!this.#timer && !this.#writing) this.#writing = this.#drain()
    })
  }

  async #drain(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve))
    while (this.#waiting.length > 0 && !this.#timer) await this.#writeSome()
    this.#writing = undefined
  }

  async #writeSome(): Promise<void> {
    // When there was no room, what is owed is tried alone.
    const batch = this.#refusal ? this.#waiting.filter(({ isOwed }) => isOwed).slice(0, mostTogether) : this.#waiting.slice(0, mostTogether)
    try {
      const links = await this.#write(batch.map(({ entry }) => entry))
      this.#forget(batch)
      this.#refusal = undefined
      batch.forEach(({ resolve, entry }, index) => {
        const { number, hash } = (links[index] as Link).record
        resolve({ number, hash, entry })
      })
    } catch (error) {
      this.#giveUp(batch, error)
    }
  }

  #giveUp(batch: readonly Waiting[], error: unknown): void {
    const refused = batch.filter(({ isOwed }) => !isOwed)
    this.#forget(refused)
    for (const { reject } of refused) reject(error)
    if (!this.#waiting.some(({ isOwed }) => isOwed)) return
    this.#refusal = error instanceof SandboxError ? error : new SandboxError('internal', 'the audit trail cannot be written', { cause: error })
    for (const { reject } of this.#waiting.filter(({ isOwed }) => !isOwed)) reject(this.#refusal)
    this.#forget(this.#waiting.filter(({ isOwed }) => !isOwed))
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#writing ??= this.#drain()
    }, againMs)
  }

  #forget(some: readonly Waiting[]): void {
    const gone = new Set(some)
    this.#waiting = this.#waiting.filter((each) => !gone.has(each))
  }
}
