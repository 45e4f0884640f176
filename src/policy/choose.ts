import type { Driver, DriverLimit, Enforcement, Feature, Probe } from '../contract/driver.js'
import { type ErrorCode, SandboxError } from '../contract/errors.js'
import type { Limits } from '../contract/limits.js'
import type { SandboxInfo } from '../contract/platform.js'
import { bytesInUnits } from '../contract/quantities.js'
import type { Spec, UserName } from '../contract/spec.js'
import { tiers } from '../contract/spec-words.js'
import { isMeantBy, isOpenChoice } from './driver-names.js'

export interface Choice {
  readonly probe: Probe
  /** The spec's limits; a default above what this driver can enforce is lowered to that. */
  readonly limits: Limits
  readonly unenforced: SandboxInfo['unenforced']
}

interface Refusal {
  readonly code: Extract<ErrorCode, 'unsupported' | 'unavailable'>
  readonly driver: string
  readonly whys: readonly string[]
  readonly hint: string | undefined
  /** Its tier is below the least accepted, whatever else would be done. */
  readonly isTooWeak?: boolean
}

type Verdict = { readonly choice: Choice } | { readonly refusal: Refusal }

const doctor = 'glovebox doctor'
const onLinux = 'docker run --rm -it --privileged -v "$PWD:/src" -w /src node:22 npx glovebox doctor'

/** Where a limit's value is kept. */
const valueNames = {
  memory: 'memoryBytes',
  cpus: 'cpus',
  cpuTime: 'cpuTimeMs',
  disk: 'diskBytes',
  inodes: 'inodes',
  fileSize: 'fileSizeBytes',
  openFiles: 'openFiles',
  processes: 'processes',
  readRate: 'readBytesPerSecond',
  writeRate: 'writeBytesPerSecond',
} as const satisfies Record<DriverLimit, keyof Limits>
const sizes: readonly DriverLimit[] = ['memory', 'disk', 'fileSize', 'readRate', 'writeRate']

type Candidate = Pick<Driver, 'name' | 'tier'>

/**
 * The drivers that may be asked for a spec: the one it names, otherwise all that build a boundary. One that builds none has to be named,
 * and `minTier: 'none'` stated.
 */
export function candidates<Known extends Candidate>(spec: Spec, drivers: readonly Known[]): readonly Known[] {
  const wanted = spec.driver
  const found = drivers.filter(({ name, tier }) => (isOpenChoice(wanted) ? tier !== 'none' : isMeantBy(wanted, name)))
  if (found.length > 0) return found
  if (drivers.length === 0) throw new SandboxError('unsupported', 'no driver is for this system: cells are built on Linux', { hint: onLinux })
  const what = isOpenChoice(spec.driver) ? 'no driver here builds a boundary' : `driver: there is no driver '${spec.driver}' here`
  throw new SandboxError('unsupported', `${what} (drivers: ${drivers.map(({ name }) => name).join(', ') || 'none'})`, { hint: doctor })
}

/** The cheapest first: the weaker a boundary, the less it costs; of the same tier those that were given first. Those below the least accepted come last. */
export function cheapestFirst<Known extends Candidate>({ minTier }: Pick<Spec, 'minTier'>, drivers: readonly Known[]): readonly Known[] {
  const price = ({ tier }: Candidate): number => tiers.indexOf(tier) + (tiers.indexOf(tier) < tiers.indexOf(minTier) ? tiers.length : 0)
  return drivers.toSorted((one, other) => price(one) - price(other))
}

/** Whether none that costs more could be better: it holds all that was stated, and enforces every default. */
export function isEnough(spec: Spec, probe: Probe): boolean {
  const verdict = judge(spec, probe)
  return 'choice' in verdict && verdict.choice.unenforced.length === 0
}

/**
 * Of the candidates that can hold all that was stated, the one that enforces most of the unstated defaults, then the cheapest, which is the first
 * given. Throws SandboxError naming every one of them and what speaks against it.
 */
export function chooseDriver(spec: Spec, probes: readonly Probe[]): Choice {
  const verdicts = probes.map((probe) => judge(spec, probe))
  const choices = verdicts.flatMap((verdict) => ('choice' in verdict ? [verdict.choice] : []))
  const [best] = choices.sort((a, b) => a.unenforced.length - b.unenforced.length)
  if (best) return best
  throw refuse(verdicts.flatMap((verdict) => ('refusal' in verdict ? [verdict.refusal] : [])))
}

function judge(spec: Spec, probe: Probe): Verdict {
  const { driver, tier } = probe
  const refused = (code: Refusal['code'], whys: readonly string[], hint?: string): Verdict => ({ refusal: { code, driver, whys, hint } })

  if (tiers.indexOf(tier) < tiers.indexOf(spec.minTier)) {
    const whys = [`is of tier '${tier}', and the least accepted (minTier) is '${spec.minTier}'`]
    return { refusal: { code: 'unsupported', driver, whys, hint: undefined, isTooWeak: true } }
  }
  if (!probe.available) {
    const whys = probe.obstacles.map(({ what, why, hint }) => `${what}: ${why} (${hint})`)
    return refused('unavailable', whys.length > 0 ? whys : ['is not available'], probe.obstacles[0]?.hint)
  }
  const lacking = [...lackingLimits(spec.limits, probe), ...lackingUser(spec.user, probe), ...lackingFeatures(spec, probe)]
  if (lacking.length > 0) return refused('unsupported', lacking)
  return { choice: { probe, limits: lowerDefaults(spec.limits, probe), unenforced: unenforcedLimits(spec.limits, probe) } }
}

function refuse(refusals: readonly Refusal[]): SandboxError {
  // What only needs another wish is told before what needs another machine.
  const first = refusals.find((refusal) => refusal.code === 'unsupported') ?? refusals[0]
  const reasons = refusals.map(({ driver, whys }) => `driver ${driver}: ${whys.join('; ')}`)
  return new SandboxError(first?.code ?? 'unavailable', reasons.join('. '), { hint: first?.hint ?? wayOn(refusals) ?? doctor })
}

/** Where all that are here are too weak, it is one that is not here yet that would do. */
function wayOn(refusals: readonly Refusal[]): string | undefined {
  const enough = refusals.filter(({ isTooWeak = false }) => !isTooWeak)
  return enough.every(({ code }) => code === 'unavailable') ? enough[0]?.hint : undefined
}

/** What speaks against each stated limit; empty when all can be held. */
export function lackingLimits(limits: Partial<Limits> & Pick<Limits, 'stated'>, probe: Probe): string[] {
  return driverLimits().flatMap((limit) => {
    if (!limits.stated.includes(limit)) return []
    const enforcement = probe.limits[limit]
    if (!enforcement.enforced) return [`limits.${limit} cannot be enforced: ${enforcement.why}`]
    const value = limits[valueNames[limit]]
    return value === undefined ? [] : outOfRange(limit, value, enforcement)
  })
}

function outOfRange(limit: DriverLimit, value: number, { min, max, by }: Extract<Enforcement, { enforced: true }>): string[] {
  if (min !== undefined && value < min)
    return [`limits.${limit}: ${inWords(limit, value, Math.floor)} is below the ${inWords(limit, min, Math.ceil)} that a cell needs`]
  if (max === undefined || value <= max) return []
  return [`limits.${limit}: ${inWords(limit, value, Math.ceil)} is above the ${inWords(limit, max, Math.floor)} that can be enforced (${by})`]
}

/** What a spec asks for beyond limits and users, under the name of its field. */
function lackingFeatures(spec: Spec, probe: Probe): string[] {
  const asked: readonly (readonly [isAsked: boolean, feature: Feature, words: string])[] = [
    [spec.commands !== undefined, 'commands', 'commands cannot be enforced'],
    [spec.mounts.some(({ mode }) => mode === 'ro'), 'mounts-ro', 'mounts are not available'],
    [spec.mounts.some(({ mode }) => mode === 'overlay'), 'mounts-overlay', 'mounts with an overlay are not available'],
    [spec.mounts.some(({ mode }) => mode === 'rw'), 'mounts-rw', 'mounts that can be written to are not available'],
    [spec.network !== false, 'network', 'network is not available'],
    [spec.root === 'overlay', 'root-overlay', "root: 'overlay' is not available"],
  ]
  const lacking = asked.flatMap(([isAsked, feature, words]) => {
    const found = probe.features[feature]
    return isAsked && !found.available ? [`${words}: ${found.why}`] : []
  })
  const overwritable =
    spec.commands !== undefined && spec.root === 'overlay' ? ["commands cannot be enforced: with root: 'overlay' what is listed could be overwritten"] : []
  const filter = spec.seccomp !== undefined && !probe.filtersSyscalls ? ['seccomp cannot be enforced: this driver filters no system calls'] : []
  return [...lacking, ...overwritable, ...filter]
}

function inWords(limit: DriverLimit, value: number, round: (value: number) => number): string {
  return sizes.includes(limit) ? bytesInUnits(value, round) : String(value)
}

function lackingUser(user: UserName, probe: Probe): string[] {
  const found = probe.users[user]
  return found.available ? [] : [userRefusal(user, found.why)]
}

/** The same words whether a spec or a run asked. */
export function userRefusal(user: UserName, why: string): string {
  return `user: '${user}' is not available: ${why}`
}

function unenforcedLimits(limits: Limits, probe: Probe): SandboxInfo['unenforced'] {
  return driverLimits().flatMap((limit) => {
    const enforcement = probe.limits[limit]
    return enforcement.enforced || limits.stated.includes(limit) || limits[valueNames[limit]] === undefined ? [] : [{ limit, why: enforcement.why }]
  })
}

function lowerDefaults(limits: Limits, probe: Probe): Limits {
  const lowered: Partial<Record<(typeof valueNames)[DriverLimit], number>> = {}
  for (const limit of driverLimits()) {
    const enforcement = probe.limits[limit]
    const value = limits[valueNames[limit]]
    if (value === undefined || !enforcement.enforced || enforcement.max === undefined) continue
    if (enforcement.max < value) lowered[valueNames[limit]] = enforcement.max
  }
  return { ...limits, ...lowered }
}

function driverLimits(): readonly DriverLimit[] {
  return Object.keys(valueNames) as DriverLimit[]
}
