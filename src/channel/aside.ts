/** The third stream of a run: raw bytes between the channel and their one consumer, with a window of their own, so that no other stream waits for it. */
import type { SandboxError } from '../contract/errors.js'
import { type FlowOptions, OutputCredit } from './credit.js'
import { OutputQueue } from './output-queue.js'

export const asideStream = 3

const done = { done: true, value: undefined } as const

export class Aside implements AsyncIterableIterator<Uint8Array, undefined> {
  readonly #credit: OutputCredit
  readonly #queue: OutputQueue

  /** `onTaken` is called whenever the consumer took bytes or they were dropped. */
  constructor(flow: FlowOptions, onTaken: () => void) {
    this.#credit = new OutputCredit(asideStream, flow)
    this.#queue = new OutputQueue((_, bytes) => {
      this.#credit.giveBack(bytes)
      onTaken()
    })
  }

  /** Whether the warden has told its end. */
  get isOver(): boolean {
    return this.#credit.isOver
  }

  get isEmpty(): boolean {
    return this.#queue.isEmpty
  }

  /** What the warden sent; nothing is the end. */
  receive(piece: Uint8Array): void {
    if (piece.length > 0) {
      this.#credit.spend(piece.length)
      this.#queue.push('stdout', piece)
    } else {
      this.#credit.end()
      this.#queue.end()
    }
  }

  fail(failure: SandboxError): void {
    this.#queue.fail(failure)
  }

  /** Drops what waits and all that comes; iteration ends. */
  discard(): void {
    this.#queue.discard()
  }

  [Symbol.asyncIterator](): this {
    this.#queue[Symbol.asyncIterator]()
    return this
  }

  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    const { value } = await this.#queue.next()
    return value ? { done: false, value: value.bytes } : done
  }

  return(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.discard()
    return Promise.resolve(done)
  }
}
