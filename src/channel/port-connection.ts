/**
 * One connection to a port of the cell, as the engine sees it.
 *
 * connecting ──CONNECTED──▶ open ──CLOSED──▶ over
 *     └────────FAILED─────────────────────────┘
 * CLOSED without an errno comes only after the end of both directions. GONE answers KILL and may come at any time after it.
 */
import { SandboxError } from '../contract/errors.js'
import { type FlowOptions, InputFlow, OutputCredit } from './credit.js'
import { encodeFrame, type Frame, readU32 } from './frames.js'
import { Latch } from './latch.js'
import type { Link, Party } from './link.js'
import { parseClosed, parseRefusal } from './messages.js'
import { OutputQueue } from './output-queue.js'

export interface WardenConnection {
  /** What the other side sends, until its end. One consumer; not reading it holds the other side back. Throws when the connection broke off. */
  readonly output: AsyncIterable<Uint8Array>
  /** Resolves when the bytes are on their way and their memory may be used again; rejects when the connection broke off. */
  write(bytes: Uint8Array): Promise<void>
  /** Of this direction. */
  end(): Promise<void>
  /** Resolves when both directions have ended, or after `destroy`; rejects with SandboxError('conflict') when the connection broke off. */
  readonly closed: Promise<void>
  /** Ends both directions at once. Resolves when nothing is left of it. Idempotent. */
  destroy(): Promise<void>
}

export interface PortConnectionOptions {
  readonly id: number
  readonly port: number
  readonly link: Link
  /** Of what it sends; the usual one when not given. */
  readonly window?: number
  /** A program inside made it. Then it does not keep this process alive by itself. */
  readonly isOpen?: boolean
  /** At once when its last frame is heard: the next may be that of another in its place. */
  readonly onOver?: () => void
}

export class PortConnection implements WardenConnection, Party {
  readonly id: number
  readonly #port: number
  readonly #link: Link
  readonly #input: InputFlow
  readonly #credit: OutputCredit
  readonly #queue: OutputQueue
  readonly #connected = new Latch<this>()
  readonly #closed = new Latch<void>()
  #gone: Latch<void> | undefined
  #isGone = false
  readonly #isGuests: boolean
  readonly #onOver: (() => void) | undefined
  #state: 'connecting' | 'open' | 'over'
  #failure: SandboxError | undefined

  constructor({ id, port, link, window, isOpen = false, onOver }: PortConnectionOptions) {
    const flow: FlowOptions = { run: id, outbox: link.outbox }
    this.id = id
    this.#port = port
    this.#link = link
    this.#input = new InputFlow({ ...flow, isFed: true, isPassed: true, allowance: link.allowance })
    this.#credit = new OutputCredit(1, { ...flow, window })
    this.#queue = new OutputQueue((_, bytes) => this.#credit.giveBack(bytes))
    this.#isGuests = isOpen
    this.#onOver = onOver
    this.#state = isOpen ? 'open' : 'connecting'
    link.attach(this)
    if (isOpen) link.letGo()
  }

  get connected(): Promise<this> {
    return this.#connected.promise
  }

  get closed(): Promise<void> {
    return this.#closed.promise
  }

  get output(): AsyncIterable<Uint8Array> {
    return bytesOf(this.#queue)
  }

  async write(bytes: Uint8Array): Promise<void> {
    if (!this.#failure) await this.#input.write(bytes)
    if (this.#failure) throw this.#failure
  }

  end(): Promise<void> {
    return this.#input.end()
  }

  destroy(): Promise<void> {
    this.#queue.discard()
    if (this.#gone) return this.#gone.promise
    this.#gone = new Latch()
    const { outbox } = this.#link
    if (outbox.failure) this.#gone.reject(outbox.failure)
    else if (this.#state === 'over') this.#gone.resolve()
    else {
      this.#link.attach(this)
      outbox.send(encodeFrame('kill', { run: this.id }))
    }
    return this.#gone.promise
  }

  receive(frame: Frame): void {
    if (frame.name === 'gone') this.#receiveGone()
    else if (this.#state === 'over') throw this.#outOfTurn(frame, 'after its end')
    else if (this.#state === 'connecting') this.#receiveAnswer(frame)
    else if (frame.name === 'output') this.#receiveOutput(frame)
    else if (frame.name === 'credit') this.#input.refill(readU32(frame.payload, 0))
    else if (frame.name === 'closed') this.#receiveClosed(frame)
    else throw this.#outOfTurn(frame, 'after CONNECTED')
  }

  fail(failure: SandboxError): void {
    this.#gone?.reject(failure)
    if (this.#state === 'over') return
    this.#failure = failure
    this.#connected.reject(failure)
    this.#closed.reject(failure)
    this.#queue.fail(failure)
    this.#input.wake()
  }

  #receiveAnswer(frame: Frame): void {
    if (frame.name === 'connected') {
      this.#state = 'open'
      this.#connected.resolve(this)
    } else if (frame.name === 'failed') {
      const refusal = parseRefusal(frame.payload, this.#port)
      this.#finish()
      this.#connected.reject(refusal)
    } else throw this.#outOfTurn(frame, 'before CONNECTED')
  }

  #receiveOutput(frame: Frame): void {
    const { stream, payload } = frame
    if (stream !== 1) throw this.#outOfTurn(frame, 'on a second stream')
    if (payload.length > 0) {
      this.#credit.spend(payload.length)
      this.#queue.push('stdout', payload)
    } else {
      this.#credit.end()
      this.#queue.end()
    }
  }

  #receiveClosed(frame: Frame): void {
    const why = parseClosed(frame.payload, this.#port)
    if (!why && !(this.#credit.isOver && this.#input.isEnded)) throw this.#outOfTurn(frame, 'before the end of both directions')
    if (why && !this.#gone) this.#breakOff(why)
    else this.#closed.resolve()
    this.#finish()
  }

  #breakOff(why: SandboxError): void {
    this.#failure = why
    this.#queue.fail(why)
    this.#closed.reject(why)
  }

  #receiveGone(): void {
    if (!this.#gone || this.#isGone) throw new SandboxError('broken', `the warden sent gone for connection ${this.id} without being asked`)
    if (this.#state !== 'over') throw new SandboxError('broken', `the warden sent gone for connection ${this.id} before its end`)
    this.#isGone = true
    this.#gone.resolve()
    this.#link.detach(this)
  }

  #finish(): void {
    this.#state = 'over'
    this.#credit.finish()
    this.#input.finish()
    this.#onOver?.()
    if (this.#isGuests) this.#link.hold()
    this.#link.detach(this)
  }

  #outOfTurn(frame: Frame, when: string): SandboxError {
    return new SandboxError('broken', `the warden sent ${frame.name} for connection ${this.id} ${when}`)
  }
}

async function* bytesOf(queue: OutputQueue): AsyncGenerator<Uint8Array, undefined> {
  for await (const { bytes } of queue) yield bytes
}
