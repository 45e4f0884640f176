/**
 * The mount table that a cell must have, told from its plan and from what the host has: what is mounted where, one step after the other, as far as
 * a path can reach it in the end.
 */
import { readFileSync, statSync } from 'node:fs'
import type { Json } from '../../contract/posture.js'
import { type MountEntry, mountOf, parseMountTable, reachableMounts } from '../../sys/posture/mount-table.js'
import { type CellPlan, hostDevices, masked, readOnly, veiledInside, writableFolders } from './arguments.js'

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
const overlay: MountRow = { type: 'overlay', access: 'ro', ...plain }
const closed: MountRow = { type: 'tmpfs', access: 'ro', nosuid: true, nodev: true, noexec: true }

export function expectedMounts(plan: CellPlan, host: HostFiles): Json {
  const table = new MountTable({ type: 'tmpfs', access: 'rw', ...plain })
  addTemplate(table, plan, host)
  table.mount('/proc', { type: 'proc', access: 'rw', nosuid: true, nodev: true, noexec: true })
  addDevices(table, plan, host)
  if (plan.ids.kind === 'single') for (const target of veiledInside(plan)) if (isFolder(plan, target, host)) table.mount(target, overlay)
  const noexec = plan.spec.commands !== undefined
  for (const { path } of writableFolders(plan.ids)) table.mount(path, { type: 'tmpfs', access: 'rw', ...plain, noexec })
  table.mount('/dev/pts', { type: 'devpts', access: 'rw', nosuid: true, nodev: false, noexec: true })
  const devices = plan.ids.kind === 'single' ? hostDevices : []
  for (const path of [...devices, ...readOnly]) if (!isOfProc(path) || host.kindOf(path)) table.close(path)
  for (const path of masked) addMask(table, path, host)
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

function addTemplate(table: MountTable, { spec, ids, unveilable }: CellPlan, host: HostFiles): void {
  for (const { source, target } of spec.root.binds) {
    const isVeiled = ids.kind === 'range' && !unveilable?.has(source) && host.kindOf(source) === 'folder'
    if (isVeiled) table.mount(target, overlay)
    else bindReadOnly(table, { source, target, host })
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
