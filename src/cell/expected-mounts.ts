/**
 * The mount table that a cell must have, told from its plan and from what the host has: what is mounted where, one step after the other, as far as
 * a path can reach it in the end.
 */
import { readFileSync, statSync } from 'node:fs'
import type { Json } from '../contract/posture.js'
import { type MountEntry, mountOf, parseMountTable, reachableMounts } from '../sys/posture/mount-table.js'
import { type CellPlan, diskFolders, hostDevices, masked, readOnlyPaths, veiledInside } from './arguments.js'
import { placedMounts } from './placed-mounts.js'
import { isOverlay } from './root-mode.js'

export interface MountRow {
  readonly type: string
  readonly access: 'ro' | 'rw'
  readonly nosuid: boolean
  readonly nodev: boolean
  readonly noexec: boolean
}

/** Files and folders of the host's, looked at when a cell is opened. */
export interface HostFiles {
  /** Undefined where there is nothing. */
  kindOf(path: string): 'file' | 'folder' | undefined
  /** What lies at or below a path, by its place relative to that: its own mount comes first, by the empty name. */
  mountsAt(path: string): readonly (readonly [below: string, mount: MountRow])[]
}

const plain = { nosuid: true, nodev: true, noexec: false } as const
const veil: MountRow = { type: 'overlay', access: 'ro', ...plain }
const closed: MountRow = { type: 'tmpfs', access: 'ro', nosuid: true, nodev: true, noexec: true }
const sealed = { access: 'ro', nosuid: true, nodev: true } as const
const disk: MountRow = { type: 'tmpfs', access: 'rw', ...plain }

export function expectedMounts(plan: CellPlan, host: HostFiles): Json {
  const isSingle = plan.ids.kind === 'single'
  const table = new MountTable({ type: 'tmpfs', access: 'rw', ...plain })
  addTemplate(table, plan, host)
  table.mount('/proc', { type: 'proc', access: 'rw', nosuid: true, nodev: true, noexec: true })
  addDevices(table, plan, host)
  if (isSingle) for (const target of veiledInside(plan)) if (isFolder(plan, target, host)) table.mount(target, veil)
  addDisk(table, plan)
  addSources(table, plan, host)
  table.mount('/dev/pts', { type: 'devpts', access: 'rw', nosuid: true, nodev: false, noexec: true })
  for (const path of [...(isSingle ? hostDevices : []), ...readOnlyPaths(plan)]) if (!isOfProc(path) || host.kindOf(path)) table.close(path)
  for (const path of masked) addMask(table, path, host)
  return table.rows()
}

export interface GoferOrder {
  readonly plan: CellPlan
  readonly host: HostFiles
  readonly diskPlace: string
  readonly shown: readonly { readonly target: string; readonly access: 'ro' | 'rw'; readonly source: string }[]
}

/** The same of whoever opens files for a sandbox of gVisor: all that can be reached through it. */
export function expectedOfGofer({ plan, host, diskPlace, shown }: GoferOrder): Json {
  const table = new MountTable({ type: 'tmpfs', access: 'ro', ...plain })
  addTemplate(table, plan, host)
  table.mount('/dev', { type: 'tmpfs', access: 'ro', nosuid: true, nodev: false, noexec: true })
  for (const path of ['/dev/shm', diskPlace]) table.mount(path, disk)
  for (const { target, access, source } of shown) {
    const [own] = host.mountsAt(source)
    if (own) table.mount(target, { type: own[1].type, access, ...plain, noexec: own[1].noexec })
  }
  return table.rows()
}

export interface BoundOrder {
  readonly root: MountRow
  /** What else was bound, each by itself or with what is mounted below it. */
  readonly bound: readonly { readonly source: string; readonly target: string; readonly isWhole: boolean }[]
  readonly diskPlace: string
  readonly host: HostFiles
}

/** The same where a container engine has bound what it is made of, and all but the disk was sealed. */
export function expectedOfBoundGofer({ root, bound, diskPlace, host }: BoundOrder): Json {
  const table = new MountTable({ ...root, ...sealed })
  for (const { source, target, isWhole } of bound) {
    const rows = host.mountsAt(source)
    for (const [below, { type, noexec }] of isWhole ? rows : rows.slice(0, 1)) table.mount(`${target}${below}`, { type, noexec, ...sealed })
  }
  table.mount(diskPlace, disk)
  return table.rows()
}

/** The mounts of the host are read when they are first asked for: most cells share none of them. */
export function readHostFiles(): HostFiles {
  let mounts: readonly MountEntry[] | undefined
  return {
    kindOf: (path) => {
      const status = statSync(path, { throwIfNoEntry: false })
      if (status === undefined) return undefined
      return status.isDirectory() ? 'folder' : 'file'
    },
    mountsAt: (path) => {
      mounts ??= reachableMounts(parseMountTable(readFileSync('/proc/self/mountinfo', 'utf8')))
      const own = mountOf(path, mounts)
      const below = mounts.filter(({ target }) => target.startsWith(`${path}/`)).map((mount) => [mount.target.slice(path.length), mount] as const)
      return own === undefined ? below : [['', own], ...below]
    },
  }
}

function addTemplate(table: MountTable, plan: CellPlan, host: HostFiles): void {
  for (const { source, target } of plan.spec.root.binds) {
    const kind = host.kindOf(source)
    if (isOverlay(plan) && kind === 'folder') table.mount(target, { ...veil, access: 'rw' })
    else if (plan.ids.kind === 'range' && kind === 'folder' && !plan.unveilable?.has(source)) table.mount(target, veil)
    else bindReadOnly(table, { source, target, host })
  }
}

/** Where the whole root is the disk, only what lies on another filesystem needs a mount. */
function addDisk(table: MountTable, plan: CellPlan): void {
  const noexec = plan.spec.commands !== undefined
  const folders = isOverlay(plan) ? [{ path: '/dev/shm' }] : diskFolders(plan)
  for (const { path } of folders) table.mount(path, { ...disk, noexec: noexec && !isOverlay(plan) })
}

/** Each is the one mount that its source lies on, or an overlay of it. */
function addSources(table: MountTable, plan: CellPlan, host: HostFiles): void {
  for (const { source, target, mode } of placedMounts(plan)) {
    const [own] = host.mountsAt(source.path)
    if (mode === 'overlay') table.mount(target, { type: 'overlay', access: 'rw', ...plain, noexec: plan.spec.commands !== undefined })
    else if (own) table.mount(target, { type: own[1].type, access: mode, ...plain, noexec: own[1].noexec || plan.spec.commands !== undefined })
  }
}

interface Bind {
  readonly source: string
  readonly target: string
  readonly host: HostFiles
}

/** With all that is mounted below the source. */
function bindReadOnly(table: MountTable, { source, target, host }: Bind): void {
  for (const [below, { type, noexec }] of host.mountsAt(source)) table.mount(`${target}${below}`, { type, access: 'ro', ...plain, noexec })
}

function addDevices(table: MountTable, { ids }: CellPlan, host: HostFiles): void {
  if (ids.kind === 'range') {
    table.mount('/dev', { type: 'tmpfs', access: 'rw', nosuid: true, nodev: false, noexec: true })
    return
  }
  table.mount('/dev', { type: 'tmpfs', access: 'rw', ...plain })
  for (const path of hostDevices) {
    const [own] = host.mountsAt(path)
    if (own) table.mount(path, { ...own[1], access: 'rw', nosuid: true, nodev: false })
  }
}

/** A file is covered by the cell's /dev/null, a folder by an empty one. */
function addMask(table: MountTable, path: string, host: HostFiles): void {
  const kind = host.kindOf(path)
  if (kind !== undefined) table.mount(path, kind === 'folder' ? closed : table.holderOf('/dev/null'))
}

function isFolder({ spec }: CellPlan, target: string, host: HostFiles): boolean {
  return spec.root.binds.some((bind) => bind.target === target && host.kindOf(bind.source) === 'folder')
}

function isOfProc(path: string): boolean {
  return path.startsWith('/proc/')
}

class MountTable {
  readonly #rows = new Map<string, MountRow>()

  constructor(root: MountRow) {
    this.#rows.set('/', root)
  }

  /** Covers what was mounted below. */
  mount(target: string, row: MountRow): void {
    for (const other of this.#rows.keys()) if (other.startsWith(`${target}/`)) this.#rows.delete(other)
    this.#rows.set(target, row)
  }

  /** The mount that a path lies on. */
  holderOf(path: string): MountRow {
    const row = this.#rows.get(path)
    return row ?? this.holderOf(path.slice(0, path.lastIndexOf('/')) || '/')
  }

  /** Makes a path read-only; what is no mount becomes one. */
  close(path: string): void {
    this.#rows.set(path, { ...this.holderOf(path), access: 'ro' })
  }

  rows(): Json {
    const sorted = [...this.#rows].sort(([one], [other]) => (one < other ? -1 : 1))
    return sorted.map(([target, { type, access, nosuid, nodev, noexec }]) => ({ target, type, access, nosuid, nodev, noexec }))
  }
}
