/**
 * One cell of a sandbox, with all that reaches into it. A sandbox that is paused without its memory has none, and gets another when it is resumed: so
 * whatever is bound to a cell is here, and nobody keeps it longer than the cell is there.
 */
import type { GuestUser, TemplateRoot } from '../contract/driver.js'
import { SandboxError } from '../contract/errors.js'
import type { PlatformProcess, SandboxInfo } from '../contract/platform.js'
import type { PlatformBounds } from '../contract/platform-settings.js'
import type { UserName } from '../contract/spec.js'
import { userRefusal } from '../policy/choose.js'
import { type Clock, Deadline } from './deadline.js'
import { eventsOf } from './events-of-run.js'
import type { FilesHost } from './file-operation.js'
import { createFilesHost } from './files-host.js'
import type { Ledger } from './ledger.js'
import { Leftovers } from './leftovers.js'
import type { Lifetime } from './lifetime.js'
import { LifetimeClock } from './lifetime-clock.js'
import type { MadeCell } from './making.js'
import type { WayOut } from './network.js'
import { brokenCell } from './open-cell.js'
import type { ProgramSurroundings } from './program-starter.js'
import { ReadyPrograms } from './ready-programs.js'
import type { Remains } from './remains.js'
import { RunningProgram } from './running-program.js'
import { Zygote } from './zygote.js'

/** A cell that was looked at, with the root that its programs see. */
export interface MadeHome extends MadeCell {
  readonly root: TemplateRoot
  /** Of its sandbox, which it has joined; not given: there is none, or it was there before this cell. */
  readonly network?: WayOut
}

/** What of its sandbox a cell needs. */
export interface LiveCellOrder {
  readonly life: Pick<Lifetime, 'clock' | 'activity' | 'events' | 'checkMoving' | 'stillFor'>
  readonly ledger: Ledger
  readonly bounds: Pick<PlatformBounds, 'answerMs'>
  /** Of the machine. */
  readonly processors: number
  /** As it is now. */
  readonly info: () => SandboxInfo
  /** Throws when the sandbox is over, or stands still. */
  checkOpen(): Promise<void>
  /** Its channel is over, and so is the sandbox. */
  failure(cause: unknown): Promise<SandboxError>
  /** What is not as demanded ends the sandbox. */
  condemn(error: SandboxError): Promise<SandboxError>
}

/** Programs that have ended, and may have left something behind: where nothing counts runs, nobody can tell. */
const mostEnded = 1024
/** So many of those are looked at again when another has ended: the kernel counts one a little longer than it runs. */
const mostLooks = 4

/** How long what an ended program printed waits for a reader when its cell is to go. */
const unreadMs = 1000

export class LiveCell {
  readonly made: MadeHome
  #files: FilesHost
  readonly #order: LiveCellOrder
  readonly #leftovers = new Leftovers()
  readonly #programs = new Set<RunningProgram>()
  readonly #ended = new Set<Remains>()
  readonly #ready: ReadyPrograms | undefined
  /** Only where runs can have liners. */
  readonly zygote: Zygote | undefined
  /** `coming`, `leaving`: what happens to it is the affair of whoever brings it or takes it away, and does not end the sandbox. */
  #stage: 'coming' | 'here' | 'leaving' = 'coming'

  constructor(made: MadeHome, order: LiveCellOrder) {
    this.made = made
    this.#order = order
    this.#files = this.#hostWith(() => this.surroundings)
    if (made.open.cell.liners) this.zygote = new Zygote(() => this.surroundings)
    // A profile of the user's own may refuse what a program does between its release and its execve.
    if (made.inspector && order.info().spec.seccomp === undefined) this.#ready = new ReadyPrograms(() => this.surroundings, made.first)
  }

  get files(): FilesHost {
    return this.#files
  }

  /** From now on its end is the sandbox's. */
  arrive(): void {
    if (this.#stage === 'leaving') this.#files = this.#hostWith(() => this.surroundings)
    this.#stage = 'here'
    void this.made.first?.unlike?.then((error) => this.surroundings.condemn(error))
    void this.made.open.warden.ended.then((error) => this.#failure(error ?? new Error('the channel was closed')))
  }

  /** From now on it is not. */
  leave(): void {
    this.#stage = 'leaving'
  }

  get surroundings(): ProgramSurroundings {
    const { life, ledger, bounds, processors, info } = this.#order
    const { open, root, probe, inspector } = this.made
    return {
      open,
      root,
      probe,
      inspector,
      ledger,
      leftovers: this.#leftovers,
      ready: this.#ready,
      zygote: this.zygote,
      answerMs: bounds.answerMs,
      processors,
      limits: () => info().spec.limits,
      checkOpen: () => this.#order.checkOpen(),
      clock: life.clock,
      checkMoving: () => life.checkMoving(),
      onEnded: (ended) => eventsOf(ended).forEach((event) => life.events.tell(event)),
      condemn: (error) => (this.#stage === 'here' ? this.#order.condemn(error) : Promise.resolve(error)),
      failure: (cause) => this.#failure(cause),
      watchAnswer: (act) => this.#watchAnswer(act, life.clock),
    }
  }

  /** For the sandbox itself, while nobody else may do anything. Closed by whoever uses it. */
  privately(signal: AbortSignal): FilesHost {
    const clock = new LifetimeClock()
    // Without waiting for why: whoever ends the sandbox waits for this.
    const checkOpen = (): Promise<void> => (signal.aborted ? Promise.reject(signal.reason as SandboxError) : Promise.resolve())
    const watchAnswer = (act: string): Deadline => this.#watchAnswer(act, clock)
    const surroundings = (): ProgramSurroundings => ({ ...this.surroundings, checkOpen, clock, watchAnswer, ...this.#unwaited() })
    return this.#hostWith(surroundings, () => undefined)
  }

  findUser(name: UserName): GuestUser {
    const { open, probe } = this.made
    const user = open.cell.users.find((each) => each.name === name)
    if (user) return user
    const told = probe.users[name]
    throw new SandboxError('unsupported', userRefusal(name, told.available ? 'this cell has no such user' : told.why), { hint: 'glovebox doctor' })
  }

  /** Resolves when none waits to become a program: it is none yet. */
  async dropReady(): Promise<void> {
    await this.#ready?.drop()
  }

  /** What stands still cannot end, so nothing that nobody waits for is kept over a pause. */
  async standStill(): Promise<void> {
    await this.dropReady()
    await this.made.open.cell.pause()
  }

  /** A program that was started in it. */
  track<Program extends PlatformProcess>(program: Program): Program {
    if (!(program instanceof RunningProgram)) return program
    this.#programs.add(program)
    void program.ended.catch(() => undefined).then(() => this.#retire(program))
    return program
  }

  /** Resolves when no program is left, nor what one left behind, nor an operation on files. */
  async endPrograms(reason: string): Promise<void> {
    const programs = [...this.#programs]
    const remains = [...this.#ended].map((each) => this.#endRemains(each))
    await Promise.all([this.files.workers.end(), ...programs.map((program) => program.end(reason)), ...remains])
    const ended = Promise.allSettled(programs.map((program) => program.ended))
    const patience = new Deadline(unreadMs, () => programs.forEach((program) => program.dropOutput()))
    await ended
    patience.cancel()
  }

  /** Resolves when nothing of it is left. Again when it did not. */
  async close(): Promise<void> {
    const { warden, cell, faults } = this.made.open
    faults?.('close/begun')
    this.#leftovers.end()
    this.#ready?.end()
    this.zygote?.end()
    this.files.workers.close()
    warden.close()
    await cell.close()
    faults?.('close/gone')
  }

  /** What ends the sandbox meanwhile is told by its end, which waits for whoever would wait for that. */
  #unwaited(): Pick<ProgramSurroundings, 'failure' | 'condemn'> {
    const told = (error: SandboxError, end: Promise<SandboxError>): Promise<SandboxError> => {
      end.catch(() => undefined)
      return Promise.resolve(error)
    }
    const over = (): SandboxError => new SandboxError('closed', `sandbox ${this.#order.info().id} is over`)
    return {
      failure: (cause) => (this.#stage === 'here' ? told(over(), this.#order.failure(cause)) : this.#failure(cause)),
      condemn: (error) => (this.#stage === 'here' ? told(error, this.#order.condemn(error)) : Promise.resolve(error)),
    }
  }

  #hostWith(surroundings: () => ProgramSurroundings, stillFor = (): Promise<void> | undefined => this.#order.life.stillFor): FilesHost {
    const { life, info } = this.#order
    return createFilesHost({ cell: this.made.open.cell, activity: life.activity, info, findUser: (name) => this.findUser(name), surroundings, stillFor })
  }

  async #endRemains(remains: Remains): Promise<void> {
    const watch = this.surroundings.watchAnswer('kill a run')
    try {
      await remains.end()
    } catch (error) {
      // The channel is over and with it the cell; once it is closed nothing of the run is left.
      await this.#failure(error)
    } finally {
      watch.cancel()
    }
  }

  #retire(program: RunningProgram): void {
    this.#programs.delete(program)
    // Those that were looked at last come last.
    const ended = this.#ended.values()
    for (let looks = Math.min(mostLooks, this.#ended.size); looks > 0; looks -= 1) {
      const { value: earlier } = ended.next()
      if (!earlier) break
      this.#ended.delete(earlier)
      if (earlier.mayBeThere) this.#ended.add(earlier)
    }
    const { remains } = program
    if (remains?.mayBeThere) this.#ended.add(remains)
    for (const oldest of this.#ended) {
      if (this.#ended.size <= mostEnded) break
      this.#ended.delete(oldest)
    }
  }

  #failure(cause: unknown): Promise<SandboxError> {
    if (this.#stage === 'here') return this.#order.failure(cause)
    const { id } = this.#order.info()
    return Promise.resolve(
      this.#stage === 'coming' ? brokenCell(id, this.made.open.cell, cause) : new SandboxError('conflict', `sandbox ${id} was paused without its memory`),
    )
  }

  /** A warden that does not answer obeys no more: the whole cell ends, which needs no answer. */
  #watchAnswer(act: string, clock: Clock): Deadline {
    const { answerMs } = this.#order.bounds
    const giveUp = (): void => {
      void this.#failure(new Error(`the warden did not ${act} within ${answerMs} ms`))
      // Whoever waits for it is told by its end.
      if (this.#stage !== 'here') this.close().catch(() => undefined)
    }
    return new Deadline(answerMs, giveUp, clock)
  }
}
