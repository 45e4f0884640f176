import { connectWarden } from '../channel/index.js'
import type { Availability, Cell, CellSpec, Feature, Obstacle, Probe } from '../contract/driver.js'
import type { Tier } from '../contract/spec-words.js'
import { SandboxError } from '../contract/errors.js'
import { defaultLimits } from '../contract/limit-words.js'
import type { Cgroups, CgroupsUnavailable } from '../sys/cgroups.js'
import { nativeProgram } from '../sys/native.js'
import { randomId } from '../sys/random-id.js'
import { capture } from '../sys/spawn.js'
import { makeTempFolder, removeTree } from '../sys/temp-folder.js'
import type { HostFacts, RuntimeProgram } from './facts.js'
import type { TrialMemory } from './trial-memory.js'
import {
  canMapRanges,
  judgeCommands,
  judgeFeatures,
  judgeLaidMounts,
  judgeLimits,
  judgeLiners,
  judgeNetwork,
  judgePause,
  judgeUsers,
  type FailedTrial,
  type Trial,
} from './judgement.js'

const trialMs = 10_000
/** The warden's numbers for reading files and for moving them between folders. */
const readAndMove = 2 | 4

/** What builds the cells, as far as it is asked about. */
export interface Mechanism<Facts extends HostFacts> {
  readonly driver: string
  readonly tier: Tier
  /** The name of the program that starts cells. */
  readonly runtime: string
  /** Of the last line of a start that failed: what that program said, or undefined when it was somebody else. */
  readonly wordsOf: (line: string) => string | undefined
  /** The runtime is asked for its version, unless that is known. */
  readFacts(version: string | undefined): Promise<Facts>
  runtimeOf(facts: Facts): RuntimeProgram | undefined
  obstaclesBefore(facts: Facts): readonly Obstacle[]
  obstacleOf(facts: Facts, trial: FailedTrial): Obstacle
  /** As of a probe. */
  readonly ownKernel?: true
  /** Facts worth telling a person, beside those that are told of every mechanism. */
  readonly others?: Readonly<Record<string, string>>
  /** What its cells never have, and why: that is not tried. */
  readonly lacks?: Partial<Record<Feature, string>>
  /** What holds each limit, where it is not what holds those of other cells. Without cgroups of the host's they are undefined. */
  limits?(limits: Probe['limits'], cgroups: Cgroups | undefined): Probe['limits']
}

export interface ProbeOptions<Facts extends HostFacts> extends TrialOptions {
  readonly mechanism: Mechanism<Facts>
  cgroups(): Promise<Cgroups | CgroupsUnavailable>
  /** What the cells opened so far share with the host in spite of themselves; empty when nothing. */
  sharedFiles(): string
  readonly trials: TrialMemory | undefined
}

interface TrialOptions {
  open(spec: CellSpec, signal: AbortSignal): Promise<Cell>
}

/** Never throws: what goes wrong is an obstacle. */
export async function probeHost<Facts extends HostFacts>(options: ProbeOptions<Facts>): Promise<Probe> {
  const { mechanism } = options
  const known = options.trials?.recall()
  const facts = await mechanism.readFacts(known)
  const program = mechanism.runtimeOf(facts)
  const { driver, tier, runtime, lacks = {}, ownKernel, others = {} } = mechanism
  const limits: About['limits'] = (judged, cgroups) => mechanism.limits?.(judged, cgroups) ?? judged
  const about = { facts, program, driver, tier, runtime, lacks, limits, ownKernel, others }
  const before = mechanism.obstaclesBefore(facts)
  if (before.length > 0)
    return describe(about, {
      obstacles: before,
      cgroups: { unavailable: 'not looked for' },
      overlayTrial: 'not tried',
      ruled: notTried,
      laid: notTried,
      lined: notTried,
      wired: notTried,
      direct: notTried,
    })
  const cgroups = await options.cgroups().catch((error: unknown): CgroupsUnavailable => ({ unavailable: String(error) }))
  const trials = known === undefined ? await tryAll(options, facts) : allOpened
  const found = describe(about, { obstacles: trials.plain.opened ? [] : [mechanism.obstacleOf(facts, trials.plain)], cgroups, ...trials })
  const sharedFiles = options.sharedFiles()
  const { overlayTrial, ...cells } = trials
  const isWorthKeeping = known === undefined && Object.values(cells).every(({ opened }) => opened) && overlayTrial === undefined && sharedFiles === ''
  if (isWorthKeeping && program) options.trials?.keep(program.version)
  return sharedFiles === '' ? found : { ...found, facts: { ...found.facts, 'shared files': sharedFiles } }
}

interface Findings {
  readonly obstacles: readonly Obstacle[]
  readonly cgroups: Cgroups | CgroupsUnavailable
  readonly overlayTrial: string | undefined
  /** What became of a cell with rules for files. */
  readonly ruled: Trial
  /** The same of one with an overlay on a folder. */
  readonly laid: Trial
  /** The same of one in which runs can have liners. */
  readonly lined: Trial
  /** The same of one with a way out, by proxy alone and also without one. */
  readonly wired: Trial
  readonly direct: Trial
}

const notTried: Trial = { opened: false, said: 'not tried' }

interface About {
  readonly facts: HostFacts
  readonly program: RuntimeProgram | undefined
  readonly driver: string
  readonly tier: Tier
  readonly runtime: string
  readonly lacks: Partial<Record<Feature, string>>
  readonly ownKernel: true | undefined
  readonly others: Readonly<Record<string, string>>
  readonly limits: (limits: Probe['limits'], cgroups: Cgroups | undefined) => Probe['limits']
}

function describe(
  { facts, program, driver, tier, runtime, lacks, limits, ownKernel, others }: About,
  { obstacles, cgroups, overlayTrial, ruled, laid, lined, wired, direct }: Findings,
): Probe {
  return {
    driver,
    tier,
    available: obstacles.length === 0,
    obstacles,
    limits: limits(
      judgeLimits(facts, 'unavailable' in cgroups ? (cgroups.enforces ?? cgroups.unavailable) : cgroups.enforces),
      'unavailable' in cgroups ? undefined : cgroups,
    ),
    users: judgeUsers(facts),
    features: {
      ...judgeFeatures(facts, overlayTrial),
      commands: judgeCommands(ruled),
      'mounts-overlay': judgeLaidMounts(laid),
      pause: judgePause(cgroups),
      liners: judgeLiners(lined),
      network: judgeNetwork(wired),
      'direct-network': judgeNetwork(direct),
      ...lacking(lacks),
    },
    filtersSyscalls: true,
    isolates: true,
    ...(ownKernel && { ownKernel }),
    facts: {
      [runtime]: program === undefined ? 'none' : `${program.version} (${program.path})`,
      ids: canMapRanges(facts) ? '65536 for each cell, from 0x78000000 up' : `only uid ${facts.uid}`,
      kernel: facts.kernel.join('.'),
      ...others,
    },
  }
}

function lacking(lacks: About['lacks']): Partial<Record<Feature, Availability>> {
  return Object.fromEntries(Object.entries(lacks).map(([feature, why]) => [feature, { available: false, why }]))
}

interface Attempt {
  readonly commands: CellSpec['commands']
  readonly mounts?: CellSpec['mounts']
  readonly liners?: boolean
  readonly network?: CellSpec['network']
  within(cell: Cell, signal: AbortSignal): Promise<void>
}

/** Not even that there is no such program can be told by a cell in which none can be started. */
const tryProgram: Attempt = {
  commands: undefined,
  within: (cell, signal) => startNowhere(cell, signal),
}

async function startNowhere(cell: Cell, signal: AbortSignal, rules?: readonly { readonly access: number; readonly path: string }[]): Promise<void> {
  const warden = await connectWarden(cell.channel, { signal, ...(rules && { rules }) })
  const [user] = cell.users
  if (!user) throw new SandboxError('internal', 'a cell without users')
  const { uid, gid, capabilities } = user
  const run = cell.beginRun({ memoryBytes: undefined, processes: undefined })
  const place = run.group === undefined ? {} : { group: run.group }
  const result = await warden.start({ argv: ['/nowhere'], env: {}, cwd: '/', uid, gid, capabilities, rlimits: [], stdin: false, ...place })
  warden.close()
  await run.close()
  if (result.started || result.stage !== 'exec') throw new SandboxError('unsupported', result.started ? 'what is not there was started' : result.text)
}

/** Its warden said that it made the routes; the kernel says whether they are there. */
const tryRoutes: Attempt = {
  ...tryProgram,
  network: { direct: true },
  async within(cell, signal) {
    const [posture] = await cell.posture({ kind: 'cell' })
    const isRoutes = ({ control }: { readonly control: string }): boolean => control === 'routes'
    const found = JSON.stringify(posture?.observations.find(isRoutes)?.value)
    const expected = JSON.stringify(cell.expects.find(isRoutes)?.value)
    if (found !== expected) throw new SandboxError('unsupported', `its routes are ${found} instead of ${expected}`)
    await tryProgram.within(cell, signal)
  },
}

/** A program is put under the rules, and so found out whether the kernel has them, though there is no such program. */
const tryRules: Attempt = {
  commands: { executable: [], readable: [], unlisted: undefined },
  within: (cell, signal) => startNowhere(cell, signal, [{ access: readAndMove, path: cell.workdir }]),
}

type CellTrials = Readonly<Record<'ruled' | 'laid' | 'plain', Trial>>

type LinedTrials = Readonly<Record<'lined' | 'wired' | 'direct', Trial>>

interface Trials extends CellTrials, LinedTrials {
  /** Why a writable root could not be built; undefined where it could, or needs privilege that is not there. */
  readonly overlayTrial: string | undefined
}

const opened: Trial = { opened: true }
const allOpened: Trials = { ruled: opened, laid: opened, lined: opened, plain: opened, wired: opened, direct: opened, overlayTrial: undefined }

async function tryAll(options: TrialOptions & { readonly mechanism: Pick<Mechanism<never>, 'lacks'> }, facts: HostFacts): Promise<Trials> {
  // One that lacks so much has little to try.
  if (options.mechanism.lacks !== undefined) {
    const plain = await tryCell(options, { ...tryProgram, network: { direct: false } })
    return plain.opened ? allOpened : { ...allOpened, plain, wired: plain }
  }
  const [cells, lined, overlayTrial] = await Promise.all([tryCells(options), tryLined(options), canMapRanges(facts) ? tryOverlay() : undefined])
  return { ...cells, ...lined, overlayTrial }
}

/** All at once, and one by one only where that does not open. Its warden says hello only when a liner could be made, with doors as those of the cell. */
async function tryLined(options: TrialOptions): Promise<LinedTrials> {
  const all = await tryCell(options, { ...tryRoutes, liners: true })
  if (all.opened) return { lined: all, wired: all, direct: all }
  const lined = await tryCell(options, { ...tryProgram, liners: true })
  const direct = await tryCell(options, tryRoutes)
  return { lined, direct, wired: direct.opened ? direct : await tryCell(options, { ...tryProgram, network: { direct: false } }) }
}

/** The hardest first: where that opens, the others would. */
async function tryCells(options: TrialOptions): Promise<CellTrials> {
  const folder = await makeTempFolder('glovebox-trial-')
  try {
    const mounts: CellSpec['mounts'] = [{ source: folder, target: '/workspace', mode: 'overlay' }]
    const all = await tryCell(options, { ...tryRules, mounts })
    if (all.opened) return { ruled: all, laid: all, plain: all }
    const ruled = await tryCell(options, tryRules)
    const laid = ruled.opened ? all : await tryCell(options, { ...tryProgram, mounts })
    const other = [ruled, laid].find(({ opened }) => opened)
    return { ruled, laid, plain: other ?? (await tryCell(options, tryProgram)) }
  } finally {
    await removeTree(folder)
  }
}

/** A small cell: nothing of the host but the warden, which must say hello, and the folder that every template shows. */
async function tryCell(options: TrialOptions, attempt: Attempt): Promise<Trial> {
  const signal = AbortSignal.timeout(trialMs)
  try {
    const { commands, mounts = [], liners = false, network } = attempt
    const cell = await options.open({ ...trialSpec(), commands, mounts, liners, ...(network && { network }) }, signal)
    try {
      await attempt.within(cell, signal)
    } finally {
      await cell.close()
    }
    return { opened: true }
  } catch (error) {
    if (signal.aborted) return { opened: false, said: `no answer within ${trialMs} ms` }
    if (!(error instanceof SandboxError)) return { opened: false, said: String(error) }
    // Failures of the programs point here; others know the way on.
    const knows = error.hint !== undefined && !error.hint.includes('doctor')
    return { opened: false, said: error.message, ...(knows ? { hint: error.hint } : {}) }
  }
}

/** A writable root over a folder of the filesystem that most of a template lies on, thrown away at once. Undefined when it could be built. */
async function tryOverlay(): Promise<string | undefined> {
  const root = ['--root', '2013265920', `${2 ** 20}`, '1024', '--layer', '/usr', '/usr/bin']
  const tried = await capture([nativeProgram('launcher'), ...root, '--', '/bin/true'], { timeoutMs: trialMs }).catch((error: unknown) => ({
    code: -1,
    stderr: String(error),
  }))
  return tried.code === 0 ? undefined : tried.stderr
}

function trialSpec(): CellSpec {
  return {
    id: randomId(),
    root: { name: 'trial', binds: [{ source: '/usr', target: '/usr' }], symlinks: [], shell: '/bin/sh', env: {} },
    limits: { ...defaultLimits, diskBytes: 65_536, inodes: 64, fileSizeBytes: 65_536, stated: [] },
    rootMode: 'readonly',
    mounts: [],
    commands: undefined,
  }
}
