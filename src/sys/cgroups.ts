/**
 * Limits on memory, processor, processes and disks by cgroups. Where they live is found by looking and trying: each controller belongs to a
 * hierarchy of version 1 or to the one of version 2, and a group for our cells is sought at this process's own place and, in
 * version 2, upwards from there, because a group with processes in it cannot hand controllers down.
 */
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Enforcement } from '../contract/driver.js'
import { findBlockDevices } from './block-devices.js'
import { type CellCgroup, type CellCgroupOrder, createCellCgroup, planCellCgroup, type PlannedCellCgroup } from './cell-cgroup.js'
import { type CgroupTree, Group, kernelTree } from './cgroup-files.js'
import { handedDown, type Hierarchy } from './cgroup-levels.js'
import { type CgroupLimits, controllerFiles, type StatedLimits } from './cgroup-limits.js'
import { type CgroupMount, type CgroupTexts, type Controller, parseCgroupMounts } from './cgroup-mounts.js'
import { sweepGroups } from './cgroup-sweeping.js'
import { currentOwner, ownerName } from './owner.js'
import type { Sweeper } from './sweeper.js'

export type CgroupLimit = 'memory' | 'cpus' | 'cpuTime' | 'processes' | 'readRate' | 'writeRate'

export interface Cgroups {
  readonly enforces: Readonly<Record<CgroupLimit, Enforcement>>
  /** Whether the guests of a cell can be stopped all at once. */
  readonly freezes: Enforcement
  create(order: CgroupOrder): Promise<CellCgroup>
  /** The same in two steps. */
  plan(order: CgroupOrder): PlannedCellCgroup
  /** Removes what owners that died left behind; resolves to how many cells that were. */
  sweep(sweeper?: Sweeper): Promise<number>
}

export interface CgroupOrder extends CgroupLimits {
  readonly id: string
  readonly writer?: number | undefined
}

export interface CgroupsUnavailable {
  readonly unavailable: string
  /** The reason of each limit, where they were looked for. */
  readonly enforces?: Cgroups['enforces']
}

/** The process and the kernel unless told otherwise. */
export interface CgroupFacts {
  readonly texts?: CgroupTexts
  readonly tree?: CgroupTree
  /** Disks on which rates are tried: those of /usr, which every template shows. */
  readonly devices?: readonly string[]
}

type Found = { readonly controllers: readonly Controller[]; readonly base: string } | { readonly controllers: readonly Controller[]; readonly why: string }

/** Any of them serves: disks are held by a controller that has another name in each version. */
const controllersOf: Readonly<Record<CgroupLimit, readonly Controller[]>> = {
  memory: ['memory'],
  cpus: ['cpu'],
  cpuTime: ['cpuacct'],
  processes: ['pids'],
  readRate: ['io', 'blkio'],
  writeRate: ['io', 'blkio'],
}
/** What version 2 is asked for. */
const unified: readonly Controller[] = ['memory', 'cpu', 'pids', 'io', 'cpuacct']
const namePrefix = 'glovebox.'
const trialRate = 2 ** 20

export function detectCgroups(facts: CgroupFacts = {}): Cgroups | CgroupsUnavailable {
  const tree = facts.tree ?? kernelTree
  const mounts = parseCgroupMounts(facts.texts ?? ownTexts())
  const devices = facts.devices ?? findBlockDevices(['/usr']).devices
  const found = [...findInVersion1(mounts, tree), ...findInVersion2(mounts, tree)]
  const hierarchies = found.flatMap(({ version, place }): Hierarchy[] => ('base' in place ? [{ version, ...place }] : []))
  const held = (limit: CgroupLimit): Enforcement => enforcementOf(limit, found)
  const rates = judgeRates({ held: held('readRate'), hierarchies, tree, devices })
  const enforces = { memory: held('memory'), cpus: held('cpus'), cpuTime: held('cpuTime'), processes: held('processes'), ...rates }
  const reasons = new Set([enforces.memory, enforces.cpus, enforces.processes].flatMap((item) => (item.enforced ? [] : [item.why])))
  if (Object.values(enforces).every((item) => !item.enforced)) return { unavailable: [...reasons].join('; '), enforces }
  const ownPrefix = cellName('')
  const orderOf = ({ id, writer, ...limits }: CgroupOrder): CellCgroupOrder => ({ hierarchies, tree, name: `${ownPrefix}${id}`, limits, writer })
  return {
    enforces,
    freezes: judgeFreezing({ found, hierarchies, tree }),
    create: (order) => createCellCgroup(orderOf(order)),
    plan: (order) => planCellCgroup(orderOf(order)),
    sweep: (sweeper) => sweepGroups(mounts, { tree, namePrefix, sweeper }),
  }
}

function ownTexts(): CgroupTexts {
  return { mountinfo: readFileSync('/proc/self/mountinfo', 'utf8'), cgroup: readFileSync('/proc/self/cgroup', 'utf8') }
}

function cellName(id: string): string {
  return `${namePrefix}${ownerName(currentOwner())}.${id}`
}

interface Finding {
  readonly version: 1 | 2
  readonly place: Found
}

function enforcementOf(limit: CgroupLimit, found: readonly Finding[]): Enforcement {
  const findings = found.flatMap((finding) => {
    const controller = controllersOf[limit].find((name) => finding.place.controllers.includes(name))
    return controller === undefined ? [] : [{ ...finding, controller }]
  })
  const finding = findings.find(({ place }) => 'base' in place) ?? findings[0]
  if (finding === undefined) return { enforced: false, why: `this kernel offers no ${controllersOf[limit].join(' or ')} cgroup` }
  if ('why' in finding.place) return { enforced: false, why: finding.place.why }
  const what = limit === 'cpuTime' ? `the run's group of cgroup v${finding.version}, read by the engine,` : `cgroup v${finding.version} ${finding.controller}`
  return { enforced: true, by: `${what} at ${finding.place.base}` }
}

/** In version 2 it is a file of every group, from Linux 5.2 on. */
function judgeFreezing({ found, hierarchies, tree }: Pick<RateFacts, 'hierarchies' | 'tree'> & { readonly found: readonly Finding[] }): Enforcement {
  const legacy = found.find(({ place }) => place.controllers.includes('freezer'))?.place
  if (legacy) return 'base' in legacy ? { enforced: true, by: `cgroup v1 freezer at ${legacy.base}` } : { enforced: false, why: legacy.why }
  const unified = hierarchies.find(({ version }) => version === 2)
  if (unified === undefined) return { enforced: false, why: 'this kernel offers no freezer cgroup' }
  const why = tryGroup(new Group(unified.base, tree), { version: 2, controllers: [], besides: ['cgroup.freeze'] })
  return why === undefined ? { enforced: true, by: `cgroup v2 at ${unified.base}` } : { enforced: false, why }
}

interface RateFacts {
  readonly held: Enforcement
  readonly hierarchies: readonly Hierarchy[]
  readonly tree: CgroupTree
  readonly devices: readonly string[]
}

/** The files alone say little: a rate is set on a group that nobody is in, and read back. */
function judgeRates({ held, hierarchies, tree, devices }: RateFacts): Pick<Cgroups['enforces'], 'readRate' | 'writeRate'> {
  const both = (why: string) => ({ readRate: { enforced: false, why }, writeRate: { enforced: false, why } }) as const
  if (!held.enforced) return both(held.why)
  if (devices.length === 0) return both('/usr lies on a file system without a block device of its own')
  const hierarchy = hierarchies.find(({ controllers }) => controllers.includes('io') || controllers.includes('blkio'))
  const stated = hierarchy && statedRates(hierarchy, tree, devices)
  if (stated?.readBytesPerSecond !== trialRate) return both(`the kernel takes no rate for the disk ${devices.join(', ')}`)
  const by = `${held.by}, for the disks of what the cell shows`
  const unwritten = 'cgroup v1 does not count what the kernel writes to a disk from memory later'
  const counted = hierarchy?.controllers.includes('memory')
    ? undefined
    : 'without its memory controller cgroup v2 does not know whose memory is written to a disk later'
  const why = hierarchy?.version === 1 ? unwritten : stated.writeBytesPerSecond === trialRate ? counted : 'the kernel takes no rate for writing'
  return { readRate: { enforced: true, by }, writeRate: why === undefined ? { enforced: true, by } : { enforced: false, why } }
}

function statedRates({ version, base, controllers }: Hierarchy, tree: CgroupTree, devices: readonly string[]): Partial<StatedLimits> | undefined {
  const trial = new Group(base, tree).below(cellName(`trial${randomUUID().slice(0, 8)}`))
  const files = controllers.flatMap((name) => (name === 'io' || name === 'blkio' ? (controllerFiles[version][name] ?? []) : []))[0]
  const rates = { devices, readBytesPerSecond: trialRate, writeBytesPerSecond: trialRate }
  try {
    trial.make()
    files?.limit(trial, { memoryBytes: 0, cpus: 0, processes: 0, rates })
    return files?.stated(trial, { memoryBytes: 0, cpus: 0, processes: 0, rates })
  } catch {
    return undefined
  } finally {
    trial.tryRemove()
  }
}

function findInVersion1(mounts: readonly CgroupMount[], tree: CgroupTree): Finding[] {
  return mounts.flatMap(({ version, own, controllers }) => {
    if (version !== 1) return []
    const why = tryGroup(new Group(own, tree), { version, controllers })
    return [{ version, place: why === undefined ? { controllers, base: own } : { controllers, why } }]
  })
}

function findInVersion2(mounts: readonly CgroupMount[], tree: CgroupTree): Finding[] {
  const mount = mounts.find(({ version }) => version === 2)
  if (mount === undefined) return []
  const wanted = unified.filter((name) => !isBoundToVersion1(name, mounts))
  const offered = (folder: string): Controller[] => offeredBy(new Group(folder, tree), wanted)
  // Where most is offered; of those the nearest, so that what bounds this process bounds its cells too.
  const places = upwards(mount.own, mount.mountPoint).toSorted((one, other) => offered(other).length - offered(one).length)
  const refusals: string[] = []
  for (const folder of places) {
    const controllers = offered(folder)
    const why = handedDown(controllers).length === 0 ? `${folder} is given no controller` : tryDelegation(new Group(folder, tree), controllers, tree)
    if (why !== undefined) refusals.push(why)
    else return [{ version: 2, place: { controllers, base: folder } }, ...lackingAt(folder, wanted, controllers)]
  }
  return [{ version: 2, place: { controllers: wanted.filter((name) => offered(mount.mountPoint).includes(name)), why: refusals.join('; ') } }]
}

function offeredBy(group: Group, wanted: readonly Controller[]): Controller[] {
  const words = group.read('cgroup.controllers')?.split(' ') ?? []
  return wanted.filter((name) => words.includes(name) || name === 'cpuacct')
}

function upwards(folder: string, top: string): string[] {
  return folder === top || !folder.startsWith(`${top}/`) ? [top] : [folder, ...upwards(dirname(folder), top)]
}

function lackingAt(folder: string, wanted: readonly Controller[], given: readonly Controller[]): Finding[] {
  const lacking = wanted.filter((name) => !given.includes(name))
  return lacking.length === 0 ? [] : [{ version: 2, place: { controllers: lacking, why: `${folder} is not given the controller ${lacking.join(', ')}` } }]
}

function isBoundToVersion1(controller: Controller, mounts: readonly CgroupMount[]): boolean {
  const name = controller === 'io' ? 'blkio' : controller
  return mounts.some((mount) => mount.version === 1 && mount.controllers.includes(name))
}

/** Why no cells can be made in this group of version 2; undefined when they can. */
function tryDelegation(group: Group, controllers: readonly Controller[], tree: CgroupTree): string | undefined {
  // A process moves only with a right to the group that is above both its old and its new one, which is this.
  if (!tree.isWritable(group.procs)) return `${group.folder} may not be written by this user`
  try {
    if (!handDown(group, controllers) && !(stepAside(group) && handDown(group, controllers))) return wordsOf(group, { code: 'EBUSY' })
  } catch (error) {
    return wordsOf(group, error)
  }
  return tryGroup(group, { version: 2, controllers })
}

/** False when processes in the group stand in the way. */
function handDown(group: Group, controllers: readonly Controller[]): boolean {
  const handed = group.read('cgroup.subtree_control')?.split(' ') ?? []
  try {
    for (const word of handedDown(controllers)) if (!handed.includes(word.slice(1))) group.write('cgroup.subtree_control', word)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EBUSY') return false
    throw error
  }
}

/** A service to which its whole group was delegated is alone in it, and may go one level down to make room. */
function stepAside(group: Group): boolean {
  if (group.read('cgroup.procs') !== `${process.pid}`) return false
  const aside = group.below(cellName('engine'))
  aside.make()
  aside.write('cgroup.procs', `${process.pid}`)
  return true
}

interface GroupTrial extends Pick<Hierarchy, 'version' | 'controllers'> {
  /** Files that it must have too. */
  readonly besides?: readonly string[]
}

/** Makes a group and removes it again. Why that did not work, or undefined. */
function tryGroup(parent: Group, { version, controllers, besides = [] }: GroupTrial): string | undefined {
  const trial = parent.below(cellName(`trial${randomUUID().slice(0, 8)}`))
  try {
    trial.make()
  } catch (error) {
    return wordsOf(parent, error)
  }
  const needs = [...controllers.flatMap((name) => controllerFiles[version][name]?.needs ?? []), ...besides]
  const lacking = needs.filter((control) => !trial.has(control))
  trial.tryRemove()
  return lacking.length === 0 ? undefined : `${parent.folder} gives its groups no ${lacking.join(', ')}`
}

function wordsOf(group: Group, error: unknown): string {
  const { code = String(error) } = error as NodeJS.ErrnoException
  const meanings: Readonly<Record<string, string>> = {
    EACCES: 'may not be written by this user',
    EPERM: 'may not be written by this user',
    EROFS: 'is mounted read-only',
    EBUSY: 'has processes in it, so it cannot hand controllers down',
    ENOENT: 'is not there, or lacks a controller',
  }
  return `${group.folder} ${meanings[code] ?? `refuses: ${code}`}`
}

/** What owners that died left, also where this process may make no group itself. */
export async function sweepCgroups(sweeper: Sweeper): Promise<void> {
  await sweepGroups(parseCgroupMounts(ownTexts()), { tree: kernelTree, namePrefix, sweeper })
}
