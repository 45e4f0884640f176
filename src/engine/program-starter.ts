import type { StartRequest, StartResult, WardenProcess } from '../channel/index.js'
import type { CellRun, GuestUser, Probe, RunLimits, TemplateRoot } from '../contract/driver.js'
import { SandboxError } from '../contract/errors.js'
import type { Limits } from '../contract/limits.js'
import type { Ending, LimitHits } from '../contract/run.js'
import { lackingLimits } from '../policy/choose.js'
import type { RunPlan } from '../policy/run.js'
import { hashOf } from '../receipt/index.js'
import type { EndedProgram } from './events-of-run.js'
import type { Inspector } from './inspector.js'
import type { Ledger, LedgerEntry } from './ledger.js'
import type { OpenCell } from './open-cell.js'
import type { Stop } from './outcome.js'
import { RunningProgram, type RunSurroundings } from './running-program.js'
import { killedEarly, notStarted, startError, type StartFailure } from './start-failure.js'
import { StartPatience } from './start-patience.js'
import { LoweredLimits } from './lowered-limits.js'
import { programKind, type ReadyPrograms, type ReadyRun } from './ready-programs.js'
import { countedIn, startRequest } from './start-request.js'
import { UnstartedProgram } from './unstarted-program.js'
import { hitsOf } from './usage.js'
import type { Zygote } from './zygote.js'

/** What programs are started with, and in. */
export interface ProgramSurroundings extends Pick<RunSurroundings, 'failure' | 'watchAnswer' | 'leftovers' | 'clock' | 'checkMoving'> {
  readonly open: OpenCell
  readonly root: TemplateRoot
  readonly probe: Probe
  readonly ledger: Ledger
  /** Undefined where nobody looks: the cell isolates nothing. */
  readonly inspector: Inspector | undefined
  /** Those that were made ready; undefined where none is ever. */
  readonly ready: ReadyPrograms | undefined
  /** What programs in liners are forked from; undefined where nothing is. */
  readonly zygote?: Pick<Zygote, 'lend'> | undefined
  /** Of the machine. */
  readonly processors: number
  /** How long a start may take. */
  readonly answerMs: number
  /** Those of the sandbox that hold now. */
  limits(): Limits
  /** Rejects when the sandbox is over. */
  checkOpen(): Promise<void>
  /** A program that ran has ended. */
  onEnded(ended: EndedProgram): void
  /** What is not as demanded ends the sandbox. */
  readonly condemn: (error: SandboxError) => Promise<SandboxError>
}

export interface ProgramOrder {
  readonly plan: RunPlan
  readonly user: GuestUser
  readonly signal: AbortSignal | undefined
}

/** Starts one program; it does not run before what the kernel says of it is as demanded. */
export async function startProgram(order: ProgramOrder, surroundings: ProgramSurroundings): Promise<RunningProgram | UnstartedProgram> {
  const { plan, user } = order
  const { open, root, probe } = surroundings
  refuseUnheld(plan, probe)
  const asked = startRequest({ plan, user, cell: open.cell, root, probe, limits: surroundings.limits() })
  const request = surroundings.zygote?.lend(asked) ?? asked
  order.signal?.throwIfAborted()
  await surroundings.checkOpen()
  const posture = surroundings.inspector?.depthFor(user.name, request) ?? 'none'
  const entry = surroundings.ledger.begin({ commandHash: hashOf(plan.command), user: user.name, environment: Object.keys(request.env).sort(), posture })
  try {
    open.faults?.('run/begun')
    return await launch({ ...order, request, entry }, surroundings)
  } catch (error) {
    surroundings.ledger.drop(entry)
    throw error
  }
}

/** A limit that a run states is as strict as its sandbox's. */
function refuseUnheld({ limits }: RunPlan, probe: Probe): void {
  const { memoryBytes, processes, cpuTimeMs, fileSizeBytes, openFiles, stated } = limits
  const lacking = lackingLimits({ memoryBytes, processes, cpuTimeMs, fileSizeBytes, openFiles, stated }, probe)
  if (lacking.length > 0) throw new SandboxError('unsupported', lacking.join('; '), { hint: 'glovebox doctor' })
}

export function limitsOf({ limits }: RunPlan): RunLimits {
  const own = (name: 'memory' | 'processes', value: number): number | undefined => (limits.stated.includes(name) ? value : undefined)
  return { memoryBytes: own('memory', limits.memoryBytes), processes: own('processes', limits.processes) }
}

function beginRun(limits: RunLimits, { open }: ProgramSurroundings): CellRun {
  const run = open.cell.beginRun(limits)
  if (limits.memoryBytes === undefined || run.group !== undefined) return run
  run.close().catch(() => undefined)
  throw new SandboxError('unsupported', 'limits.memory cannot be enforced for a single run: nothing here counts its memory by itself', {
    hint: 'glovebox doctor',
  })
}

interface Launch extends ProgramOrder {
  readonly request: StartRequest
  readonly entry: LedgerEntry
}

async function launch({ plan, user, signal, request, entry }: Launch, surroundings: ProgramSurroundings): Promise<RunningProgram | UnstartedProgram> {
  const { ledger, probe } = surroundings
  const { answerMs, watchAnswer, leftovers, clock, checkMoving } = surroundings
  const startedAt = clock.now()
  const patience = new StartPatience({ timeMs: plan.timeMs, answerMs, signal, clock, watchAnswer })
  const { result, run, spentMs } = await attempt({ plan, user, request, entry, giveUp: patience.giveUp }, surroundings).finally(() => patience.end())
  const { stop } = patience
  if (!result.started) {
    try {
      if (result.exit) signal?.throwIfAborted()
      const program = new UnstartedProgram({ ...unstarted({ plan, run, request, result, stop }, surroundings), wallMs: clock.now() - startedAt })
      ledger.finish(entry, await program.ended)
      return program
    } finally {
      run.close().catch(() => undefined)
    }
  }
  await orEnd(result.process, run, () => surroundings.open.faults?.('run/started'))
  if (entry.posture === 'none') run.spareTime()
  surroundings.ready?.tend()
  const { cpus } = surroundings.limits()
  const processors = probe.limits.cpus.enforced ? Math.min(cpus, surroundings.processors) : surroundings.processors
  const memoryBytes = (): number | undefined => (probe.limits.memory.enforced ? surroundings.limits().memoryBytes : undefined)
  const { failure } = surroundings
  const program = new RunningProgram({
    program: result.process,
    plan,
    run,
    surroundings: { processors, memoryBytes, failure, watchAnswer, leftovers, clock, checkMoving },
    startedAt,
    spentMs,
    signal,
    stop,
    onEnded: (ending) => {
      surroundings.open.faults?.('run/ended')
      ledger.finish(entry, ending)
      surroundings.onEnded({ pid: result.process.pid, tag: plan.kept?.tag, ending })
    },
  })
  await orEnd(result.process, run, () => surroundings.open.faults?.('run/running'))
  entry.soFar = () => ({ wallMs: clock.now() - startedAt, outputBytes: program.output.printedBytes })
  // Aborted while it started: it is over before anyone gets it.
  if (signal?.aborted) await program.ended
  if (plan.kept) program.outliveCall()
  return program
}

/** What runs already is nobody's when this fails. */
async function orEnd(program: WardenProcess, run: CellRun, act: () => void): Promise<void> {
  try {
    act()
  } catch (error) {
    await program.kill().catch(() => undefined)
    run.close().catch(() => undefined)
    throw error
  }
}

interface Unstarted extends Pick<Launch, 'plan' | 'request'> {
  readonly run: CellRun
  readonly result: StartFailure
  readonly stop: Stop | undefined
}

/** How a program ended that never ran. Throws what is no fault of a program's. */
function unstarted({ plan, run, request, result, stop }: Unstarted, { open }: ProgramSurroundings): Pick<Ending, 'outcome'> & { hits?: LimitHits } {
  const { exit } = result
  if (exit) {
    const counts = run.usage()
    return { outcome: killedEarly({ result, exit, stop, memoryKills: counts.hits.memory, memoryBytes: plan.limits.memoryBytes }), hits: hitsOf(counts) }
  }
  if (result.stage !== 'exec') throw startError(result, request.cwd)
  return { outcome: notStarted(result, { program: request.argv[0] ?? '', isShell: typeof plan.command === 'string', isListed: open.isListed }) }
}

/** So often a start is tried that others interfere with. */
const mostTries = 4

type Attempt = Pick<Launch, 'plan' | 'user' | 'request' | 'entry'> & { readonly giveUp: AbortSignal }

interface Attempted {
  readonly result: StartResult
  readonly run: CellRun
  /** Of processor time, before it was this program. */
  readonly spentMs?: number | undefined
}

/** A zygote may end at any time: then what it was to fork is started as any other program is. */
async function attempt(order: Attempt, surroundings: ProgramSurroundings): Promise<Attempted> {
  const attempted = await attemptAsAsked(order, surroundings)
  const { liner } = order.request
  const { result, run } = attempted
  if (result.started || result.exit || result.stage !== 'set-up' || !liner?.forked || order.giveUp.aborted) return attempted
  run.close().catch(() => undefined)
  return attemptAsAsked({ ...order, request: { ...order.request, liner: { ...liner, forked: false } } }, surroundings)
}

/** By one that was made ready, or else anew. */
async function attemptAsAsked(order: Attempt, surroundings: ProgramSurroundings): Promise<Attempted> {
  const limits = limitsOf(order.plan)
  const kind = programKind(order.request, order.user, limits)
  const ready = await surroundings.ready?.take(kind, order.request, order.giveUp)
  return (ready && (await launchReady(ready, order, surroundings))) ?? (await startAnew(limits, order, surroundings))
}

async function launchReady(ready: ReadyRun, { request, user, entry, giveUp }: Attempt, surroundings: ProgramSurroundings): Promise<Attempted | undefined> {
  const { program, run, look, spentMs } = ready
  try {
    run.countFromNow()
    const result = await program.launch(request, { giveUp })
    if (result) {
      surroundings.inspector?.adopt(look, { number: entry.number, user: user.name, environment: entry.environment })
      if (spentMs !== undefined) entry.begunAhead = true
      return { result, run, spentMs }
    }
  } catch (error) {
    run.close().catch(() => undefined)
    throw error instanceof SandboxError && error.code === 'invalid' ? error : await surroundings.failure(error)
  }
  await program.drop().catch(() => undefined)
  run.close().catch(() => undefined)
  return undefined
}

/** Whoever starts is not to be told of what another program does once to those that start. */
async function startAnew(limits: RunLimits, order: Attempt, surroundings: ProgramSurroundings): Promise<Attempted> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await startOnce(limits, order, surroundings)
    } catch (error) {
      if (!(error instanceof LoweredLimits) || tries === mostTries || order.giveUp.aborted) throw error
    }
  }
}

async function startOnce(limits: RunLimits, order: Attempt, surroundings: ProgramSurroundings): Promise<Attempted> {
  const run = beginRun(limits, surroundings)
  try {
    surroundings.open.faults?.('run/counted')
    return { result: await startAtGate({ ...order, run, request: countedIn(order.request, run) }, surroundings), run }
  } catch (error) {
    run.close().catch(() => undefined)
    throw error
  }
}

async function startAtGate(
  { user, run, request, entry, giveUp }: Attempt & { readonly run: CellRun },
  surroundings: ProgramSurroundings,
): Promise<StartResult> {
  const { open, inspector, failure, condemn } = surroundings
  const { number, environment, posture } = entry
  const depth = posture === 'none' ? undefined : posture
  const atGate =
    inspector &&
    depth &&
    (async (pid: number): Promise<void> => {
      await inspector.inspectProgram({ pid, user, request, depth, run: { number, user: user.name, environment } })
      run.spareTime()
    })
  try {
    return await open.warden.start(request, { giveUp, ...(atGate && { atGate }) })
  } catch (error) {
    if (error instanceof LoweredLimits || (error instanceof SandboxError && error.code === 'invalid')) throw error
    if (error instanceof SandboxError && error.code === 'not-enforced') throw await condemn(error)
    throw await failure(error)
  }
}
