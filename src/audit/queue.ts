/**
 * Appending in groups: what is asked for while the disk is busy is written together afterwards, with one transaction and one wait for all. What tells of an act that was done
 * is owed: it stays until it is written, and while anything is owed that could not be, nothing new is taken. What nobody waits for goes with the next that somebody does wait for, or after
 * a moment by itself: a disk that is asked half as often answers the others sooner.
 */
import type { AuditEntry, Appended } from '../contract/audit.js'
import { SandboxError } from '../contract/errors.js'
import type { Link } from './chain.js'

interface Waiting {
  readonly entry: AuditEntry
  readonly isOwed: boolean
  /** Nobody waits for it. */
  readonly mayWait: boolean
  /** It is written, though perhaps not on the disk. */
  readonly onWritten?: ((appended: Appended) => void) | undefined
  readonly resolve: (appended: Appended) => void
  readonly reject: (error: unknown) => void
}

const mostTogether = 1000
const mostWaiting = 20_000
const againMs = 500
const laterMs = 10

/** `onWritten` is called when they would survive this process, before they are on the disk, which they are when it resolves. */
export type WriteEntries = (entries: readonly AuditEntry[], onWritten: (links: readonly Link[]) => void) => Promise<readonly Link[]>

export class AppendQueue {
  readonly #write: WriteEntries
  #waiting: Waiting[] = []
  /** What could not be written, and must be before anything else is. */
  #refusal: SandboxError | undefined
  #writing: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  /** While there is only what may wait. */
  #pause: NodeJS.Timeout | undefined

  constructor(write: WriteEntries) {
    this.#write = write
  }

  /** Something that was not done yet: refused when it cannot be written. */
  append(entry: AuditEntry, onWritten?: Waiting['onWritten']): Promise<Appended> {
    if (this.#refusal) return Promise.reject(this.#refusal)
    if (this.#waiting.length >= mostWaiting) return Promise.reject(new SandboxError('busy', `${mostWaiting} records wait to be written to the audit trail`))
    return this.#add(entry, { isOwed: false, mayWait: false, onWritten })
  }

  /** Something that happened. */
  owe(entry: AuditEntry, { mayWait = false }: { readonly mayWait?: boolean } = {}): Promise<Appended> {
    return this.#add(entry, { isOwed: true, mayWait })
  }

  /** What was asked for before is written when this resolves, unless it cannot be. */
  async hurry(): Promise<void> {
    for (let rounds = 0; rounds < 2 && (this.#writing || this.#waiting.length > 0) && !this.#timer; rounds++) {
      this.#start()
      await this.#writing
    }
  }

  /** Tries once more what is owed, and settles whatever waits. */
  async close(): Promise<void> {
    for (const timer of [this.#timer, this.#pause]) clearTimeout(timer)
    this.#timer = undefined
    await this.#writing
    clearTimeout(this.#pause)
    if (this.#waiting.length > 0) await this.#writeSome()
    clearTimeout(this.#timer)
    const left = this.#waiting
    this.#waiting = []
    for (const { reject } of left) reject(this.#refusal ?? new SandboxError('closed', 'the audit trail was closed'))
  }

  #add(entry: AuditEntry, how: Pick<Waiting, 'isOwed' | 'mayWait' | 'onWritten'>): Promise<Appended> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ entry, ...how, resolve, reject })
      if (!how.mayWait) this.#start()
      else if (!this.#writing) this.#startLater()
    })
  }

  #start(): void {
    clearTimeout(this.#pause)
    this.#pause = undefined
    if (!this.#timer) this.#writing ??= this.#drain()
  }

  #startLater(): void {
    this.#pause ??= setTimeout(() => this.#start(), laterMs)
  }

  async #drain(): Promise<void> {
    // All that is asked for in this turn goes together.
    await new Promise((resolve) => setImmediate(resolve))
    do await this.#writeSome()
    while (!this.#timer && this.#waiting.some(({ mayWait }) => !mayWait))
    this.#writing = undefined
    if (!this.#timer && this.#waiting.length > 0) this.#startLater()
  }

  async #writeSome(): Promise<void> {
    // When there was no room, what is owed is tried alone.
    const batch = this.#refusal ? this.#waiting.filter(({ isOwed }) => isOwed).slice(0, mostTogether) : this.#waiting.slice(0, mostTogether)
    try {
      const tell = (links: readonly Link[]): void => batch.forEach(({ onWritten, entry }, index) => onWritten?.(appendedAs(links[index] as Link, entry)))
      const links = await this.#write(
        batch.map(({ entry }) => entry),
        tell,
      )
      this.#forget(batch)
      this.#refusal = undefined
      batch.forEach(({ resolve, entry }, index) => resolve(appendedAs(links[index] as Link, entry)))
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

function appendedAs({ record }: Link, entry: AuditEntry): Appended {
  const { number, hash } = record
  return { number, hash, entry }
}
