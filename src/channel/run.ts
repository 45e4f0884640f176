/**
 * One run as the engine sees it: the state the warden's frames are judged by, and what its user holds.
 *
 * starting ──STARTED──▶ running ──EXITED, after the end of all streams──▶ over
 *     └─────FAILED─────────────────────────────────────────────────────────┘
 * With a gate it is: starting ──GATED──▶ gated ──our RELEASE──▶ released ──STARTED──▶ running, and what was ended before it ran
 * is told by EXITED instead of FAILED.
 * GONE answers KILL and may come at any time after it.
 */
import { SandboxError } from '../contract/errors.js'
import type { OutputEvent } from '../contract/run.js'
import { Aside, asideStream } from './aside.js'
import { type FlowOptions, InputFlow, OutputCredit } from './credit.js'
import { encodeFrame, encodeHeader, encodeNumberFrame, type Frame, readU32 } from './frames.js'
import { Latch } from './latch.js'
import type { Link, Party } from './link.js'
import { failureOf, parseExited, parseFailed, parsePid, type StartFailure, type WardenExit } from './messages.js'
import { OutputQueue } from './output-queue.js'
import { checkSize, encodeSize, type TerminalSize } from './start-payload.js'

export interface WardenProcess {
  /** As seen in the cell. */
  readonly pid: number
  /** One consumer; not reading it holds the program back. Leaving the iteration early discards the rest. */
  readonly output: AsyncIterable<OutputEvent, undefined>
  /** What it writes to its descriptor 4; undefined when it has no aside. One consumer; not reading it holds these writes back, and nothing else. */
  readonly aside: AsyncIterable<Uint8Array, undefined> | undefined
  /** Resolves when the bytes are on their way and their memory may be used again; to false when the program had ended before. Quiet when it closed its stdin. */
  write(bytes: Uint8Array): Promise<boolean>
  endInput(): Promise<void>
  /** Of its terminal; quiet when it has ended. Throws SandboxError('invalid') for no size, 'conflict' when it has no terminal. */
  resize(size: TerminalSize): void
  /** To the program's process group; quiet when it has ended. */
  signal(number: number): void
  /** Resolves when no process of the run is left. */
  kill(): Promise<void>
  /** From now on output is dropped, that of its aside too, and iteration ends. */
  discardOutput(): void
  /** Whether this process stays alive for it: it does, unless `unref` was called last. */
  ref(): void
  unref(): void
  /** Settles when the program has ended and its output was read to the end or discarded; rejects when the channel ends before. */
  readonly exited: Promise<WardenExit>
}

export type StartResult = { readonly started: true; readonly process: WardenProcess } | ({ readonly started: false } & StartFailure)

export interface RunOptions {
  readonly id: number
  readonly isFed: boolean
  readonly isGated: boolean
  readonly hasTerminal: boolean
  readonly hasAside: boolean
  /** It is no program but our own process, which serves files. */
  readonly isWorker: boolean
  readonly link: Link
}

const streamNames = { 1: 'stdout', 2: 'stderr' } as const
const maxSignal = 64

export class Run implements WardenProcess, Party {
  readonly id: number
  readonly output: OutputQueue
  readonly aside: Aside | undefined
  readonly #link: Link
  readonly #input: InputFlow
  readonly #stdout: OutputCredit
  readonly #stderr: OutputCredit
  readonly #isGated: boolean
  readonly #hasTerminal: boolean
  readonly #gated = new Latch<number | undefined>()
  readonly #started = new Latch<StartResult>()
  readonly #exited = new Latch<WardenExit>()
  #gone: Latch<void> | undefined
  #isGone = false
  #state: 'starting' | 'gated' | 'released' | 'running' | 'over' = 'starting'
  #pid = 0
  #exit: WardenExit | undefined
  #isLetGo = false

  constructor({ id, isFed, isGated, hasTerminal, hasAside, isWorker, link }: RunOptions) {
    const flow: FlowOptions = { run: id, outbox: link.outbox }
    this.id = id
    this.#link = link
    this.#isGated = isGated
    this.#hasTerminal = hasTerminal
    this.#input = new InputFlow({ ...flow, isFed, isPassed: isWorker })
    this.#stdout = new OutputCredit(1, flow)
    this.#stderr = new OutputCredit(2, flow)
    this.output = new OutputQueue((type, bytes) => {
      this.#creditOf(type).giveBack(bytes)
      this.#settleExit()
    })
    if (hasAside) this.aside = new Aside(flow, () => this.#settleExit())
    link.attach(this)
  }

  get pid(): number {
    return this.#pid
  }

  /** The pid of the program at its gate; undefined when it was over before. */
  get gated(): Promise<number | undefined> {
    return this.#gated.promise
  }

  get started(): Promise<StartResult> {
    return this.#started.promise
  }

  get exited(): Promise<WardenExit> {
    return this.#exited.promise
  }

  /** Whether it is to be killed, or was. */
  get isDoomed(): boolean {
    return this.#gone !== undefined
  }

  /** Whether it waits there, and is not to be killed. */
  get isAtGate(): boolean {
    return this.#state === 'gated' && !this.isDoomed
  }

  /** With what it is to become, where it was not told before. Quiet when the run is over already, or is to be. */
  release(told?: Uint8Array): void {
    if (!this.isAtGate) return
    this.#state = 'released'
    this.#link.outbox.send(encodeHeader('release', told?.length ?? 0, { run: this.id }), ...(told ? [told] : []))
  }

  write(bytes: Uint8Array): Promise<boolean> {
    return this.#input.write(bytes)
  }

  endInput(): Promise<void> {
    return this.#input.end()
  }

  resize(size: TerminalSize): void {
    checkSize(size)
    if (!this.#hasTerminal) throw new SandboxError('conflict', 'this run has no terminal')
    if (this.#state === 'running') this.#link.outbox.send(encodeFrame('resize', { run: this.id }, encodeSize(size)))
  }

  signal(number: number): void {
    if (!Number.isInteger(number) || number < 1 || number > maxSignal) throw new SandboxError('invalid', `signal ${number} is not between 1 and ${maxSignal}`)
    if (this.#state === 'running') this.#link.outbox.send(encodeNumberFrame('signal', { run: this.id }, number))
  }

  kill(): Promise<void> {
    if (!this.#gone) {
      this.#gone = new Latch()
      const { outbox } = this.#link
      if (outbox.failure) {
        this.#gone.reject(outbox.failure)
      } else {
        this.#link.attach(this)
        outbox.send(encodeFrame('kill', { run: this.id }))
      }
    }
    return this.#gone.promise
  }

  discardOutput(): void {
    this.output.discard()
    this.aside?.discard()
    this.#settleExit()
  }

  ref(): void {
    if (!this.#isLetGo) return
    this.#isLetGo = false
    this.#link.hold()
  }

  unref(): void {
    if (this.#isLetGo || this.#state === 'over') return
    this.#isLetGo = true
    this.#link.letGo()
  }

  receive(frame: Frame): void {
    if (frame.name === 'gone') this.#receiveGone()
    else if (this.#state === 'over') throw this.#outOfTurn(frame, 'after the end of the run')
    else if (this.#state !== 'running') this.#receiveAnswer(frame)
    else if (frame.name === 'output') this.#receiveOutput(frame)
    else if (frame.name === 'credit') this.#input.refill(readU32(frame.payload, 0))
    else if (frame.name === 'exited') this.#receiveExited(frame)
    else throw this.#outOfTurn(frame, 'after STARTED')
  }

  fail(failure: SandboxError): void {
    this.#gone?.reject(failure)
    if (this.#state === 'over') return
    this.#gated.reject(failure)
    this.#started.reject(failure)
    this.#exited.reject(failure)
    this.output.fail(failure)
    this.aside?.fail(failure)
    this.#input.wake()
  }

  #receiveAnswer(frame: Frame): void {
    if (frame.name === 'gated') this.#receiveGated(frame)
    else if (frame.name === 'started') this.#receiveStarted(frame)
    else if (frame.name === 'failed') this.#endBeforeStart(parseFailed(frame.payload))
    else if (frame.name === 'exited' && this.#isGated) this.#endBeforeStart(failureOf(parseExited(frame.payload)))
    else throw this.#outOfTurn(frame, 'before STARTED')
  }

  #receiveGated(frame: Frame): void {
    if (!this.#isGated) throw this.#outOfTurn(frame, 'which has no gate')
    if (this.#state !== 'starting') throw this.#outOfTurn(frame, 'twice')
    this.#pid = parsePid(frame.payload, 'GATED')
    this.#state = 'gated'
    this.#link.tell(this.#pid, frame.payload.subarray(4))
    this.#gated.resolve(this.#pid)
  }

  #receiveStarted(frame: Frame): void {
    if (this.#isGated && this.#state !== 'released') throw this.#outOfTurn(frame, 'before its release')
    const pid = parsePid(frame.payload, 'STARTED')
    if (this.#isGated && pid !== this.#pid) throw this.#outOfTurn(frame, `with pid ${pid} instead of ${this.#pid}`)
    this.#pid = pid
    this.#state = 'running'
    this.#started.resolve({ started: true, process: this })
  }

  #endBeforeStart(failure: StartFailure): void {
    this.#finish()
    this.#gated.resolve(undefined)
    this.#started.resolve({ started: false, ...failure })
  }

  #receiveOutput(frame: Frame): void {
    const { stream, payload } = frame
    if (stream === asideStream) {
      if (!this.aside) throw this.#outOfTurn(frame, 'on a third stream, which it does not have')
      this.aside.receive(payload)
      return
    }
    const type = streamNames[stream as 1 | 2]
    const credit = this.#creditOf(type)
    if (payload.length > 0) {
      credit.spend(payload.length)
      this.output.push(type, payload)
    } else {
      credit.end()
      if (this.#stdout.isOver && this.#stderr.isOver) this.output.end()
    }
  }

  #receiveExited(frame: Frame): void {
    if (!this.#stdout.isOver || !this.#stderr.isOver || this.aside?.isOver === false) throw this.#outOfTurn(frame, 'before the end of its output')
    this.#exit = parseExited(frame.payload)
    this.#finish()
    this.#settleExit()
  }

  #receiveGone(): void {
    if (!this.#gone || this.#isGone) throw new SandboxError('broken', `the warden sent gone for run ${this.id} without being asked`)
    this.#isGone = true
    this.#gone.resolve()
    this.#link.detach(this)
  }

  #finish(): void {
    this.ref()
    this.#state = 'over'
    this.#input.finish()
    this.#link.detach(this)
  }

  #settleExit(): void {
    if (this.#exit && this.output.isEmpty && this.aside?.isEmpty !== false) this.#exited.resolve(this.#exit)
  }

  #creditOf(type: OutputEvent['type']): OutputCredit {
    return type === 'stdout' ? this.#stdout : this.#stderr
  }

  #outOfTurn(frame: Frame, when: string): SandboxError {
    return new SandboxError('broken', `the warden sent ${frame.name} for run ${this.id} ${when}`)
  }
}
