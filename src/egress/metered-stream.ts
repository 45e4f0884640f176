/** A connection whose bytes are counted, slowed down and cut off as they pass. Nothing is read from the socket while what was read still waits. */
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { timerLength } from '../contract/timer-length.js'
import type { Bucket, Meter } from './buckets.js'
import type { Clock } from './clock.js'
import { EgressError } from './egress-error.js'
import type { Intake } from './intake.js'

export interface MeteredOrder {
  readonly intake: Intake
  readonly meter: Meter
  readonly clock: Clock
  readonly idleTimeoutMs: number
  readonly onTraffic?: () => void
}

/** Takes bytes that stay as they are until it resolves. */
export type Sink = (bytes: Buffer) => Promise<void>

type Done = (error?: Error | null) => void

export class MeteredStream extends Duplex {
  readonly #socket: Socket
  readonly #order: MeteredOrder
  readonly #ended = new AbortController()
  #idle: NodeJS.Timeout | undefined
  #lastTraffic = 0
  #sink: Sink | undefined
  #onPoured: ((error?: Error) => void) | undefined
  /** Something waits for its turn in a bucket. */
  #isPassing = false
  #spent: EgressError | undefined
  #hasReceivedAll = false
  bytesUp = 0
  bytesDown = 0

  constructor(socket: Socket, order: MeteredOrder) {
    super({ allowHalfOpen: true, emitClose: true })
    this.#socket = socket
    this.#order = order
    order.intake.onBytes = (bytes) => this.#receive(bytes)
    socket.on('end', () => {
      this.#hasReceivedAll = true
      this.#goOn()
    })
    socket.on('error', (error: NodeJS.ErrnoException) => this.destroy(new EgressError('broken', `the connection broke off (${error.code ?? 'unknown'})`)))
    // After an end on both sides, what was received may still wait to be read.
    socket.on('close', () => {
      if (!(this.#hasReceivedAll && this.writableEnded)) this.destroy()
    })
    socket.pause()
    this.#watchIdle()
  }

  override _read(): void {
    if (!this.#isPassing && !this.#hasReceivedAll) this.#socket.resume()
  }

  /**
   * From now on what is received goes there, past the queue of this stream, of which nothing may have been read before. Resolves when all of it has been taken;
   * rejects when this stream, or the sink, breaks off.
   */
  pour(sink: Sink): Promise<void> {
    this.#sink = sink
    return new Promise((resolve, reject) => {
      this.#onPoured = (error) => (error === undefined ? resolve() : reject(error))
      this.once('close', () => reject(this.errored ?? new EgressError('broken', 'the connection broke off')))
      this.#goOn()
    })
  }

  /** Past the queue of this stream, which must be empty. Resolves when the socket has taken the bytes. */
  put(bytes: Buffer): Promise<void> {
    return new Promise((resolve, reject) => this._write(bytes, 'binary', (error) => (error ? reject(error) : resolve())))
  }

  /** False: nothing more is to be received for now. */
  #receive(bytes: Buffer): boolean {
    const { meter, intake } = this.#order
    const buckets = meter.down()
    if (buckets.length > 0) {
      this.#receiveSlowly(bytes, buckets)
      return false
    }
    const allowed = this.#spend('down', bytes)
    if (this.#sink) this.#drain(allowed, this.#sink)
    else if (allowed.length > 0) this.push(intake.give(allowed))
    if (!this.#sink) this.#endWhenSpent()
    return this.#isWanted
  }

  #receiveSlowly(bytes: Buffer, buckets: readonly Bucket[]): void {
    this.#isPassing = true
    const sink = this.#sink
    // Until it has passed nothing more is received, so it stays as it is where it is not kept.
    const whole = sink ? bytes : this.#order.intake.give(bytes)
    const passed = (error?: unknown): void => {
      this.#isPassing = false
      if (error === undefined) this.#goOn()
      else this.#onPoured?.(error as Error)
    }
    this.#pass(whole, { buckets, direction: 'down', send: sink ?? ((part) => void this.push(part)) }).then(() => passed(), passed)
  }

  #drain(bytes: Buffer, sink: Sink): void {
    const done = this.#order.intake.lend(bytes)
    sink(bytes).then(
      () => {
        done()
        if (!this.#endWhenSpent()) this.#goOn()
      },
      (error: unknown) => this.#onPoured?.(error as Error),
    )
  }

  get #isWanted(): boolean {
    if (this.#sink) return this.#order.intake.isFree
    return this.readableLength < this.readableHighWaterMark
  }

  /** Receives more, if there may be more and it is wanted; or tells the end, once all before it has passed. */
  #goOn(): void {
    if (this.#isPassing || this.destroyed) return
    if (!this.#hasReceivedAll) {
      if (this.#isWanted) this.#socket.resume()
    } else if (!this.readableEnded && this.#order.intake.isIdle) {
      this.push(null)
      if (!this.#sink) return
      this.#onPoured?.()
      // Nobody else will read its end.
      this.resume()
    }
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: Done): void {
    const buckets = this.#order.meter.up()
    if (buckets.length > 0) {
      const send = (part: Buffer) => new Promise<void>((resolve, reject) => this.#socket.write(part, (error) => (error ? reject(error) : resolve())))
      this.#pass(chunk, { buckets, direction: 'up', send }).then(() => done(), done)
      return
    }
    this.#socket.write(this.#spend('up', chunk), (error) => {
      if (error) done(error)
      else if (!this.#endWhenSpent()) done()
    })
  }

  async #pass(chunk: Buffer, { buckets, direction, send }: Passage): Promise<void> {
    const portion = Math.min(...buckets.map((bucket) => bucket.portion))
    for (let at = 0; at < chunk.length; at += portion) {
      const part = chunk.subarray(at, at + portion)
      const waitMs = Math.max(...buckets.map((bucket) => bucket.take(part.length)))
      if (waitMs > 0) await this.#order.clock.sleep(waitMs, this.#ended.signal)
      await send(this.#spend(direction, part))
      if (this.#endWhenSpent()) throw new EgressError('budget', 'spent')
    }
  }

  /** As many of these bytes as may pass. */
  #spend(direction: 'up' | 'down', bytes: Buffer): Buffer {
    const budgets = this.#order.meter.budgets()
    let allowed = this.destroyed ? 0 : bytes.length
    for (const { budget, words } of budgets) {
      if (budget.leftBytes >= allowed) continue
      allowed = budget.leftBytes
      this.#spent = new EgressError('budget', words)
    }
    for (const { budget } of budgets) budget.take(allowed)
    if (direction === 'up') this.bytesUp += allowed
    else this.bytesDown += allowed
    this.#lastTraffic = this.#order.clock.now()
    this.#order.onTraffic?.()
    return allowed === bytes.length ? bytes : bytes.subarray(0, allowed)
  }

  /** True, and all is over, when more was to pass than a budget had left. */
  #endWhenSpent(): boolean {
    if (this.#spent) this.destroy(this.#spent)
    return this.destroyed
  }

  override _final(done: Done): void {
    this.#socket.end(() => done())
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    clearTimeout(this.#idle)
    this.#ended.abort()
    this.#socket.destroy()
    this.#order.intake.close()
    done(error)
  }

  /** One timer that is set anew when it fires, not with each chunk. */
  #watchIdle(): void {
    this.#lastTraffic = this.#order.clock.now()
    const { idleTimeoutMs, clock } = this.#order
    const look = (): void => {
      const restMs = this.#lastTraffic + idleTimeoutMs - clock.now()
      if (restMs <= 0) this.destroy(new EgressError('timed-out', `nothing was carried for ${idleTimeoutMs} ms`))
      else this.#idle = setTimeout(look, timerLength(Math.ceil(restMs))).unref()
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
