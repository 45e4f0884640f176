/** Flow control of both directions: who may send how much. */
import { SandboxError } from '../contract/errors.js'
import type { Allowance } from './allowance.js'
import { encodeFrame, encodeHeader, encodeNumberFrame, maxPieceBytes, type StreamNumber, windowBytes } from './frames.js'
import type { Outbox } from './outbox.js'

/** Waiting for this much credit keeps a slow reader from cutting a large write into crumbs. */
const worthSendingBytes = maxPieceBytes / 2
/** Small enough that little waits at the warden for the rest of its frame, which it moves to make room. What it passes on unread, or in parts, may come in the largest. */
const stdinPieceBytes = maxPieceBytes / 4
/** Up to here copying the payload behind its header is cheaper than a second write. */
const maxCopiedBytes = 2048

export interface FlowOptions {
  readonly run: number
  readonly outbox: Outbox
  /** Most bytes on their way in one direction; the usual window when not given. */
  readonly window?: number | undefined
}

/** What the warden may still send on one output stream. */
export class OutputCredit {
  readonly #outbox: Outbox
  readonly #address: { readonly run: number; readonly stream: StreamNumber }
  readonly #giveBackBytes: number
  #left: number
  #owed = 0
  #isWaiting = false
  #isOver = false

  constructor(stream: 1 | 2 | 3, { run, outbox, window = windowBytes }: FlowOptions) {
    this.#outbox = outbox
    this.#address = { run, stream }
    this.#left = window
    this.#giveBackBytes = window / 2
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** The warden sent these bytes. */
  spend(bytes: number): void {
    if (this.#isOver) throw new SandboxError('broken', `the warden sent output after the end of its stream, for run ${this.#address.run}`)
    if (bytes > this.#left)
      throw new SandboxError('broken', `the warden sent ${bytes} bytes of output with credit for ${this.#left}, for run ${this.#address.run}`)
    this.#left -= bytes
  }

  /** The consumer took these bytes. Credit goes back in halves of a window, and only while the warden reads. */
  giveBack(bytes: number): void {
    this.#owed += bytes
    if (this.#isOver || this.#isWaiting || this.#owed < this.#giveBackBytes) return
    if (this.#outbox.isFull) {
      this.#isWaiting = true
      this.#outbox.afterDrain(() => {
        this.#isWaiting = false
        this.giveBack(0)
      })
      return
    }
    this.#outbox.send(encodeNumberFrame('credit', this.#address, this.#owed))
    this.#left += this.#owed
    this.#owed = 0
  }

  end(): void {
    this.spend(0)
    this.#isOver = true
  }

  /** The run is over. */
  finish(): void {
    this.#isOver = true
  }
}

/** A run's stdin: writes go out one after the other, within the credit the warden gave. */
export class InputFlow {
  readonly #outbox: Outbox
  readonly #run: number
  readonly #window: number
  readonly #pieceBytes: number
  readonly #allowance: Allowance | undefined
  #credit: number
  #isEnded: boolean
  #isOver = false
  #turn: Promise<void> = Promise.resolve()
  #wake: (() => void) | undefined

  constructor(options: FlowOptions & { readonly isFed: boolean; readonly isPassed?: boolean; readonly allowance?: Allowance }) {
    this.#outbox = options.outbox
    this.#run = options.run
    this.#window = options.window ?? windowBytes
    this.#allowance = options.allowance
    this.#credit = this.#window
    this.#isEnded = !options.isFed
    this.#pieceBytes = options.isPassed ? maxPieceBytes : stdinPieceBytes
  }

  /** Nothing more will be written. */
  get isEnded(): boolean {
    return this.#isEnded
  }

  /** The warden handed these bytes to the program. */
  refill(bytes: number): void {
    this.#move(bytes)
    if (this.#credit > this.#window) throw new SandboxError('broken', `the warden gave credit beyond the window, for run ${this.#run}`)
    this.wake()
  }

  /** The program has ended: what it did not read is nobody's any more. */
  finish(): void {
    this.#isOver = true
    this.#move(this.#held)
    this.wake()
  }

  /** Lets who waits for credit look again. */
  wake(): void {
    this.#wake?.()
    this.#wake = undefined
  }

  /** False when the program had ended before it was handed all of it. */
  write(bytes: Uint8Array): Promise<boolean> {
    if (this.#isEnded && !this.#isOver) return Promise.reject(this.#outbox.failure ?? new SandboxError('conflict', 'the input of this run is closed'))
    return this.#inTurn(() => this.#feed(bytes))
  }

  end(): Promise<void> {
    if (this.#isEnded) return this.#turn
    this.#isEnded = true
    return this.#inTurn(async () => {
      if (await this.#mayGoOn()) await this.#outbox.deliver([encodeFrame('stdin', { run: this.#run })])
    })
  }

  #inTurn<Result>(act: () => Promise<Result>): Promise<Result> {
    const result = this.#turn.then(act)
    this.#turn = result.then(
      () => undefined,
      () => undefined,
    )
    return result
  }

  async #feed(bytes: Uint8Array): Promise<boolean> {
    if (this.#hasFinished()) return false
    for (let at = 0; at < bytes.length; ) {
      await this.#untilRoomFor(bytes.length - at)
      if (!(await this.#mayGoOn())) return false
      // Others may have taken it meanwhile.
      const batch = bytes.subarray(at, at + Math.max(0, this.#room))
      if (batch.length === 0) continue
      this.#move(-batch.length)
      at += batch.length
      // A copy is nobody else's memory, so nothing needs to be waited for but room, next time.
      if (batch.length <= maxCopiedBytes) this.#outbox.send(encodeFrame('stdin', { run: this.#run }, batch))
      else await this.#outbox.deliver(this.#cut(batch))
    }
    if (this.#outbox.failure && !this.#isOver) throw this.#outbox.failure
    return true
  }

  /** Looked at anew each time: it changes while something is awaited. */
  #hasFinished(): boolean {
    return this.#isOver
  }

  /** Of credit, and what it was allowed. */
  #move(credit: number): void {
    const before = this.#held
    this.#credit += credit
    this.#allowance?.change(before, this.#held)
  }

  get #held(): number {
    return this.#window - this.#credit
  }

  /** The most that may be on its way. */
  get #most(): number {
    return Math.min(this.#window, this.#allowance?.mostFor(this.#held) ?? this.#window)
  }

  /** What may be sent now. */
  get #room(): number {
    return this.#most - this.#held
  }

  async #untilRoomFor(bytes: number): Promise<void> {
    while (this.#room < Math.min(bytes, worthSendingBytes, this.#most / 2) && !this.#isOver && !this.#outbox.failure) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  /** False when the program needs nothing more; throws when the channel is over. */
  async #mayGoOn(): Promise<boolean> {
    if (!this.#isOver) await this.#outbox.whenWritable()
    if (this.#isOver) return false
    if (this.#outbox.failure) throw this.#outbox.failure
    return true
  }

  #cut(batch: Uint8Array): Uint8Array[] {
    const parts: Uint8Array[] = []
    for (let at = 0; at < batch.length; at += this.#pieceBytes) {
      const piece = batch.subarray(at, at + this.#pieceBytes)
      parts.push(encodeHeader('stdin', piece.length, { run: this.#run }), piece)
    }
    return parts
  }
}
