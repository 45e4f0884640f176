import { statSync } from 'node:fs'
import type { Readable } from 'node:stream'
import type { Cell, CellSpec, GuestUser } from '../contract/driver.js'
import { SandboxError } from '../contract/errors.js'
import type { Limits } from '../contract/limits.js'
import type { MountSource } from '../sys/mount-source.js'
import { usedOnDisk } from '../sys/disk-use.js'
import { resizeDisk } from '../sys/resize-disk.js'
import type { SpawnedProcess } from '../sys/spawn.js'
import { findBeneath } from './beneath.js'
import { findFirstProcess, type FirstProcessOptions } from './first-process.js'
import { type CellPlan, type CellPrograms, guestUsers } from './arguments.js'
import { NamespaceCell, endOrphans, endProcess } from './cell.js'
import { type CellInspection, createInspection, type InspectionOrder } from './cell-inspection.js'
import { cellLayers } from './cell-layers.js'
import type { OwnPosture } from './cell-posture.js'
import { createCellLimits } from './cell-limits.js'
import { networkEnvironment, openCertificates } from './cell-network.js'
import type { CellSpawner, SpawnOrder } from './cell-spawner.js'
import type { HostFiles } from './expected-mounts.js'
import { keptGroups } from './kept-groups.js'
import type { Lease } from './lease.js'
import { checkFolders } from './mount-refusals.js'
import { inspectorDescriptor } from './placed-mounts.js'

export interface Opening extends FirstProcessOptions {
  readonly spec: CellSpec
  readonly lease: Lease
  readonly signal: AbortSignal
  readonly unveilable: ReadonlySet<string>
  readonly spawn: CellSpawner
  readonly own: OwnPosture
  /** Of the spec's mounts; left open. */
  readonly sources: readonly MountSource[]
  readonly programs: CellPrograms
  /** The one command that builds it: launcher, runtime and warden, each with its arguments. */
  readonly argv: (plan: CellPlan) => [string, ...string[]]
  readonly firstDoor?: number
  readonly arrival?: CellPlan['arrival']
  /** Who looks at it, where that is not this process. */
  readonly inspect?: Inspect
  readonly disk?: DiskPlace
  readonly remark?: () => string
  /** Of the last line that was said: the runtime's own words, or undefined when it was somebody else. */
  readonly wordsOf: (line: string) => string | undefined
  /** What the cell is made of, where that is not as this process sees it. */
  readonly host?: HostFiles
}

/** Looks at a cell; `told` hears what the warden says of its kernel. */
export type Inspect = (order: InspectionOrder) => CellInspection & { readonly told?: (of: 'cell' | number, text: string) => void }

export interface DiskPlace {
  /** Undefined when it is gone. */
  readonly processOf: (monitorPid: number) => number | undefined
  readonly path: string
}

/** What a launcher that was told to await it reads before the warden is there. */
const groupsAreThere = '+'

/** A cell whose warden has begun to speak. Whatever keeps it from that, the lease is released and nothing of the cell is left. */
export async function openCell(opening: Opening): Promise<Cell> {
  const { lease, signal } = opening
  let process: SpawnedProcess | undefined
  let inspection: CellInspection | undefined
  try {
    signal.throwIfAborted()
    checkFolders(opening.spec)
    const plan = planOf(opening)
    opening.spec.faults?.('create/planned')
    const inspector = inspectorDescriptor(plan)
    using certificates = openCertificates(opening.spec)
    const descriptors = descriptorsOf(opening, { inspector, certificates: certificates.descriptor })
    process = await launch(opening, { argv: (ownerPid) => opening.argv({ ...plan, ownerPid }), descriptors })
    const pipe = inspector === undefined ? undefined : process.pipes.get(inspector)
    const inspect: Inspect = opening.inspect ?? createInspection
    const looking = inspect({ plan, lease, own: opening.own, monitorPid: process.pid, inspector: pipe, host: opening.host, isWithin: opening.isWithin })
    inspection = looking
    if (looking.told) Object.assign(process.channel, { told: looking.told })
    const limits = createCellLimits({ spec: opening.spec, cgroup: lease.cgroup, resizeDisk: resizerOf(process.pid, opening) })
    const cell = new NamespaceCell({
      process,
      users: usersOf(lease),
      layers: cellLayers(plan, isFolder),
      env: opening.spec.network ? networkEnvironment(opening.spec.network) : {},
      beneath: findBeneath(plan),
      limits,
      inspection,
      usedOnDisk: diskUseOf(process.pid, opening),
      remark: opening.remark,
      cgroup: lease.cgroup,
      remains: lease.remains,
      inTurn: lease.inTurn,
      clear: lease.clear,
      release: lease.release,
      faults: opening.spec.faults,
    })
    if (!lease.cgroup?.awaitsSettling) opening.spec.onLaunched?.(cell)
    await greeting(process, opening)
    opening.spec.faults?.('create/greeted')
    lease.cgroup?.settle()
    opening.spec.faults?.('create/settled')
    return cell
  } catch (error) {
    if (process) await Promise.all([endProcess(process, lease.remains), inspection?.close()])
    await lease.release()
    throw error
  }
}

/** What the launcher is handed, in the order in which its arguments count on it. */
function descriptorsOf(
  { sources }: Opening,
  { inspector, certificates }: { readonly inspector: number | undefined; readonly certificates: number | undefined },
): SpawnOrder['descriptors'] {
  const pipes = inspector === undefined ? [] : (['pipe'] as const)
  return [...sources.map(({ descriptor }) => descriptor), ...pipes, ...(certificates === undefined ? [] : [certificates])]
}

/** The groups are made while the launcher starts and stages the mounts, which takes as long. */
async function launch({ spawn, lease, spec }: Opening, order: SpawnOrder): Promise<SpawnedProcess> {
  const [spawned, built] = await Promise.allSettled([spawn(order), orderIsOut().then(() => lease.buildGroups())])
  if (spawned.status === 'rejected') throw spawned.reason
  const { value: process } = spawned
  try {
    spec.faults?.('create/spawned')
    if (built.status === 'rejected') throw built.reason
    spec.faults?.('create/groups')
    if (lease.cgroup) process.channel.write(groupsAreThere)
    // Whether they are as they were told to be is asked while the launcher goes on.
    lease.cgroup?.checkBuilt()
    return process
  } catch (error) {
    await endProcess(process, lease.remains)
    throw error
  }
}

/** What is said to a launcher that stays goes over connections, which are there a turn of the event loop later. */
async function orderIsOut(): Promise<void> {
  for (let turn = 0; turn < 2; turn++) await new Promise<void>((resolve) => void setImmediate(resolve))
}

/** Of the cell's disk, which any of its processes leads to unless another is told of. */
function diskUseOf(monitorPid: number, { disk }: Pick<Opening, 'disk'>): () => Promise<number | undefined> {
  return () => usedOnDisk(disk === undefined ? findFirstProcess(monitorPid) : disk.processOf(monitorPid), disk?.path)
}

/** Of the same disk. */
function resizerOf(monitorPid: number, { isWithin, disk }: Pick<Opening, 'isWithin' | 'disk'>): (limits: Limits) => Promise<void> {
  return async ({ diskBytes, inodes }) => {
    if (monitorPid <= 0) throw new SandboxError('unsupported', 'limits.disk cannot be changed: the cell is on another machine', { hint: 'glovebox run' })
    const pid = disk === undefined ? findFirstProcess(monitorPid, { isWithin }) : disk.processOf(monitorPid)
    if (pid === undefined) throw new SandboxError('broken', 'the first process of the cell is gone')
    await resizeDisk({ pid, bytes: diskBytes, inodes, ...(disk && { path: disk.path }) })
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}

function usersOf({ ids }: Lease): GuestUser[] {
  const groups = keptGroups(ids)
  return guestUsers(ids).map((user) => ({ ...user, groups }))
}

function planOf({ spec, lease, unveilable, sources, programs, firstDoor, arrival }: Opening): CellPlan {
  const { ids, cgroup } = lease
  const told = { ...(firstDoor !== undefined && { firstDoor }), ...(arrival && { arrival }), ...(cgroup && { cgroups: cgroup }) }
  return { spec, ids, programs, ownerPid: process.pid, unveilable, sources, ...told }
}

/** Resolves when the warden's first bytes are there to be read, which are left for whoever connects to it. */
async function greeting(process: SpawnedProcess, { signal, wordsOf, lease }: Opening): Promise<void> {
  const { channel } = process
  let isOver = false
  // Of a monitor that was killed something may be left that holds the channel open and will never speak.
  void endOrphans(process, () => (isOver ? [] : lease.remains()))
  channel.ref()
  try {
    await word(channel, signal)
    // At its end a stream is readable too, with nothing to read.
    if (channel.readableLength === 0) throw await openFailure(process, wordsOf)
  } finally {
    isOver = true
    channel.unref()
  }
}

/** Resolves when there is something to read, or nothing will ever be. */
async function word(channel: Readable, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = latch()
  const onAbort = (): void => reject(signal.reason)
  if (signal.aborted) onAbort()
  signal.addEventListener('abort', onAbort)
  // An end that was there before is told to whoever begins to listen; one that was told already is not told again.
  if (channel.readableEnded || channel.destroyed) resolve()
  channel.on('readable', resolve).on('end', resolve).on('close', resolve).on('error', reject)
  try {
    await promise
  } finally {
    signal.removeEventListener('abort', onAbort)
    channel.off('readable', resolve).off('end', resolve).off('close', resolve).off('error', reject)
  }
}

function latch(): { readonly promise: Promise<void>; readonly resolve: () => void; readonly reject: (why: unknown) => void } {
  let resolve: () => void = () => undefined
  let reject: (why: unknown) => void = () => undefined
  const promise = new Promise<void>((onWord, onFailure) => {
    resolve = onWord
    reject = onFailure
  })
  return { promise, resolve, reject }
}

/** Runtime and launcher fail because of the machine; a warden because of the cell. */
async function openFailure(process: SpawnedProcess, wordsOf: Opening['wordsOf']): Promise<SandboxError> {
  const end = await process.wait()
  const line = process.diagnosis().split('\n').at(-1) ?? ''
  const own = wordsOf(line)
  const said = own ?? line
  const how = end.signal === null ? `status ${end.code}` : `signal ${end.signal}`
  const code = own !== undefined || said.startsWith('launcher:') ? 'unavailable' : 'broken'
  return new SandboxError(code, said === '' ? `the cell ended with ${how} before it was ready` : `the cell did not open: ${said}`, { hint: 'glovebox doctor' })
}
