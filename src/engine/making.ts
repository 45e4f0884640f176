/** From a planned spec to a cell that was looked at: what is wrong or cannot be had is refused before anything is opened. */
import type { Cell, CellSpec, CommandRules, Driver, Probe, TemplateRoot } from '../contract/driver.js'
import { SandboxError } from '../contract/errors.js'
import type { Faults } from '../contract/faults.js'
import { linkSignals } from '../contract/linked-signals.js'
import type { RequestJudge } from '../contract/platform-network.js'
import type { Policy } from '../contract/policy.js'
import type { SnapshotInfo } from '../contract/snapshots.js'
import type { Mount, Spec } from '../contract/spec.js'
import { allowedDrivers, checkMounts, heldImageEnv, networkRulesOf, type PlannedSandbox } from '../policy/apply.js'
import { candidates, cheapestFirst, type Choice, chooseDriver, isEnough } from '../policy/choose.js'
import { fileRules } from '../policy/file-rules.js'
import { templateIdRefusal } from '../policy/snapshot-options.js'
import { storageRefusal } from '../policy/storage.js'
import { capabilityNames } from './capability-names.js'
import { tryCommands } from './command-trial.js'
import { Deadline } from './deadline.js'
import type { Filters } from './filters.js'
import type { FirstProgram } from './first-program.js'
import { FirstLook } from './first-look.js'
import type { Inspector } from './inspector.js'
import { cellNetwork, type EgressSource, type WayWish } from './network-making.js'
import { type OpenCell, openCell } from './open-cell.js'
import { checkLined } from './pool-refusals.js'
import type { Probes } from './probes.js'
import type { Held } from './ready-programs.js'

/** What the engine is handed to make cells with. */
export interface Makers {
  readonly drivers: readonly Driver[]
  readonly templates: {
    resolve(name: string): Promise<TemplateRoot>
    /** The id that `resolve` would find, without a look at anything else; undefined for what the machine has. */
    idOf?(name: string): string | undefined
  }
  /** What a list of commands may execute and read. Throws SandboxError('invalid') naming the entry. */
  commands(names: readonly string[], root: TemplateRoot): Promise<CommandRules>
  /** The same mounts with every link followed. Throws SandboxError naming the one that may not be handed in. */
  mounts(mounts: readonly Mount[]): Promise<readonly Mount[]>
  /** The way out; not given: no sandbox can have one. */
  readonly egress?: EgressSource
  /** Begun when the first cell is made: what engines left that were killed goes. */
  readonly sweep?: { readonly begin: () => void; readonly settled: () => Promise<void> }
  /** Only where failures are tried. */
  readonly faults?: Faults
  /** False only to measure what looking costs. */
  readonly inspect?: boolean
}

export interface Order {
  readonly id: string
  readonly planned: PlannedSandbox
  readonly signal: AbortSignal
  /** The snapshot that it begins with. */
  readonly origin?: SnapshotInfo | undefined
  /** Whether runs can each be given a liner in it. */
  readonly liners?: boolean | undefined
  /** Asked about what no rule of its network decides. */
  readonly onRequest?: RequestJudge | undefined
}

export interface Tools {
  readonly makers: Makers
  readonly filters: Filters
  readonly probes: Probes
}

/** Chosen and resolved, not yet opened. */
export interface Preparation {
  readonly driver: Driver
  readonly choice: Choice
  readonly spec: Spec
  readonly cell: CellSpec
  /** Of its way out; undefined: it has none, and never will. */
  readonly way: WayWish | undefined
}

export interface MadeCell {
  readonly probe: Probe
  readonly open: OpenCell
  readonly inspector: Inspector | undefined
  /** Its first program, made ready before it was anyone's. */
  readonly first?: Held
}

/** What the driver says of itself that would be chosen. Throws as a creation would. */
export async function chosenProbe(planned: PlannedSandbox, tools: Pick<Tools, 'makers' | 'probes'>): Promise<Probe> {
  return (await choose(planned, tools)).choice.probe
}

async function choose({ spec, policy }: PlannedSandbox, { makers, probes }: Pick<Tools, 'makers' | 'probes'>): Promise<Pick<Preparation, 'driver' | 'choice'>> {
  const drivers = candidates(spec, allowedDrivers(makers.drivers, policy))
  const choice = await chooseInTurn(spec, drivers, probes)
  const driver = drivers.find((each) => each.name === choice.probe.driver)
  if (!driver) throw new SandboxError('internal', `driver ${choice.probe.driver} answers under another name`)
  return { driver, choice }
}

/** Those that stand by are asked when no other can do it; where they cannot either, what spoke against the others is told. */
async function chooseInTurn(spec: Spec, drivers: readonly Driver[], probes: Probes): Promise<Choice> {
  const firsts = drivers.filter(({ standby = false }) => !standby)
  const among = async (some: readonly Driver[]): Promise<Choice> =>
    chooseDriver(spec, await probes.until(cheapestFirst(spec, some), (probe) => isEnough(spec, probe)))
  if (firsts.length === 0 || firsts.length === drivers.length) return among(drivers)
  try {
    return await among(firsts)
  } catch (error) {
    return among(drivers).catch(() => Promise.reject(error))
  }
}

export async function prepareCell({ id, planned, origin, liners, onRequest }: Order, tools: Tools): Promise<Preparation> {
  const { makers, filters } = tools
  const { spec, policy } = planned
  makers.sweep?.begin()
  // What liners rely on is the filter of ours; and a cell that promised more than its runs can have is never opened.
  if (liners) checkLined(spec)
  const { driver, choice } = await choose(planned, tools)
  const [resolved, mounts] = await Promise.all([
    makers.templates.resolve(spec.template),
    spec.mounts.length === 0 ? [] : makers.mounts(spec.mounts),
    // Compiled here so that a profile which is wrong opens nothing.
    choice.probe.filtersSyscalls ? filters.of(spec, []) : undefined,
  ]).catch((error: unknown) => {
    throw storageRefusal(error)
  })
  const root = withinCeiling(resolved, policy)
  const moved = origin && templateIdRefusal('from', root.id, origin)
  if (moved) throw moved
  checkMounts(mounts, policy)
  const commands = spec.commands && (await makers.commands(spec.commands, root))
  const rules = networkRulesOf(spec.network, policy)
  const way = rules && { rules, onRequest }
  const network = way && (await cellNetwork(choice.probe, makers.egress))
  const { faults } = makers
  const cell = {
    id,
    root,
    limits: choice.limits,
    rootMode: spec.root,
    mounts,
    commands,
    ...(liners && { liners }),
    ...(network && { network }),
    ...(faults && { faults }),
  }
  faults?.('create/prepared')
  return { driver, choice, spec: { ...spec, limits: choice.limits, mounts: [...mounts], ...startingIn(spec, root) }, cell, way }
}

/** What an image asks for is asked for by a stranger: variables that a policy lets nobody set are not set by one either. */
function withinCeiling(root: TemplateRoot, policy: Policy): TemplateRoot {
  return root.imageDigest === undefined ? root : { ...root, env: heldImageEnv(root.env, policy) }
}

/** Whoever creates the sandbox says where runs start, or else its image. */
function startingIn({ cwd }: Pick<Spec, 'cwd'>, { workdir }: Pick<TemplateRoot, 'workdir'>): Pick<Spec, 'cwd'> {
  return cwd !== undefined || workdir === undefined ? {} : { cwd: workdir }
}

/** The same, given up when it takes longer than this. */
export async function makeCellInTime(preparation: Preparation, tools: Tools, { signal, answerMs, ...wishes }: Patience): Promise<MadeCell> {
  const late = new AbortController()
  using either = linkSignals(signal, late.signal)
  const patience = new Deadline(answerMs, () => late.abort(new SandboxError('broken', `a cell did not open within ${answerMs} ms`)))
  try {
    return await makeCell(preparation, tools, { signal: either.signal, ...wishes })
  } finally {
    patience.cancel()
  }
}

export interface Patience {
  readonly signal: AbortSignal
  readonly answerMs: number
  /** At which its way out listens besides. */
  readonly ports?: (() => readonly number[]) | undefined
  /** Begun as soon as anything can be. */
  readonly first?: FirstProgram | undefined
}

/** When it is not as demanded, or is aborted, nothing of the cell is left. */
async function makeCell(preparation: Preparation, { filters, makers }: Tools, { signal, ports, first }: Omit<Patience, 'answerMs'>): Promise<MadeCell> {
  const { driver, choice, spec, cell: cellSpec } = preparation
  const { probe } = choice
  const filter = async (cell: Cell): Promise<Uint8Array | undefined> => {
    const user = cell.users.find(({ name }) => name === spec.user)
    return probe.filtersSyscalls ? filters.of(spec, capabilityNames(user?.capabilities ?? 0n)) : undefined
  }
  const sight = new FirstLook({ probe, inspects: probe.isolates && makers.inspect !== false, ports, first })
  const rules = fileRules(cellSpec.commands, cellSpec.mounts)
  const open = await openCell({ driver, spec: cellSpec, filter, rules, signal, beforeHello: sight.beforeHello }).catch((error: unknown) => {
    sight.giveUp(error)
    throw error
  })
  try {
    const made = await sight.look(open)
    cellSpec.faults?.('create/looked-at')
    // Only in a cell that is as demanded is anything tried.
    const tried = cellSpec.commands && (await tryCommands(cellSpec.commands, open))
    if (tried) made.inspector?.addTried(tried)
    return made
  } catch (error) {
    open.warden.close()
    await open.cell.close()
    signal.throwIfAborted()
    throw error
  }
}
