/**
 * Limits on memory, processor and processes by cgroups. Where they live is found by looking and trying: each controller belongs to a
 * hierarchy of version 1 or to the one of version 2, and a group for our cells is sought at this process's own place and, in
 * version 2, upwards from there, because a group with processes in it cannot hand controllers down.
 */
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Enforcement } from '../contract/driver.js'
import { type CellCgroup, createCellCgroup, type Hierarchy, removeCellGroups } from './cell-cgroup.js'
import { type CgroupTree, Group, kernelTree } from './cgroup-files.js'
import { type CgroupLimits, controllerFiles } from './cgroup-limits.js'
import { type CgroupMount, type CgroupTexts, type Controller, parseCgroupMounts } from './cgroup-mounts.js'
import { currentOwner, isAlive, ownerName, parseOwner } from './owner.js'

export type CgroupLimit = 'memory' | 'cpus' | 'processes'

export interface Cgroups {
  readonly enforces: Readonly<Record<CgroupLimit, Enforcement>>
  create(order: CgroupLimits & { readonly id: string }): Promise<CellCgroup>
  /** Removes what owners that died left behind; resolves to how many cells that were. */
  sweep(): Promise<number>
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
}

type Found = { readonly controllers: readonly Controller[]; readonly base: string } | { readonly controllers: readonly Controller[]; readonly why: string }

const controllerOf: Readonly<Record<CgroupLimit, Controller>> = { memory: 'memory', cpus: 'cpu', processes: 'pids' }
const namePrefix = 'glovebox.'

export function detectCgroups(facts: CgroupFacts = {}): Cgroups | CgroupsUnavailable {
  const tree = facts.tree ?? kernelTree
  const mounts = parseCgroupMounts(facts.texts ?? ownTexts())
  const found = [...findInVersion1(mounts, tree), ...findInVersion2(mounts, tree)]
  const hierarchies = found.flatMap(({ version, place }): Hierarchy[] => ('base' in place ? [{ version, ...place }] : []))
  const enforces = {
    memory: enforcementOf(controllerOf.memory, found),
    cpus: enforcementOf(controllerOf.cpus, found),
    processes: enforcementOf(controllerOf.processes, found),
  }
  const reasons = new Set(Object.values(enforces).flatMap((item) => (item.enforced ? [] : [item.why])))
  if (Object.values(enforces).every((item) => !item.enforced)) return { unavailable: [...reasons].join('; '), enforces }
  const ownPrefix = cellName('')
  return {
    enforces,
    create: ({ id, ...limits }) => createCellCgroup({ hierarchies, tree, name: `${ownPrefix}${id}`, limits }),
    sweep: () => sweepMounts(mounts, tree),
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

function enforcementOf(controller: Controller, found: readonly Finding[]): Enforcement {
  const finding = found.find(({ place }) => place.controllers.includes(controller))
  if (finding === undefined) return { enforced: false, why: `this kernel offers no ${controller} cgroup` }
  if ('why' in finding.place) return { enforced: false, why: finding.place.why }
  return { enforced: true, by: `cgroup v${finding.version} ${controller} at ${finding.place.base}` }
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
  const wanted = Object.values(controllerOf).filter((name) => !isBoundToVersion1(name, mounts))
  const offered = (folder: string): Controller[] => offeredBy(new Group(folder, tree), wanted)
  // Where most is offered; of those the nearest, so that what bounds this process bounds its cells too.
  const places = upwards(mount.own, mount.mountPoint).toSorted((one, other) => offered(other).length - offered(one).length)
  const refusals: string[] = []
  for (const folder of places) {
    const controllers = offered(folder)
    const why = controllers.length === 0 ? `${folder} is given no controller` : tryDelegation(new Group(folder, tree), controllers, tree)
    if (why !== undefined) refusals.push(why)
    else return [{ version: 2, place: { controllers, base: folder } }, ...lackingAt(folder, wanted, controllers)]
  }
  return [{ version: 2, place: { controllers: wanted.filter((name) => offered(mount.mountPoint).includes(name)), why: refusals.join('; ') } }]
}

function offeredBy(group: Group, wanted: readonly Controller[]): Controller[] {
  const words = group.read('cgroup.controllers')?.split(' ') ?? []
  return wanted.filter((name) => words.includes(name))
}

function upwards(folder: string, top: string): string[] {
  return folder === top || !folder.startsWith(`${top}/`) ? [top] : [folder, ...upwards(dirname(folder), top)]
}

function lackingAt(folder: string, wanted: readonly Controller[], given: readonly Controller[]): Finding[] {
  const lacking = wanted.filter((name) => !given.includes(name))
  return lacking.length === 0 ? [] : [{ version: 2, place: { controllers: lacking, why: `${folder} is not given the controller ${lacking.join(', ')}` } }]
}

function isBoundToVersion1(controller: Controller, mounts: readonly CgroupMount[]): boolean {
  return mounts.some((mount) => mount.version === 1 && mount.controllers.includes(controller))
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
    for (const name of controllers) if (!handed.includes(name)) group.write('cgroup.subtree_control', `+${name}`)
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

/** Makes a group and removes it again. Why that did not work, or undefined. */
function tryGroup(parent: Group, { version, controllers }: Pick<Hierarchy, 'version' | 'controllers'>): string | undefined {
  const trial = parent.below(cellName(`trial${randomUUID().slice(0, 8)}`))
  try {
    trial.make()
  } catch (error) {
    return wordsOf(parent, error)
  }
  const lacking = controllers.flatMap((name) => controllerFiles[version][name]?.needs ?? []).filter((control) => !trial.has(control))
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

/** Leftovers are sought everywhere: the engine that made them may have had another place of its own. */
async function sweepMounts(mounts: readonly CgroupMount[], tree: CgroupTree): Promise<number> {
  const names = new Set<string>()
  for (const { mountPoint } of mounts) {
    for (const group of leftoversBelow(new Group(mountPoint, tree), tree)) {
      await removeCellGroups([group])
      names.add(group.folder.slice(group.folder.lastIndexOf('/')))
    }
  }
  return names.size
}

function leftoversBelow(group: Group, tree: CgroupTree): Group[] {
  return tree.list(group.folder).flatMap((name) => {
    const below = group.below(name)
    if (!name.startsWith(namePrefix)) return leftoversBelow(below, tree)
    const owner = parseOwner(name.slice(namePrefix.length, name.lastIndexOf('.')))
    return owner !== undefined && !isAlive(owner) ? [below] : []
  })
}
