/**
 * Puts what a kernel prints and what it replies back into one order.
 *
 * Output comes by two streams, replies by a third way. The kernel prints marks on both streams, counted from 0. A mark is a gate: what stands behind it on either stream is passed on
 * when both streams have reached it and, where a frame follows it, that frame was passed on. So a result stands between what was printed before it and what was printed after.
 * A gate that does not open in a time is opened, and what waits behind gates is bounded: then the order is lost, and nothing else.
 */
import type { OutputEvent } from '../contract/run.js'
import type { EventQueue } from './event-queue.js'
import { KernelFault } from './frames.js'
import { MarkScanner, type Stretch } from './marks.js'

type StreamName = OutputEvent['type']
const streamNames: readonly StreamName[] = ['stdout', 'stderr']

/** Time as the context has it: it stands still while its sandbox does. */
export interface Timers {
  now(): number
  after(ms: number, act: () => void): { cancel(): void }
}

/** How long a gate may stay shut with something waiting at it. */
const gateMs = 1000
/** Of output that waits, and of gates that it waits at. */
const mostHeldBytes = 2 ** 20
const mostGates = 10_000

interface Pending {
  readonly mark: number
  readonly pass: () => void
  readonly resolve: () => void
}

interface Held extends Stretch {
  readonly type: StreamName
}

interface Current {
  readonly queue: EventQueue
  readonly scanners: Readonly<Record<StreamName, MarkScanner>>
  /** Marks that a frame follows, and whose gate is shut. */
  readonly framed: Set<number>
  /** The latest gate that is open, as all before it are. */
  opened: number
  /** The latest mark that a frame named. */
  named: number
  /** Output behind a gate that is shut, in the order of arrival. */
  held: Held[]
  heldBytes: number
  readonly begun: Promise<void>
  readonly tellBegun: () => void
}

export class EventOrder {
  readonly #timers: Timers
  #current: Current | undefined
  #pending: Pending | undefined
  #patience: { cancel(): void } | undefined
  #areStreamsOver = false
  #lateBytes = 0

  constructor(timers: Timers) {
    this.#timers = timers
  }

  /** What was printed while no execution ran, and belongs to none. */
  get lateBytes(): number {
    return this.#lateBytes
  }

  /** From its mark 0 on, what is printed is the output of this execution. */
  begin(token: string, queue: EventQueue): void {
    const framed = new Set<number>()
    const scanner = (): MarkScanner => new MarkScanner(token, (mark) => framed.add(mark))
    let tellBegun = (): void => undefined
    const begun = new Promise<void>((resolve) => (tellBegun = resolve))
    const scanners = { stdout: scanner(), stderr: scanner() }
    this.#current = { queue, scanners, framed, opened: 0, named: 0, held: [], heldBytes: 0, begun, tellBegun }
  }

  /** Resolves when the execution was seen to begin, or is over. */
  get begun(): Promise<void> {
    return this.#current?.begun ?? Promise.resolve()
  }

  /** What is behind this mark, which is the execution's last, is nobody's; without one, the execution broke off and all that there is belongs to it. */
  finish(mark = Number.POSITIVE_INFINITY): void {
    const current = this.#current
    if (!current) return
    for (const type of streamNames) this.#handOn(current, type, current.scanners[type].flush())
    this.#release(current, mark - 1)
    this.#lateBytes += current.heldBytes
    this.#current = undefined
    current.tellBegun()
    this.#stopWaiting()
    this.#pending?.resolve()
    this.#pending = undefined
  }

  output({ type, bytes }: OutputEvent): void {
    const current = this.#current
    if (!current) {
      this.#lateBytes += bytes.length
      return
    }
    this.#handOn(current, type, current.scanners[type].push(bytes))
    if (streamNames.every((each) => current.scanners[each].reached >= 0)) current.tellBegun()
    this.#openGates(current)
    if (current.heldBytes > mostHeldBytes || current.scanners[type].reached - current.opened > mostGates)
      this.#forceGates(current, current.scanners[type].reached)
  }

  /** Nothing more will be printed: no mark is waited for. */
  endStreams(): void {
    this.#areStreamsOver = true
    if (this.#current && this.#pending) this.#forceGates(this.#current, this.#pending.mark)
  }

  /** Passes a frame on when its turn has come; resolves then. Throws KernelFault for a frame with an earlier mark than the one before. */
  frame(mark: number, pass: () => void): Promise<void> {
    const current = this.#current
    if (!current || mark <= current.named) throw new KernelFault(`it sent a frame with mark ${mark} out of turn`)
    current.named = mark
    // Frames come in order: none follows an earlier mark any more.
    for (const framed of current.framed) if (framed < mark) current.framed.delete(framed)
    return new Promise((resolve) => {
      this.#pending = { mark, pass, resolve }
      if (this.#areStreamsOver) this.#forceGates(current, mark)
      else this.#openGates(current)
    })
  }

  #handOn(current: Current, type: StreamName, stretches: readonly Stretch[]): void {
    for (const stretch of stretches) {
      if (stretch.after < 0) this.#lateBytes += stretch.bytes.length
      else if (stretch.after <= current.opened) emit(current.queue, type, stretch.bytes)
      else {
        current.held.push({ type, ...stretch })
        current.heldBytes += stretch.bytes.length
      }
    }
  }

  #openGates(current: Current): void {
    const before = current.opened
    while (this.#current === current && this.#openNext(current));
    if (this.#current !== current) return
    if (current.opened > before) this.#stopWaiting()
    if (this.#pending !== undefined || current.held.length > 0) this.#wait(current)
  }

  /** False when nothing can be passed on now. As many gates at once as can be: a guest says how many there are. */
  #openNext(current: Current): boolean {
    const pending = this.#pending
    if (pending && pending.mark <= current.opened) return this.#pass(pending)
    const next = current.opened + 1
    const reached = Math.min(...streamNames.map((type) => current.scanners[type].reached))
    const free = Math.min(reached, firstBehind(current.opened, current.framed) - 1, (pending?.mark ?? Number.POSITIVE_INFINITY) - 1)
    if (free >= next) return this.#open(current, free)
    if (pending?.mark !== next || reached < next) return false
    this.#pass(pending)
    return this.#current === current && this.#open(current, next)
  }

  #open(current: Current, mark: number): boolean {
    current.framed.delete(mark)
    current.opened = mark
    this.#release(current, mark)
    return true
  }

  #pass(pending: Pending): boolean {
    this.#pending = undefined
    pending.pass()
    pending.resolve()
    return true
  }

  /** What is behind this mark or an earlier one, by mark, and of one mark in the order of arrival. */
  #release(current: Current, mark: number): void {
    const ready = current.held.filter(({ after }) => after <= mark).sort((one, other) => one.after - other.after)
    if (ready.length === 0) return
    current.held = current.held.filter(({ after }) => after > mark)
    for (const { type, bytes } of ready) {
      current.heldBytes -= bytes.length
      emit(current.queue, type, bytes)
    }
  }

  /** A reader that holds everything back holds the marks back too: that is no reason to do without them. */
  #wait(current: Current): void {
    this.#patience ??= this.#timers.after(gateMs, () => {
      this.#patience = undefined
      if (this.#current !== current) return
      if (current.queue.hasRoom) this.#forceGates(current, current.opened + 1)
      else this.#wait(current)
    })
  }

  #stopWaiting(): void {
    this.#patience?.cancel()
    this.#patience = undefined
  }

  /** Opens them up to this one, whatever is missing there. */
  #forceGates(current: Current, mark: number): void {
    for (const type of streamNames) this.#handOn(current, type, current.scanners[type].giveUp(mark))
    for (const framed of current.framed) if (framed <= mark) current.framed.delete(framed)
    this.#openGates(current)
  }
}

function emit(queue: EventQueue, type: StreamName, bytes: Uint8Array): void {
  queue.push({ type, bytes }, bytes.length)
}

function firstBehind(opened: number, marks: ReadonlySet<number>): number {
  let first = Number.POSITIVE_INFINITY
  for (const mark of marks) if (mark > opened && mark < first) first = mark
  return first
}
