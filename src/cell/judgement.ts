import type { Availability, Obstacle, Probe } from '../contract/driver.js'
import type { Cgroups, CgroupsUnavailable } from '../sys/cgroups.js'
import { capabilityMask, launcherCapabilities } from './capabilities.js'
import type { HostFacts, IdFacts } from './facts.js'
import { overlayNeedsRanges } from './mount-refusals.js'

/** What became of a cell that was opened only to see whether it opens. */
export type Trial = { readonly opened: true } | FailedTrial

export interface FailedTrial {
  readonly opened: false
  readonly said: string
  /** How to go on, where the failure itself knew. */
  readonly hint?: string
}

const rangeFirst = 0x78000000
const rangeLast = 0x7fffffff

/** A range of ids for each cell needs privilege, and a user namespace of our own that has those ids. */
export function canMapRanges(facts: IdFacts): boolean {
  const needed = capabilityMask(launcherCapabilities)
  return (
    facts.uid === 0 && (facts.capabilities & needed) === needed && facts.uidMap.some(([inside, , count]) => inside <= rangeFirst && inside + count > rangeLast)
  )
}

/** What is in the way before anything is tried, whatever builds the cells. */
export function missingPrograms(facts: HostFacts): Obstacle[] {
  if (facts.missingPrograms.length === 0) return []
  return [{ what: 'native programs not built', why: `missing: ${facts.missingPrograms.join(', ')}`, hint: 'node scripts/build-native.mjs' }]
}

/** What of this host kept a trial from opening, most certain first; undefined when that cannot be told. */
export function hostObstacle(facts: HostFacts, said: string): Obstacle | undefined {
  return namespacesOff(facts, said) ?? maskedProc(facts, said) ?? containerRefuses(facts, said)
}

function namespacesOff(facts: HostFacts, said: string): Obstacle | undefined {
  if (!/namespace|userns|uid map|uid_map|Operation not permitted|No space left on device|Permission denied/i.test(said)) return undefined
  const { sysctls } = facts
  const off = (name: string, value: string, by: string): Obstacle => ({
    what: 'user namespaces are switched off',
    why: `${by} ${name} (${lastLine(said)})`,
    hint: `${facts.uid === 0 ? '' : 'sudo '}sysctl -w ${name}=${value}`,
  })
  if (sysctls.unprivilegedUsernsClone === '0') return off('kernel.unprivileged_userns_clone', '1', 'by the sysctl')
  if (sysctls.maxUserNamespaces === '0') return off('user.max_user_namespaces', '15000', 'by the sysctl')
  if (/No space left on device/.test(said)) return off('user.max_user_namespaces', '60000', 'no more are left within the sysctl')
  if (sysctls.apparmorRestrictsUserns === '1') return off('kernel.apparmor_restrict_unprivileged_userns', '0', 'by AppArmor, through the sysctl')
  return undefined
}

const containerHint = 'docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined …'

/** The kernel refuses a new /proc to a user namespace as long as the one it can see has parts covered. */
function maskedProc(facts: HostFacts, said: string): Obstacle | undefined {
  if (!/mount proc/i.test(said)) return undefined
  const where = facts.container === undefined ? 'here' : `in this container (${facts.container})`
  return {
    what: 'inside an unprivileged container',
    why: `mounting /proc is refused because parts of /proc are masked ${where}: ${lastLine(said)}`,
    hint: containerHint,
  }
}

function containerRefuses(facts: HostFacts, said: string): Obstacle | undefined {
  if (facts.container === undefined || !/Operation not permitted|Permission denied|Function not implemented/.test(said)) return undefined
  return {
    what: 'inside an unprivileged container',
    why: `its seccomp filter or policy refuses namespaces or mounts (${facts.container}): ${lastLine(said)}`,
    hint: containerHint,
  }
}

export function lastLine(said: string): string {
  return said.trim().split('\n').at(-1) ?? ''
}

/** The least with which a cell opens and a shell runs in it. */
export const leastLimits = { memory: 4 * 2 ** 20, disk: 64 * 2 ** 10, inodes: 64, openFiles: 16, processes: 1 } as const

/** What holds each limit. Cgroups are handed in: what they enforce, or why there are none. */
export function judgeLimits(facts: HostFacts, cgroups: Cgroups['enforces'] | string): Probe['limits'] {
  const limits = limitsHere(facts, cgroups)
  const withLeast = (name: keyof typeof leastLimits) => (limits[name].enforced ? { ...limits[name], min: leastLimits[name] } : limits[name])
  return {
    ...limits,
    memory: withLeast('memory'),
    disk: withLeast('disk'),
    inodes: withLeast('inodes'),
    openFiles: withLeast('openFiles'),
    processes: withLeast('processes'),
  }
}

function limitsHere(facts: HostFacts, cgroups: Cgroups['enforces'] | string): Probe['limits'] {
  const { memory, cpus, cpuTime, processes, readRate, writeRate } = typeof cgroups === 'string' ? noCgroups(cgroups) : cgroups
  return {
    memory,
    cpus,
    cpuTime,
    disk: { enforced: true, by: 'a tmpfs of that size, shared by all that is writable', max: Math.floor(facts.memoryBytes / 2) },
    inodes: { enforced: true, by: 'the inode count of that tmpfs' },
    fileSize: { enforced: true, by: 'RLIMIT_FSIZE of each process' },
    // Nothing in a cell may raise what this process was started with.
    openFiles: { enforced: true, by: 'RLIMIT_NOFILE of each process', max: facts.openFiles },
    processes: processes.enforced ? processes : judgeProcesses(facts),
    readRate,
    writeRate,
  }
}

function noCgroups(why: string): Cgroups['enforces'] {
  const none = { enforced: false, why } as const
  return { memory: none, cpus: none, cpuTime: none, processes: none, readRate: none, writeRate: none }
}

/** Before Linux 5.14 the kernel counted a user's processes over all user namespaces: with ids of the cell's own that is the same, otherwise not. */
function judgeProcesses(facts: HostFacts): Probe['limits']['processes'] {
  const [major, minor] = facts.kernel
  if (canMapRanges(facts) || major > 5 || (major === 5 && minor >= 14)) return { enforced: true, by: 'RLIMIT_NPROC of each user in the cell', rlimit: true }
  return { enforced: false, why: `Linux ${major}.${minor} counts the processes of uid ${facts.uid} outside the cell too` }
}

export function judgeUsers(facts: HostFacts): Probe['users'] {
  if (canMapRanges(facts)) return { user: { available: true }, root: { available: true } }
  const why =
    facts.uid === 0 ? 'this root cannot give a cell ids of its own (capabilities or uid_map of the container)' : 'only root can give a cell more than one id'
  return { user: { available: true }, root: { available: false, why } }
}

/** `overlayTrial` is why a writable root could not be built when it was tried; undefined when it could. */
/** Whether only some programs can be let run: what became of a cell in which none was. */
export function judgeCommands(trial: Trial): Availability {
  if (trial.opened) return { available: true }
  return { available: false, why: `a cell with rules for files did not open: ${lastLine(trial.said) || 'it ended without a word'}` }
}

export function judgeFeatures(
  facts: HostFacts,
  overlayTrial: string | undefined,
): Omit<Probe['features'], 'commands' | 'mounts-overlay' | 'pause' | 'liners' | 'network' | 'direct-network'> {
  const mounts = judgeMounts(facts)
  return { 'mounts-ro': mounts, 'mounts-rw': mounts, 'root-overlay': judgeOverlay(facts, overlayTrial) }
}

/** What became of a cell with a folder that was overlaid. */
export function judgeLaidMounts(trial: Trial): Availability {
  if (trial.opened) return { available: true }
  const said = lastLine(trial.said) || 'it ended without a word'
  const isOld = /keep attributes of a layer/.test(said)
  return { available: false, why: isOld ? 'the disk of a cell keeps no user attributes, which Linux 6.6 brought' : `a cell with one did not open: ${said}` }
}

/** What became of a cell whose cradle makes a liner before anything else. */
export function judgeLiners(trial: Trial): Availability {
  if (trial.opened) return { available: true }
  return { available: false, why: `a cell that can make them did not open: ${lastLine(trial.said) || 'it ended without a word'}` }
}

/** What became of a cell whose warden listens for what programs want of the world. */
export function judgeNetwork(trial: Trial): Availability {
  if (trial.opened) return { available: true }
  return { available: false, why: `a cell with one did not open: ${lastLine(trial.said) || 'it ended without a word'}` }
}

/** Standing still is the cgroups' to do. */
export function judgePause(cgroups: Cgroups | CgroupsUnavailable): Availability {
  if ('unavailable' in cgroups) return { available: false, why: cgroups.unavailable }
  return cgroups.freezes.enforced ? { available: true } : { available: false, why: cgroups.freezes.why }
}

/** As root a source is bound with its owner mapped, which Linux 5.12 brought; with a single id it is bound as it is. */
function judgeMounts(facts: HostFacts): Availability {
  return !canMapRanges(facts) || isAtLeast(facts, [5, 12])
    ? { available: true }
    : { available: false, why: `Linux ${facts.kernel.join('.')} cannot map the owner of a mount; 5.12 can` }
}

function judgeOverlay(facts: HostFacts, trial: string | undefined): Availability {
  if (!canMapRanges(facts)) return { available: false, why: overlayNeedsRanges }
  return trial === undefined ? { available: true } : { available: false, why: `the kernel refused to overlay /usr: ${lastLine(trial)}` }
}

function isAtLeast({ kernel: [major, minor] }: HostFacts, [leastMajor, leastMinor]: readonly [number, number]): boolean {
  return major > leastMajor || (major === leastMajor && minor >= leastMinor)
}
