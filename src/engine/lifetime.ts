/**
 * How long a sandbox lives, and whether it runs or stands still.
 *
 * Its lifetime is counted while it runs. Paused, it keeps what is left of it, and another time begins to count: nothing stays paused for ever. One
 * act follows another: a pause that is asked for while a resume is under way waits for it. No act waits for the sandbox's end, which waits for all acts.
 */
import { SandboxError } from '../contract/errors.js'
import type { SandboxInfo } from '../contract/platform.js'
import type { Policy } from '../contract/policy.js'
import { durationInUnits } from '../contract/quantities.js'
import { holdLifetime, parseLifetime } from '../policy/lifetime.js'
import { Deadline } from './deadline.js'
import { SandboxEvents } from './events.js'
import { Activity, IdleWatch } from './idle.js'
import { LifetimeClock } from './lifetime-clock.js'
import { Moment } from './moment.js'

/** What lets a sandbox that stands still go on. */
const resumeHint = 'await sandbox.resume()'

/** One way to stand still. */
interface Standstill {
  /** Throws when it did not come about; then it goes on. */
  stop(): Promise<void>
  /** Throws when it did not come about; then it stands still. */
  goOn(): Promise<void>
}

/** Standing still for a moment, of which nothing is told. */
export interface Stillness<T> {
  /** Resolves to false where it cannot be done; then all goes on. */
  readonly stop: () => Promise<boolean>
  readonly goOn: () => Promise<void>
  /** Done meanwhile. */
  readonly act: () => Promise<T>
}

export interface LifetimeOrder {
  readonly info: SandboxInfo
  readonly policy: Policy
  /** Its programs are stopped, and go on where they were. */
  readonly memory: Standstill
  /** Its programs end; only files are kept. */
  readonly files: Standstill
  /** Processor time that its programs have used so far; undefined when nobody can tell. */
  readonly worked: () => number | undefined
  /** Why programs cannot be stopped; undefined when they can. */
  readonly cannotPause: string | undefined
  readonly maxPausedMs: number
  /** Settles when nothing is half started. */
  readonly settled: () => Promise<unknown>
  /** Its time is over, and with it the sandbox. */
  end(why: SandboxError): void
}

export class Lifetime {
  /** What is in it goes by this. */
  readonly clock = new LifetimeClock()
  readonly activity = new Activity()
  readonly events = new SandboxEvents()
  readonly #order: LifetimeOrder
  #info: SandboxInfo
  #bornAt: number
  #idle: IdleWatch | undefined
  #deadline: Deadline
  #expiresAt: string
  /** What is left of its lifetime while it is paused; undefined while it runs. */
  #leftMs: number | undefined
  /** The way in which it stands still while it is paused. */
  #still: 'memory' | 'files' = 'memory'
  /** From the moment that it is to stand still: what begins now would be caught half-way. */
  #isStill = false
  #isUsedUp = false
  #isOver = false
  readonly #moment = new Moment()
  #acting: Promise<unknown> = Promise.resolve()

  constructor(order: LifetimeOrder) {
    const { spec, expiresAt } = order.info
    this.#order = order
    this.#info = order.info
    this.#bornAt = this.clock.now()
    this.#expiresAt = expiresAt
    this.#deadline = new Deadline(spec.lifetimeMs, () => this.#useUp())
    if (spec.idleMs !== undefined) this.#idle = this.#watchIdleness(spec.idleMs)
  }

  /** It is somebody's from now on, and its times begin. */
  beginAnew(info: SandboxInfo): void {
    const { lifetimeMs, idleMs } = info.spec
    this.#info = info
    this.#bornAt = this.clock.now()
    this.#count(lifetimeMs, () => this.#useUp())
    this.#expiresAt = info.expiresAt
    this.#idle?.hold()
    this.#idle = idleMs === undefined ? undefined : this.#watchIdleness(idleMs)
  }

  /** What of a sandbox's info it has a say in. */
  get info(): Pick<SandboxInfo, 'state' | 'expiresAt'> {
    return { state: this.#leftMs === undefined ? 'running' : 'paused', expiresAt: this.#expiresAt }
  }

  /** Throws SandboxError('conflict') unless it runs. */
  checkMoving(): void {
    if (this.#isStill) throw new SandboxError('conflict', `sandbox ${this.#info.id} is paused; resume it first`, { hint: resumeHint })
  }

  /** Settles when a moment's stillness is over, which whatever is to begin waits for; undefined when there is none. */
  get stillFor(): Promise<void> | undefined {
    return this.#moment.ended
  }

  /** Settles when nothing that was asked for so far is under way. */
  get acts(): Promise<unknown> {
    return this.#acting
  }

  pause({ reason = 'its owner paused it', keeps }: { readonly reason?: string; readonly keeps: 'memory' | 'files' }): Promise<void> {
    return this.#next(() => this.#stop(reason, keeps))
  }

  resume(reason = 'its owner resumed it'): Promise<void> {
    return this.#next(() => this.#goOn(reason))
  }

  /** Its programs and their clocks stand still while something is done, which begins when its turn has come; its own lifetime goes on. Throws SandboxError('conflict') when it is paused. */
  still<T>(begin: () => Stillness<T>): Promise<T> {
    return this.#next(() => this.#holdStill(begin))
  }

  /** At least so long from now. */
  extend(duration: unknown): void {
    const wanted = parseLifetime(duration)
    const left = this.#leftMs ?? this.#deadline.restMs
    if (wanted > left) this.#set(Math.max(left, this.#held(wanted)))
  }

  /** So long from now. */
  setLifetime(duration: unknown): void {
    this.#set(this.#held(parseLifetime(duration)))
  }

  /** The sandbox is over; `closed` is still to be told. */
  finish(): void {
    this.#isOver = true
    this.#deadline.cancel()
    this.#idle?.hold()
  }

  #held(durationMs: number): number {
    return holdLifetime(durationMs, this.clock.now() - this.#bornAt, this.#order.policy)
  }

  #set(durationMs: number): void {
    if (this.#isOver) return
    if (this.#leftMs === undefined) this.#count(durationMs, () => this.#useUp())
    else this.#leftMs = durationMs
  }

  #useUp(): void {
    this.#isUsedUp = true
    this.#expire('its lifetime is over')
  }

  #count(durationMs: number, onReached: () => void): void {
    this.#isUsedUp = false
    this.#deadline.cancel()
    this.#deadline = new Deadline(durationMs, onReached)
    this.#expiresAt = new Date(Date.now() + durationMs).toISOString()
  }

  #next<T>(act: () => Promise<T>): Promise<T> {
    const acting = this.#acting.then(act)
    this.#acting = acting.catch(() => undefined)
    return acting
  }

  async #stop(reason: string, keeps: 'memory' | 'files'): Promise<void> {
    const { cannotPause, maxPausedMs, settled } = this.#order
    if (this.#isOver) return
    if (this.#leftMs !== undefined) {
      this.#refuseOther(keeps)
      return
    }
    if (keeps === 'memory' && cannotPause !== undefined) {
      throw new SandboxError('unsupported', `programs cannot be paused here: ${cannotPause}`, { hint: 'pause({ memory: false }) keeps the files' })
    }
    this.#isStill = true
    this.#idle?.hold()
    try {
      await settled()
      // What takes files away goes by the time of the machine.
      if (keeps === 'memory') this.clock.stop()
      await this.#order[keeps].stop()
      this.clock.stop()
    } catch (error) {
      this.#move()
      throw error
    }
    if (this.#hasEnded()) return
    this.#still = keeps
    this.#leftMs = this.#isUsedUp ? 0 : Math.max(1, this.#deadline.restMs)
    this.#count(maxPausedMs, () => this.#end(`it was paused for ${durationInUnits(maxPausedMs, Math.round)}`))
    this.events.tell({ type: 'paused', reason })
  }

  async #holdStill<T>(begin: () => Stillness<T>): Promise<T> {
    this.checkMoving()
    const { stop, goOn, act } = begin()
    const inUse = this.activity.hold()
    this.#moment.begin()
    try {
      await this.#order.settled()
      this.clock.stop()
      if (await stop()) return await act().finally(() => this.#letGo(goOn))
      this.#endMoment()
      return await act()
    } finally {
      this.#endMoment()
      inUse()
    }
  }

  #endMoment(): void {
    this.clock.goOn()
    this.#moment.end()
  }

  /** What cannot be let go is of no use to anyone. */
  async #letGo(goOn: () => Promise<void>): Promise<void> {
    try {
      await goOn()
    } catch (error) {
      if (this.#isOver) return
      this.#order.end(new SandboxError('broken', `sandbox ${this.#info.id} stood still, and did not go on: ${(error as Error).message}`, { cause: error }))
    }
  }

  /** Whoever wants its memory back is not to believe that it was given back. */
  #refuseOther(keeps: 'memory' | 'files'): void {
    if (keeps === 'memory' || this.#still === 'files') return
    throw new SandboxError('conflict', `sandbox ${this.#info.id} is paused with its memory; resume it first`, { hint: resumeHint })
  }

  async #goOn(reason: string): Promise<void> {
    if (this.#isOver || this.#leftMs === undefined) return
    // One that was paused because its lifetime was over begins another, as far as its policies allow.
    const lifetimeMs = this.#leftMs > 0 ? this.#leftMs : this.#held(this.#info.spec.lifetimeMs)
    await this.#order[this.#still].goOn()
    if (this.#hasEnded()) return
    this.#leftMs = undefined
    this.#move()
    this.#count(lifetimeMs, () => this.#useUp())
    this.events.tell({ type: 'resumed', reason })
  }

  /** Also meanwhile: a sandbox may be closed while it is paused or resumed. */
  #hasEnded(): boolean {
    return this.#isOver
  }

  #move(): void {
    this.clock.goOn()
    this.#isStill = false
    if (!this.#isOver) this.#idle?.goOn()
  }

  #watchIdleness(idleMs: number): IdleWatch {
    const { worked } = this.#order
    const onIdle = (): void => this.#expire(`it was idle for ${durationInUnits(idleMs, Math.round)}`)
    return new IdleWatch({ idleMs, activity: this.activity, worked, onIdle })
  }

  #expire(reason: string): void {
    if (this.#isOver) return
    if (this.#info.spec.onExpiry === 'close') {
      this.#end(reason)
      return
    }
    this.events.tell({ type: 'expired', reason })
    // What cannot stand still when it should is closed: it does not go on.
    const keeps = this.#order.cannotPause === undefined ? 'memory' : 'files'
    this.pause({ reason, keeps }).catch((error: unknown) =>
      this.#order.end(this.#expired(`${reason}, and it could not be paused: ${(error as Error).message}`)),
    )
  }

  #end(reason: string): void {
    if (this.#isOver) return
    this.events.tell({ type: 'expired', reason })
    this.#order.end(this.#expired(reason))
  }

  #expired(reason: string): SandboxError {
    return new SandboxError('expired', `sandbox ${this.#info.id} expired at ${new Date().toISOString()}: ${reason}`, {
      hint: "Sandbox.create({ lifetime: '1h' })",
    })
  }
}
