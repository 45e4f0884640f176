import { createHash } from 'node:crypto'
import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { MountRow } from '../../cell/expected-mounts.js'
import type { EngineClient } from '../../sys/docker/client.js'
import { draftIn } from '../../sys/draft.js'
import { cachePlace } from '../../sys/places.js'
import { defaultSeccompText } from '../../sys/seccomp.js'
import { parseSeccompProfile } from '../../sys/seccomp-profile.js'

/** What is called to build the cell before anything of a guest's is there; the warden's own filter refuses all of it from then on. */
const building = ['clone', 'mount', 'mount_setattr', 'move_mount', 'open_tree', 'pivot_root', 'sethostname', 'umount2', 'unshare']
const notThere = 38

/**
 * The profile of the container, for the engine: the names of our default profile that are allowed in any case, and those that a cell is built with. It is the outermost
 * of three: the warden sets a filter of its own once the cell is built, and each program is under the one that the engine of this platform compiled, by names and arguments.
 */
function containerProfile(): string {
  const { syscalls } = parseSeccompProfile(defaultSeccompText(), 'default.json')
  const allowed = (syscalls ?? []).flatMap(({ action, name, names = name === undefined ? [] : [name] }) => (action === 'allow' ? names : []))
  return JSON.stringify({
    defaultAction: 'SCMP_ACT_ERRNO',
    // Every other way into the kernel of the same machine is closed.
    archMap: [
      { architecture: 'SCMP_ARCH_X86_64', subArchitectures: [] },
      { architecture: 'SCMP_ARCH_AARCH64', subArchitectures: [] },
    ],
    syscalls: [
      { names: [...new Set([...allowed, ...building])].sort(), action: 'SCMP_ACT_ALLOW' },
      { names: ['clone3'], action: 'SCMP_ACT_ERRNO', errnoRet: notThere },
    ],
  })
}

/** What one engine is told in other words than another. */
export interface Dialect {
  readonly isPodman: boolean
  /** Beside no new privileges. */
  readonly security: readonly string[]
  /** Beside that of open files. */
  readonly ulimits: Readonly<Record<string, number>>
  /** How it mounts the /dev of a container. */
  readonly devices: MountRow
}

const devices: MountRow = { type: 'tmpfs', access: 'rw', nosuid: true, nodev: false, noexec: false }
/** As many as Podman leaves itself; unless it is told, it tries to give more than that. */
const podmanProcesses = 32_768

/** The profile, and that nothing of /proc is to be masked. Docker is given the text of one; Podman a file of its own machine, and has a word for the masks. */
export async function dialectOf(engine: EngineClient): Promise<Dialect> {
  const profile = containerProfile()
  if (!(await isPodman(engine))) return { isPodman: false, security: [`seccomp=${profile}`], ulimits: {}, devices }
  return { isPodman: true, security: [`seccomp=${fileOf(profile)}`, 'unmask=ALL'], ulimits: { nproc: podmanProcesses }, devices: { ...devices, noexec: true } }
}

async function isPodman(engine: EngineClient): Promise<boolean> {
  const { Components = [] } = (await engine.call('GET', '/version')) as { readonly Components?: readonly { readonly Name?: string }[] }
  return Components.some(({ Name = '' }) => Name.startsWith('Podman'))
}

/** Named by its content, and only ever whole. */
function fileOf(profile: string): string {
  const folder = join(cachePlace(), 'seccomp-of-containers')
  const place = join(folder, `${createHash('sha256').update(profile).digest('hex').slice(0, 32)}.json`)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const draft = draftIn(folder)
  writeFileSync(draft, profile, { mode: 0o600, flag: 'wx' })
  renameSync(draft, place)
  return place
}
