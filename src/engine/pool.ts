/**
 * What takes long to make is made before anyone asks. Whoever asks gets one that waited, or else the next that is made, in the order in which they asked.
 *
 * Nothing that was handed out comes back by itself: whoever hands it out says when it is over, and whether something of it may wait again. Making
 * ahead is the least urgent thing: it begins when nobody waits, few at a time, and while enough are left only when nobody has asked for a moment.
 */
import { SandboxError } from '../contract/errors.js'
import type { PoolStatus } from '../contract/pools.js'
import { newsTakenIn } from './pool-news.js'
import { PoolShelf } from './pool-shelf.js'
import { messageOf, PoolWaiters } from './pool-waiters.js'

export interface PoolItem {
  /** Settles when it cannot be used any more. Never rejects. */
  readonly ended: Promise<unknown>
  readonly isAlive: boolean
  /** It is to wait now, and may get ready for its use. Never rejects. */
  rest(): Promise<unknown>
  /** Resolves when nothing of it is left. Again when it did not. */
  close(): Promise<void>
}

/** An item in use. */
export interface HandedOut<Value, Item> {
  readonly value: Value
  /** Settles when it is over: to what may wait again, or to undefined when nothing of it is left. Never rejects. */
  readonly over: Promise<Item | undefined>
  close(): Promise<void>
}

export interface PoolOrder<Item> {
  /** How it is called in messages. */
  readonly name: string
  /** So many are to wait, at first. */
  readonly size: number
  /** So many are there at most. */
  readonly max: number
  /** So many callers wait at most. */
  readonly queue: number
  readonly recycleAfterMs: number
  /** Undefined: never. */
  readonly idleAfterMs: number | undefined
  /** So many are made ahead at once. */
  readonly atOnce: number
  /** Whether what is in use will wait again. */
  readonly comesBack?: boolean
  make(signal: AbortSignal): Promise<Item>
  /** Whether one more may be made ahead. */
  hasRoom(): boolean
  /** How many wait has changed. */
  onChange?(): void
}

/** While enough wait, others are made when nobody has asked for so long. */
const quietMs = 50
/** After one that could not be made, the next is tried after this; then after twice as long, and so on. */
const leastBackoffMs = 250
const mostBackoffMs = 30_000

export class Pool<Item extends PoolItem> {
  readonly #order: PoolOrder<Item>
  readonly #calledOff = new AbortController()
  readonly #waiters = new PoolWaiters<Item>()
  readonly #makes = new Set<Promise<unknown>>()
  readonly #inUse = new Set<HandedOut<unknown, Item>>()
  readonly #shelf: PoolShelf<Item>
  /** What is being made for nobody yet. */
  readonly #refills = new Map<AbortController, Promise<void>>()
  #usedAt = performance.now()
  #isAsleep = false
  #backoffMs = 0
  #failure: string | undefined
  #refilling: NodeJS.Timeout | undefined
  #size: number

  constructor(order: PoolOrder<Item>) {
    this.#order = order
    this.#size = order.size
    this.#shelf = new PoolShelf({
      recycleAfterMs: order.recycleAfterMs,
      idleAfterMs: order.idleAfterMs,
      usedAt: () => this.#usedAt,
      onIdle: () => void this.sleep(),
      onLeft: () => this.#pump(),
      onFailure: (error) => this.note(error),
    })
  }

  get status(): PoolStatus {
    const failure = this.#failure
    return {
      total: this.#total,
      available: this.#shelf.ready,
      inUse: this.#inUse.size,
      waiting: this.#waiters.count,
      ...(failure !== undefined && { failure }),
    }
  }

  /** Those that are nobody's: waiting, being made, or not gone yet. */
  get unused(): number {
    return this.#shelf.count + this.#makes.size + this.#shelf.leaving
  }

  /** So many are to wait from now on. */
  resize(size: number): void {
    this.#size = size
  }

  /** One that waits from then on, as nobody has it; it shows that there can be any. */
  first(signal?: AbortSignal): Promise<Item> {
    return this.acquire((item) => ({ value: item, over: Promise.resolve(item), close: () => item.close() }), signal)
  }

  /** Of one that nobody has. `handOut` is called once, at once when it is there. */
  async acquire<Value>(handOut: (item: Item) => HandedOut<Value, Item>, signal?: AbortSignal): Promise<Value> {
    this.#checkOpen()
    this.#usedAt = performance.now()
    this.#isAsleep = false
    await newsTakenIn()
    signal?.throwIfAborted()
    this.#checkOpen()
    const item = this.#waiters.count === 0 ? this.#shelf.pick() : undefined
    if (item) return this.#lend(item, handOut)
    this.#checkQueue()
    const lent = this.#waiters.add((next) => this.#lend(next, handOut), signal)
    this.#pump()
    return await lent
  }

  /** Those that are being made for somebody. */
  get promised(): number {
    return Math.min(this.#makes.size, this.#waiters.count)
  }

  /** One that nobody waits for goes, so that there is room for something else. Undefined when there is none. */
  giveWay(): Promise<void> | undefined {
    return this.#shelf.dropOldest() ?? this.#callOffRefill() ?? this.#shelf.nextLeft
  }

  /** Those that wait and are not to be used any more are closed. */
  drop(isStale: (item: Item) => boolean): Promise<void> {
    return this.#shelf.drop(isStale)
  }

  /** What went wrong where nobody was told. */
  note(error: unknown): void {
    this.#failure = messageOf(error)
  }

  /** None waits until somebody asks. Resolves when none is left that nobody has. */
  async sleep(): Promise<void> {
    this.#isAsleep = true
    await this.#finishMakes()
    await this.#shelf.empty()
  }

  /** Resolves when nothing is left, in use or not. Throws when something is; then again. */
  async close(): Promise<void> {
    const why = new SandboxError('closed', `${this.#order.name} was closed`)
    for (const each of [this.#calledOff, ...this.#refills.keys()]) each.abort(why)
    clearTimeout(this.#refilling)
    this.#waiters.failAll(why)
    await this.#finishMakes()
    const closings = await Promise.all([this.#shelf.clear(), Promise.allSettled([...this.#inUse].map((out) => out.close()))])
    const failed = closings.flat().find((result) => result.status === 'rejected')
    if (failed) throw failed.reason
  }

  get #total(): number {
    return this.unused + this.#inUse.size
  }

  get #isClosed(): boolean {
    return this.#calledOff.signal.aborted
  }

  #checkOpen(): void {
    this.#calledOff.signal.throwIfAborted()
  }

  /** Whoever is next to get one that is being made, or may be, needs no place in the queue. */
  #checkQueue(): void {
    const { max, queue, name } = this.#order
    const coming = this.#makes.size + Math.max(0, max - this.#total)
    if (this.#waiters.count - coming < queue) return
    throw new SandboxError('busy', `${name} has ${this.#total} sandboxes, and ${this.#waiters.count} callers wait for one; no more are allowed at once`)
  }

  #lend<Value>(item: Item, handOut: (item: Item) => HandedOut<Value, Item>): Value {
    try {
      const out = handOut(item)
      this.#inUse.add(out)
      void out.over.then((again) => {
        this.#inUse.delete(out)
        if (again) void this.#put(again)
        this.#pump()
      })
      return out.value
    } catch (error) {
      void this.#shelf.leave(item).catch(() => undefined)
      throw error
    } finally {
      this.#pump()
    }
  }

  #pump(): void {
    this.#order.onChange?.()
    if (this.#isClosed) return
    while (this.#waiters.count > 0) {
      const item = this.#shelf.pick()
      if (!item) break
      this.#waiters.give(item)
    }
    while (this.#makes.size < this.#waiters.count && this.#total < this.#order.max) void this.#make()
    this.#scheduleRefill()
  }

  /** Settles when it waits and is ready, or is in use, or did not come about. */
  async #make(signal = this.#calledOff.signal): Promise<void> {
    const making = this.#order.make(signal)
    this.#makes.add(making)
    let waits: Promise<unknown> | undefined
    try {
      const item = await making
      this.#makes.delete(making)
      this.#backoffMs = 0
      this.#failure = undefined
      waits = this.#put(item)
    } catch (error) {
      this.#makes.delete(making)
      if (!signal.aborted && !this.#waiters.fail(error)) this.#backOff(error)
    }
    this.#pump()
    await waits
  }

  #backOff(error: unknown): void {
    this.note(error)
    this.#backoffMs = Math.min(mostBackoffMs, Math.max(leastBackoffMs, this.#backoffMs * 2))
  }

  /** To the first that waits for one, or else it waits itself. */
  async #put(item: Item): Promise<void> {
    if (!this.#isClosed && item.isAlive) {
      if (this.#waiters.give(item)) return
      if (!this.#isAsleep) {
        await this.#shelf.put(item)
        return
      }
    }
    await this.#shelf.leave(item).catch(() => undefined)
  }

  #scheduleRefill(): void {
    if (this.#refilling || !this.#lacks) return
    const enough = this.#shelf.count * 2 >= this.#size && this.#shelf.count > 0
    const quiet = enough ? quietMs - (performance.now() - this.#usedAt) : 0
    this.#refilling = setTimeout(
      () => {
        this.#refilling = undefined
        if (enough && performance.now() - this.#usedAt < quietMs) this.#scheduleRefill()
        else void this.#refill()
      },
      Math.max(0, quiet, this.#backoffMs),
    ).unref()
  }

  get #lacks(): boolean {
    const { max, atOnce, comesBack } = this.#order
    if (this.#isClosed || this.#isAsleep || this.#waiters.count > 0 || this.#refills.size >= atOnce) return false
    const coming = this.#makes.size + (comesBack ? this.#inUse.size : 0)
    return this.#shelf.count + coming < this.#size && this.#total < max && this.#order.hasRoom()
  }

  async #refill(): Promise<void> {
    if (!this.#lacks) return
    const unwanted = new AbortController()
    const made = this.#make(unwanted.signal)
    this.#refills.set(unwanted, made)
    await made
    this.#refills.delete(unwanted)
    this.#scheduleRefill()
  }

  /** Whoever waits gets what is being made for nobody. */
  #callOffRefill(): Promise<void> | undefined {
    const [latest] = [...this.#refills].reverse().filter(([{ signal }]) => !signal.aborted)
    if (!latest || this.#waiters.count > 0) return undefined
    latest[0].abort(new SandboxError('closed', 'there is no room for it now'))
    return latest[1]
  }

  async #finishMakes(): Promise<void> {
    await Promise.allSettled(this.#makes)
    // What was made goes its way in the turn after.
    await newsTakenIn()
  }
}
