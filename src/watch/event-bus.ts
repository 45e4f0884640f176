/**
 * What happens on a platform, for any number of readers. It is kept once, whoever reads it: a reader is a place in what is kept, so that a thousand that
 * wait cost nothing, and one that is slow holds nobody up and takes no memory; what it was too slow for is gone, and it is told how much that was.
 *
 * Each tenant has a window of its own, with numbers of its own: another that is noisy pushes nothing out of it, and is not seen in its numbers.
 */
import { randomBytes } from 'node:crypto'
import { checkCallOptions } from '../contract/call-options.js'
import { SandboxError } from '../contract/errors.js'
import { type EventSink, type ListenOptions, type PlatformEvent, type PlatformEventFacts, type PlatformEvents, platformEventTypes } from '../contract/events.js'
import { EventReader } from './event-reader.js'
import { EventWindow, type KeptEvent } from './event-window.js'

export interface EventBusOptions {
  /** So many are kept, and of each tenant so many again. */
  readonly keep?: number
}

/** More are forgotten, the one that something was told of longest ago first. */
const mostTenants = 1024
const cursorPattern = /^([0-9a-f]{12})\.(-1|0|[1-9]\d{0,14})$/
const known: readonly (keyof ListenOptions)[] = ['signal', 'after', 'types', 'sandbox', 'agent', 'tenant']

interface Channel {
  readonly window: EventWindow
  readonly readers: Set<EventReader>
}

export interface EventBus extends PlatformEvents, EventSink {
  /** Nothing is told any more, and readers end once they have read what was. Idempotent. */
  close(): void
  /** As the platform of one tenant has it: all that is told there is that tenant's, and nothing else is read. Its end is not that of the bus. */
  of(tenant: string): PlatformEvents & EventSink & { close(): void }
  /** Of readers, for those who watch it. */
  readonly readers: number
}

export function createEventBus({ keep = 1024 }: EventBusOptions = {}): EventBus {
  return new Bus(keep)
}

class Bus implements EventBus {
  /** Numbers begin again with every platform, and a cursor says which one it is of. */
  readonly #epoch = randomBytes(6).toString('hex')
  readonly #keep: number
  readonly #all: Channel
  /** The one that something was told of last is last. */
  readonly #tenants = new Map<string, Channel>()
  #isOver = false

  constructor(keep: number) {
    this.#keep = keep
    this.#all = channelOf(keep)
  }

  get readers(): number {
    return [this.#all, ...this.#tenants.values()].reduce((sum, { readers }) => sum + readers.size, 0)
  }

  tell(facts: PlatformEventFacts): void {
    if (this.#isOver) return
    const event = { ...facts, at: new Date().toISOString() }
    add(this.#all, event)
    if (!('tenant' in facts)) return
    const tenant = this.#tenant(facts.tenant)
    this.#tenants.delete(facts.tenant)
    this.#tenants.set(facts.tenant, tenant)
    add(tenant, event)
  }

  listen(options: ListenOptions = {}): AsyncIterableIterator<PlatformEvent> {
    const { after, tenant, types, ...rest } = checkCallOptions(options, known)
    const strange = types?.find((type) => !platformEventTypes.includes(type))
    if (strange !== undefined) throw new SandboxError('invalid', `types: there are no events '${strange.slice(0, 40)}'`)
    const channel = tenant === undefined ? this.#all : this.#tenant(tenant)
    const reader = new EventReader({
      window: channel.window,
      ...this.#placeAfter(after, channel.window),
      options: { ...rest, ...(types && { types }) },
      cursorOf: (number) => `${this.#epoch}.${number}`,
      onLeft: (left) => channel.readers.delete(left),
    })
    if (this.#isOver) reader.end()
    else if (!rest.signal?.aborted) channel.readers.add(reader)
    return reader
  }

  of(tenant: string): ReturnType<EventBus['of']> {
    return {
      tell: (facts) => this.tell({ ...facts, tenant } as PlatformEventFacts),
      listen: (options = {}) => this.listen({ ...options, tenant }),
      close: () => undefined,
    }
  }

  close(): void {
    this.#isOver = true
    for (const { readers } of [this.#all, ...this.#tenants.values()]) {
      for (const reader of readers) reader.end()
      readers.clear()
    }
  }

  /** One of another platform, or of a window that was forgotten, tells that something was missed, not how much. */
  #placeAfter(cursor: string | undefined, window: EventWindow): { readonly from: number; readonly hasLost: boolean } {
    if (cursor === undefined) return { from: window.next, hasLost: false }
    if (cursor === 'oldest') return { from: window.first, hasLost: false }
    const [, epoch, number] = cursorPattern.exec(cursor) ?? []
    if (epoch === undefined) throw new SandboxError('invalid', 'after: is no cursor of an event')
    const from = Number(number) + 1
    return epoch === this.#epoch && from <= window.next ? { from, hasLost: false } : { from: window.first, hasLost: true }
  }

  #tenant(name: string): Channel {
    const channel = this.#tenants.get(name) ?? channelOf(this.#keep)
    this.#tenants.set(name, channel)
    for (const [oldest, { readers }] of this.#tenants) {
      if (this.#tenants.size <= mostTenants) break
      if (readers.size === 0 && oldest !== name) this.#tenants.delete(oldest)
    }
    return channel
  }
}

function channelOf(keep: number): Channel {
  return { window: new EventWindow(keep), readers: new Set() }
}

function add({ window, readers }: Channel, event: KeptEvent): void {
  window.add(event)
  for (const reader of readers) reader.notice(event)
}
