/**
 * Compares what the kernel says of a cell and its programs with what was demanded. Nothing of a guest runs before that: a cell is looked at before it
 * is handed out, a program while it waits at its gate.
 */
import { createHash } from 'node:crypto'
import type { ReadyRequest, StartRequest } from '../channel/index.js'
import type { Cell, GuestUser } from '../contract/driver.js'
import type { Expectation, Observation, Posture } from '../contract/posture.js'
import type { UserName } from '../contract/spec.js'
import { judge, type Look, mismatchError, type ProgramLook, type ReceiptFacts } from '../receipt/index.js'
import { guestExpectations } from './guest-expectations.js'
import { LoweredLimits, withLoweredLimits } from './lowered-limits.js'
import { fullProgramExpectations, programExpectations, type WardenPosture, wardenPosture, zygoteExpectations } from './program-expectations.js'

export interface InspectorOptions {
  readonly cell: Cell
  /** What the warden was handed; undefined where the driver's guests run unfiltered. */
  readonly filter: Uint8Array | undefined
  /** The ports at which its way out listens besides, now; none when not given. */
  readonly ports?: (() => readonly number[]) | undefined
}

export interface GatedProgram {
  /** As the cell sees it. */
  readonly pid: number
  readonly user: GuestUser
  readonly request: StartRequest
  readonly run: ProgramLook['run']
  readonly depth: 'full' | 'short'
}

/** Of a program that waits to be told what it is to become. */
export interface ReadyLook extends Look {
  readonly depth: GatedProgram['depth']
  readonly request: ReadyRequest
}

export interface CellLook extends Look {
  readonly at: string
}

interface LookOrder extends Pick<GatedProgram, 'pid' | 'user' | 'depth'> {
  readonly request: ReadyRequest & Pick<StartRequest, 'layers' | 'aside'>
}

export class Inspector {
  readonly #cell: Cell
  readonly #filterHash: string | undefined
  readonly #ports: () => readonly number[]
  readonly #tried: Observation[] = []
  #warden: WardenPosture = { filters: null, hasCgroup: true }
  #cellSeen: CellLook | undefined
  #full: ProgramLook | undefined
  #short: ProgramLook | undefined
  /** Kinds of program of which one was read in full. */
  readonly #known = new Set<string>()
  readonly #knownWorkers = new Set<string>()

  constructor({ cell, filter, ports }: InspectorOptions) {
    this.#cell = cell
    this.#ports = ports ?? (() => [])
    this.#filterHash = filter && createHash('sha256').update(filter).digest('hex')
  }

  /** The latest that was read in full, then the latest in short. */
  get programs(): readonly ProgramLook[] {
    return [this.#full, this.#short].filter((look) => look !== undefined)
  }

  /** What was tried from inside, and found as demanded. */
  addTried(observation: Observation): void {
    this.#tried.push(observation)
  }

  /** In full unless another program of its kind was. */
  depthFor(user: UserName, request: Pick<StartRequest, 'aside' | 'liner'> = {}): GatedProgram['depth'] {
    return this.#known.has(kindOf(user, request)) ? 'short' : 'full'
  }

  /** Throws SandboxError('not-enforced') naming what is not as demanded. */
  async inspectCell(): Promise<Look> {
    const { expects } = this.#cell
    const postures = withTried(await this.#cell.posture({ kind: 'cell' }), this.#tried)
    refuse(expects, postures)
    this.#warden = wardenPosture(postures)
    this.#cellSeen = { expectations: expects, postures, at: new Date().toISOString() }
    return this.#cellSeen
  }

  /** The latest look at the cell as a whole. */
  get cellSeen(): CellLook | undefined {
    return this.#cellSeen
  }

  /** Throws SandboxError('not-enforced') naming what is not as demanded, or LoweredLimits; then the program must never run. */
  async inspectProgram(program: GatedProgram): Promise<void> {
    const { run, depth } = program
    const look = { run, ...(await this.#look(program)) }
    if (depth === 'full') {
      this.#full = look
      this.#known.add(kindOf(run.user, program.request))
    } else {
      this.#short = look
    }
  }

  /** The same for one that is nobody's run yet, as thoroughly as a program of its user would be looked at now. */
  async inspectReady(program: Pick<GatedProgram, 'pid' | 'user'> & { readonly request: ReadyRequest }): Promise<ReadyLook> {
    const { user, request } = program
    const depth = this.depthFor(user.name, request)
    return { depth, request, ...(await this.#look({ ...program, depth })) }
  }

  /** What was seen of it is told of this run. */
  adopt({ depth, request, ...look }: ReadyLook, run: ProgramLook['run']): void {
    if (depth === 'short') {
      this.#short = { run, ...look }
      return
    }
    this.#full = { run, ...look }
    this.#known.add(kindOf(run.user, request))
  }

  /** The same for one of our own, which is nobody's run. */
  async inspectWorker(worker: Omit<GatedProgram, 'run' | 'depth'>): Promise<void> {
    const name = `${worker.user.name} ${worker.request.layers === true}`
    await this.#look({ ...worker, depth: this.#knownWorkers.has(name) ? 'short' : 'full' })
    this.#knownWorkers.add(name)
  }

  /** Of the one that programs in liners are forked from: it is under the filter of whoever makes liners, and never under a program's. */
  async inspectZygote({ pid, request }: Pick<GatedProgram, 'pid' | 'request'>): Promise<void> {
    const expectations = zygoteExpectations({ request, groups: this.#cell.liners?.zygote.groups, filterHash: this.#filterHash, warden: this.#warden })
    refuse(expectations, await this.#cell.posture({ kind: 'program', pid, depth: 'full', group: request.group }))
  }

  async #look({ pid, user, request, depth }: LookOrder): Promise<Look> {
    const demand = { request, groups: user.groups, filterHash: this.#filterHash, warden: this.#warden }
    const liner = request.liner !== undefined
    const ofLiner = liner ? this.#ofLiner() : []
    const expectations = depth === 'full' ? [...fullProgramExpectations(demand), ...ofLiner] : programExpectations(demand)
    const postures = await this.#cell.posture({ kind: 'program', pid, depth, group: request.group, liner })
    if (judge({ expectations, posture: postures }).length === 0) return { expectations, postures }
    refuse(withLoweredLimits(expectations, postures), postures)
    // It is as it should be but for what another of its id did to it, which is no fault of the cell's.
    throw new LoweredLimits()
  }

  #ofLiner(): readonly Expectation[] {
    const { liners } = this.#cell
    const sockets = liners?.sockets?.(this.#ports())
    return [...(liners?.expects ?? []), ...(sockets ? [sockets] : [])]
  }

  /** Every process and thread of the guest's that there is now. What it did to itself since may only have narrowed it. */
  async inspectEverything(): Promise<Pick<ReceiptFacts, 'inspected' | 'living'>> {
    const postures = await this.#cell.posture({ kind: 'everything' })
    const demand = { users: this.#cell.users, hasLiners: this.#cell.liners !== undefined, filterHash: this.#filterHash, warden: this.#warden }
    const living = postures.filter(({ subject }) => subject !== 'cell')
    for (const posture of living) refuse(guestExpectations(posture, demand), [posture])
    // A process whose first thread has ended is told of by its others only.
    const processes = new Set(living.map(({ subject }) => subject.replace(/ thread .*/, '')))
    return { inspected: { processes: processes.size, threads: living.length, complete: isComplete(postures) }, living }
  }
}

/** Those with other descriptors, in other places or made by another are not of one kind. */
function kindOf(user: UserName, { aside, liner }: Pick<StartRequest, 'aside' | 'liner'>): string {
  if (liner) return `${user} ${liner.forked ? 'forked' : 'lined'}`
  return `${user} ${aside === true ? 'aside' : 'plain'}`
}

/** Only when it is said. */
function isComplete(postures: readonly Posture[]): boolean {
  return postures.some(({ subject, observations }) => subject === 'cell' && observations.some(({ control, value }) => control === 'complete' && value === true))
}

function refuse(expectations: readonly Expectation[], posture: readonly Posture[]): void {
  const error = mismatchError(judge({ expectations, posture }))
  if (error) throw error
}

/** What was tried belongs to the cell as a whole. */
function withTried(postures: readonly Posture[], tried: readonly Observation[]): readonly Posture[] {
  const [first, ...rest] = postures
  if (tried.length === 0) return postures
  return [{ subject: first?.subject ?? 'cell', observations: [...(first?.observations ?? []), ...tried] }, ...rest]
}
