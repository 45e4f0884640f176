/** A connection whose bytes are counted, slowed down and cut off as they pass. Nothing is read from the socket while what was read still waits. */
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import type { Bucket, Meter } from './buckets.js'
import type { Clock } from './clock.js'
import { EgressError } from './egress-error.js'

export interface MeteredOrder {
  readonly meter: Meter
  readonly clock: Clock
  readonly idleTimeoutMs: number
  readonly onTraffic?: () => void
}

type Done = (error?: Error | null) => void

export class MeteredStream extends Duplex {
  readonly #socket: Socket
  readonly #order: MeteredOrder
  readonly #ended = new AbortController()
  #idle: NodeJS.Timeout | undefined
  #lastTraffic = 0
  #isReceiving = false
  #hasReceivedAll = false
  bytesUp = 0
  bytesDown = 0

  constructor(socket: Socket, order: MeteredOrder) {
    super({ allowHalfOpen: true, emitClose: true })
    this.#socket = socket
    this.#order = order
    socket.on('data', (chunk: Buffer) => this.#receive(chunk))
    socket.on('end', () => this.#receiveEnd())
    socket.on('error', (error: NodeJS.ErrnoException) => this.destroy(new EgressError('broken', `the connection broke off (${error.code ?? 'unknown'})`)))
    // After an end on both sides, what was received may still wait to be read.
    socket.on('close', () => {
      if (!(this.#hasReceivedAll && this.writableEnded)) this.destroy()
    })
    socket.pause()
    this.#watchIdle()
  }

  override _read(): void {
    if (!this.#isReceiving) this.#socket.resume()
  }

  #receive(chunk: Buffer): void {
    const down = this.#order.meter.down()
    if (down.length === 0) {
      if (this.#spend('down', chunk.length) && !this.push(chunk)) this.#socket.pause()
      return
    }
    this.#socket.pause()
    this.#isReceiving = true
    const received = (): void => {
      this.#isReceiving = false
      if (this.#hasReceivedAll) this.push(null)
      else if (this.readableLength < this.readableHighWaterMark) this.#socket.resume()
    }
    const send = (part: Buffer): void => void this.push(part)
    // Rejects only once all is over.
    this.#pass(chunk, { buckets: down, direction: 'down', send }).then(received, () => undefined)
  }

  /** A socket that is held back tells its end all the same. */
  #receiveEnd(): void {
    this.#hasReceivedAll = true
    if (!this.#isReceiving) this.push(null)
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: Done): void {
    const up = this.#order.meter.up()
    if (up.length === 0) {
      if (this.#spend('up', chunk.length)) this.#socket.write(chunk, done)
      return
    }
    const send = (part: Buffer) => new Promise<void>((resolve, reject) => this.#socket.write(part, (error) => (error ? reject(error) : resolve())))
    this.#pass(chunk, { buckets: up, direction: 'up', send }).then(() => done(), done)
  }

  async #pass(chunk: Buffer, { buckets, direction, send }: Passage): Promise<void> {
    const portion = Math.min(...buckets.map((bucket) => bucket.portion))
    for (let at = 0; at < chunk.length; at += portion) {
      const part = chunk.subarray(at, at + portion)
      const waitMs = Math.max(...buckets.map((bucket) => bucket.take(part.length)))
      if (waitMs > 0) await this.#order.clock.sleep(waitMs, this.#ended.signal)
      if (!this.#spend(direction, part.length)) throw new EgressError('budget', 'spent')
      await send(part)
    }
  }

  /** False, and all is over, when a budget is spent. */
  #spend(direction: 'up' | 'down', bytes: number): boolean {
    if (this.destroyed) return false
    for (const { budget, words } of this.#order.meter.budgets()) {
      if (budget.take(bytes)) continue
      this.destroy(new EgressError('budget', words))
      return false
    }
    if (direction === 'up') this.bytesUp += bytes
    else this.bytesDown += bytes
    this.#lastTraffic = this.#order.clock.now()
    this.#order.onTraffic?.()
    return true
  }

  override _final(done: Done): void {
    this.#socket.end(() => done())
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    clearTimeout(this.#idle)
    this.#ended.abort()
    this.#socket.destroy()
    done(error)
  }

  /** One timer that is set anew when it fires, not with each chunk. */
  #watchIdle(): void {
    this.#lastTraffic = this.#order.clock.now()
    const { idleTimeoutMs, clock } = this.#order
    const look = (): void => {
      const restMs = this.#lastTraffic + idleTimeoutMs - clock.now()
      if (restMs <= 0) this.destroy(new EgressError('timed-out', `nothing was carried for ${idleTimeoutMs} ms`))
      else this.#idle = setTimeout(look, Math.ceil(restMs)).unref()
    }
    look()
  }

  /** What users of sockets expect to find; time is ours to keep, and delays were switched off when it was dialled. */
  setNoDelay(): this {
    return this
  }

  setKeepAlive(): this {
    return this
  }

  setTimeout(): this {
    return this
  }

  ref(): this {
    this.#socket.ref()
    return this
  }

  unref(): this {
    this.#socket.unref()
    return this
  }
}

interface Passage {
  readonly buckets: readonly Bucket[]
  readonly direction: 'up' | 'down'
  readonly send: (part: Buffer) => Promise<void> | void
}
