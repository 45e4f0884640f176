/** What of a container on another machine a cell in it is held against, asked before the cell is built. */
import { hostDevices, masked, readOnly } from '../../cell/arguments.js'
import type { HostFiles, MountRow } from '../../cell/expected-mounts.js'
import type { CellSpec } from '../../contract/driver.js'
import { SandboxError } from '../../contract/errors.js'
import type { CgroupLimit } from '../../sys/cgroups.js'
import { parseMountTable, reachableMounts } from '../../sys/posture/mount-table.js'
import type { Namespaces } from '../../sys/posture/namespaces.js'
import type { Dialect } from './dialect.js'
import { factsOf, whileThere } from './far-process.js'
import type { Teller } from './teller.js'

export interface FarGround {
  readonly teller: Teller
  /** Of the container: its namespaces, and how many filters all in it are under. */
  readonly own: { readonly namespaces: Namespaces; readonly filters: number | null }
  readonly host: HostFiles
  readonly holds: readonly CgroupLimit[]
  /** What the kernel there states of those. */
  limits(): Promise<readonly (readonly [CgroupLimit, number | null])[]>
}

export interface GroundOrder {
  readonly teller: Teller
  readonly spec: CellSpec
  readonly dialect: Dialect
  readonly holds: readonly CgroupLimit[]
}

export async function readGround({ teller, spec, dialect, holds }: GroundOrder): Promise<FarGround> {
  const [{ namespaces, status }, table] = await Promise.all([factsOf(teller, 1), teller.read('/proc/1/mountinfo')])
  if (status.seccomp !== 2)
    throw new SandboxError('not-enforced', 'the container has no filter of system calls, although one was asked for', { hint: 'docker info' })
  const root = reachableMounts(parseMountTable(table)).find(({ target }) => target === '/')
  if (root?.access !== 'ro') throw new SandboxError('not-enforced', 'the root of the container can be written to', { hint: 'docker info' })
  const kinds = await kindsOf(teller)
  const host: HostFiles = {
    kindOf: (path) => (path.startsWith('/proc/') ? kinds.get(path) : 'folder'),
    mountsAt: (path) => (hostDevices.includes(path) ? [['', dialect.devices]] : rowsOf(path, spec, root)),
  }
  return { teller, own: { namespaces, filters: status.filters }, host, holds, limits: () => limitsOf(teller, holds) }
}

/** The folders of the template are part of the image, and so of the container's own root. */
function rowsOf(path: string, { root: { binds } }: CellSpec, root: MountRow): ReturnType<HostFiles['mountsAt']> {
  return binds.some(({ source }) => source === path) ? [['', root]] : []
}

async function kindsOf(teller: Teller): Promise<ReadonlyMap<string, 'file' | 'folder'>> {
  const paths = [...masked, ...readOnly].filter((path) => path.startsWith('/proc/'))
  const found = await Promise.all(paths.map(async (path) => [path, await teller.identity(path)] as const))
  return new Map(found.flatMap(([path, told]) => (told === undefined ? [] : [[path, told.startsWith('d') ? 'folder' : 'file'] as const])))
}

async function limitsOf(teller: Teller, holds: readonly CgroupLimit[]): Promise<readonly (readonly [CgroupLimit, number | null])[]> {
  return Promise.all(holds.map(async (name) => [name, await statedOf(teller, name)] as const))
}

const groups = '/sys/fs/cgroup'

/** As the container sees its own groups. */
async function statedOf(teller: Teller, name: CgroupLimit): Promise<number | null> {
  const read = async (file: string): Promise<string | undefined> => (await whileThere(teller.read(`${groups}/${file}`)))?.trim()
  const number = (text: string | undefined): number | null => (text !== undefined && /^\d+$/.test(text) ? Number(text) : null)
  if (name === 'memory') return number(await read('memory.max'))
  const [quota, period] = (await read('cpu.max'))?.split(' ') ?? (await Promise.all(['cpu/cpu.cfs_quota_us', 'cpu/cpu.cfs_period_us'].map(read)))
  const [part, whole] = [number(quota), number(period)]
  return part === null || whole === null ? null : part / whole
}
