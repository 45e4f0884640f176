/**
 * The next program of a kind, made ready before anyone knows what it is to become: in its group, with its ids, limits and filter, at its gate, and looked at. Nothing but
 * our own code ever ran in it, so that what was found holds until it is released. Like a worker it counts as one of the sandbox's processes while it waits.
 *
 * One is made only once two programs of a kind were started in a row: whoever runs a single command pays nothing. A cell that waited for its sandbox brings
 * its first along.
 */
import type { ReadyProgram, ReadyRequest, StartRequest } from '../channel/index.js'
import type { CellRun, GuestUser, RunLimits } from '../contract/driver.js'
import { SandboxError } from '../contract/errors.js'
import type { Limits } from '../contract/limits.js'
import type { ReadyLook } from './inspector.js'
import type { ProgramSurroundings } from './program-starter.js'
import { countedIn } from './start-request.js'

export interface ProgramKind {
  readonly user: GuestUser
  readonly limits: RunLimits
  readonly request: Omit<ReadyRequest, 'group'>
}

export interface ReadyRun {
  readonly run: CellRun
  readonly program: ReadyProgram
  readonly look: ReadyLook
  /** Of one that was begun already: what it used of processor time until then, which is not its program's. */
  readonly spentMs?: number
  /** Of one that was begun already: whether it can go on as this. */
  fits?(told: StartRequest): boolean
}

const alikeEnough = 2
const leastProcesses = 32
/** How long one that is being made is waited for: another guest of its id may have stopped it. Whoever wants to run something is not to be told of that. */
const patienceMs = 500

/** One that is there, or on its way. */
export interface Held {
  readonly key: string
  /** When it aborts, what is being made is not made. */
  readonly unwanted: AbortController
  readonly made: Promise<ReadyRun | undefined>
  /** Whether it is an interpreter that was begun: then it is gone before another program is started. */
  readonly isBegun?: true
  /** Resolves when it was found not to be as demanded, before it was anyone's. */
  readonly unlike?: Promise<SandboxError>
}

export class ReadyPrograms {
  readonly #surroundings: () => ProgramSurroundings
  #held: Held | undefined
  #latest: { readonly key: string; readonly kind: ProgramKind } | undefined
  #alike = 0
  #soon: NodeJS.Immediate | undefined
  #isOver = false

  constructor(surroundings: () => ProgramSurroundings, first?: Held) {
    this.#surroundings = surroundings
    this.#held = first
  }

  /** One of this kind, which is the taker's from then on; also one that is being made, unless that takes long or the taker gives up first. Of no kind there is none. */
  async take(kind: ProgramKind | undefined, told: StartRequest, giveUp: AbortSignal): Promise<ReadyRun | undefined> {
    const key = kind && keyOf(kind)
    if (this.#held?.isBegun && this.#held.key !== key) await this.drop()
    if (kind === undefined || key === undefined) return undefined
    this.#alike = this.#latest?.key === key ? this.#alike + 1 : 1
    this.#latest = { key, kind }
    const held = this.#held
    if (held === undefined) return undefined
    if (held.key !== key) {
      if (this.#alike >= alikeEnough) void this.drop()
      return undefined
    }
    this.#held = undefined
    const letGo = this.#surroundings().open.warden.hold()
    const ready = await inTime(held.made, giveUp).finally(letGo)
    if (ready?.program.isWaiting && ready.fits?.(told) !== false) return ready
    const gone = discard(held)
    if (held.isBegun) await gone
    return undefined
  }

  /** Nobody waits for anything else now. */
  tend(): void {
    this.#soon ??= setImmediate(() => {
      this.#soon = undefined
      this.#make()
    })
  }

  /** Resolves when none is there, nor on its way. */
  async drop(): Promise<void> {
    clearImmediate(this.#soon)
    this.#soon = undefined
    const held = this.#held
    this.#held = undefined
    if (held) await discard(held)
  }

  /** None is made any more; the one that is there ends with its cell. */
  end(): void {
    this.#isOver = true
    clearImmediate(this.#soon)
    void this.#held?.made.then((ready) => ready?.run.close().catch(() => undefined))
  }

  #make(): void {
    const surroundings = this.#surroundings()
    if (this.#isOver || this.#held !== undefined || this.#latest === undefined || this.#alike < alikeEnough) return
    if (!mayWait(surroundings.limits())) return
    // The first of a user's programs is read in full, at its own gate.
    if (surroundings.inspector?.depthFor(this.#latest.kind.user.name, this.#latest.kind.request) !== 'short') return
    this.#held = beginReady(this.#latest.kind, surroundings)
  }
}

/** Where fewer processes are allowed, one that waits would be missed. */
export function mayWait({ processes }: Pick<Limits, 'processes'>): boolean {
  return processes >= leastProcesses
}

/** Where a program is made ready. */
export type ReadyPlace = Pick<ProgramSurroundings, 'open' | 'inspector' | 'condemn' | 'checkOpen'> & {
  /** Until its cell was found as demanded, nothing in it is looked at; rejects when it is not. */
  readonly cellSeen?: Promise<unknown>
}

export function beginReady(kind: ProgramKind, place: ReadyPlace): Held {
  const unwanted = new AbortController()
  return { key: keyOf(kind), unwanted, made: makeReady(kind, place, unwanted.signal) }
}

/** An interpreter that stands in the place of one of this kind. */
export function holdBegun(kind: ProgramKind, begin: (giveUp: AbortSignal) => Promise<ReadyRun>): Held & { readonly begun: Promise<ReadyRun> } {
  const unwanted = new AbortController()
  const begun = begin(unwanted.signal)
  return { key: keyOf(kind), unwanted, begun, made: begun.catch(() => undefined), isBegun: true }
}

function keyOf({ user, limits, request: { stdin, rlimits, liner } }: ProgramKind): string {
  const lined = liner ? `${liner.diskBytes} ${liner.inodes} ${liner.forked === true}` : ''
  return [user.name, stdin, lined, limits.memoryBytes, limits.processes, ...rlimits.map(({ resource, soft, hard }) => `${resource}=${soft}/${hard}`)].join(' ')
}

/** Resolves when nothing of it is left. */
export async function discard({ made, unwanted }: Held): Promise<void> {
  unwanted.abort()
  const ready = await made
  if (!ready) return
  await ready.program.drop().catch(() => undefined)
  ready.run.close().catch(() => undefined)
}

async function inTime<T>(pending: Promise<T>, giveUp: AbortSignal): Promise<T | undefined> {
  if (giveUp.aborted) return undefined
  return await new Promise((resolve, reject) => {
    const stopWaiting = (): void => resolve(undefined)
    const timer = setTimeout(stopWaiting, patienceMs)
    giveUp.addEventListener('abort', stopWaiting, { once: true })
    pending.then(resolve, reject).finally(() => {
      clearTimeout(timer)
      giveUp.removeEventListener('abort', stopWaiting)
    })
  })
}

/** Undefined when it did not come about, which is no loss. What is not as demanded ends the sandbox. */
async function makeReady({ user, limits, request }: ProgramKind, place: ReadyPlace, giveUp: AbortSignal): Promise<ReadyRun | undefined> {
  const { open, inspector, condemn } = place
  if (!inspector) return undefined
  let run: CellRun | undefined
  try {
    await place.checkOpen()
    const begun = (run = open.cell.beginRun(limits))
    const counted = countedIn(request, run)
    let look: ReadyLook | undefined
    const atGate = async (pid: number): Promise<void> => {
      await place.cellSeen
      look = await inspector.inspectReady({ pid, user, request: counted })
      begun.spareTime()
    }
    const program = await open.warden.prepare(counted, { atGate, giveUp })
    if (program && look) return { run, program, look }
  } catch (error) {
    if (error instanceof SandboxError && error.code === 'not-enforced') void condemn(error)
  }
  run?.close().catch(() => undefined)
  return undefined
}

/** Undefined for one that is never made ahead. */
export function programKind(request: StartRequest, user: GuestUser, limits: RunLimits): ProgramKind | undefined {
  const { uid, gid, capabilities, rlimits, stdin, terminal, aside, liner } = request
  return terminal || aside ? undefined : { user, limits, request: { uid, gid, capabilities, rlimits, stdin, ...(liner && { liner }) } }
}
