/**
 * The writing end of the channel. Frames of one tick leave in one system call, and whoever has much to say waits while the channel is full, so
 * that a warden that does not read cannot make this process hold more than each caller handed in.
 */
import type { CellChannel } from '../contract/driver.js'
import type { SandboxError } from '../contract/errors.js'

export class Outbox {
  readonly #channel: CellChannel
  readonly #afterDrain = new Set<() => void>()
  readonly #inFlight = new Set<() => void>()
  #isCorked = false
  #failure: SandboxError | undefined

  constructor(channel: CellChannel) {
    this.#channel = channel
    channel.on('drain', () => wakeAll(this.#afterDrain))
  }

  /** Why nothing can be sent any more. */
  get failure(): SandboxError | undefined {
    return this.#failure
  }

  get isFull(): boolean {
    return this.#failure === undefined && this.#channel.writableNeedDrain
  }

  /** Calls back once, when the channel has room again or is over. Only while `isFull`. */
  afterDrain(wake: () => void): void {
    this.#afterDrain.add(wake)
  }

  async whenWritable(): Promise<void> {
    while (this.isFull) await new Promise<void>((resolve) => this.afterDrain(resolve))
  }

  /** Dropped when the channel is over. */
  send(...parts: readonly Uint8Array[]): void {
    if (this.#failure) return
    this.#cork()
    for (const part of parts) this.#channel.write(part)
  }

  /** Resolves when the channel has taken the bytes and their memory may be used again, or when it is over. */
  deliver(parts: readonly Uint8Array[]): Promise<void> {
    if (this.#failure) return Promise.resolve()
    return new Promise((resolve) => {
      this.#inFlight.add(resolve)
      this.#cork()
      const taken = (): void => {
        this.#inFlight.delete(resolve)
        resolve()
      }
      const last = parts.length - 1
      parts.forEach((part, index) => this.#channel.write(part, index === last ? taken : undefined))
    })
  }

  /** From now on nothing is sent, and nobody waits. */
  stop(failure: SandboxError): void {
    if (this.#failure) return
    this.#failure = failure
    wakeAll(this.#afterDrain)
    wakeAll(this.#inFlight)
  }

  #cork(): void {
    if (this.#isCorked) return
    this.#isCorked = true
    this.#channel.cork()
    process.nextTick(() => {
      this.#isCorked = false
      this.#channel.uncork()
    })
  }
}

function wakeAll(waiting: Set<() => void>): void {
  const woken = [...waiting]
  waiting.clear()
  for (const wake of woken) wake()
}
