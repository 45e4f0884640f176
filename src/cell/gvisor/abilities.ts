/** What a sandbox of gVisor can and cannot do, whoever starts it. */
import type { CellSpec, Enforcement, Probe } from '../../contract/driver.js'
import { SandboxError } from '../../contract/errors.js'
import type { Cgroups } from '../../sys/cgroups.js'
import { sentryBytes } from './cgroup.js'

/** What gVisor's kernel does not have, so that nothing of it is tried. */
export const lacks = {
  commands: 'gVisor has no rules for files (Landlock)',
  'mounts-rw': 'gVisor makes files as root of the cell, who is nobody in a folder of yours',
  'mounts-overlay': 'gVisor keeps no user attributes, without which an overlay cannot tell what it hides',
  'root-overlay': 'the root of a sandbox of gVisor is read-only',
  liners: 'gVisor gives a sandbox no namespaces that could be mounted anew',
  'direct-network': 'the network of gVisor takes no routes',
} as const

/** The latest that was seen to keep to the number of its pids group; that of 2024-07-29 now and then let 52 through where 32 were allowed. */
const lastExact = 20221219

/** `20221219.0 ptrace`: it counts by days. A version that cannot be read is none that was tried. */
export function processesOf(version: string): Enforcement {
  const day = Number(/^\d{8}(?=\.|$| )/.exec(version)?.[0] ?? Number.NaN)
  if (day <= lastExact) return { enforced: true, by: "a group of gVisor's own kernel for all programs of the sandbox", min: 1 }
  return { enforced: false, why: `gVisor later than ${lastExact} does not always keep to the number of its own group` }
}

/** Of one of this version of gVisor, given what holds the limits of other cells. */
export function limitsOfSandbox(limits: Probe['limits'], cgroups: Cgroups | undefined, version: string): Probe['limits'] {
  return {
    ...limits,
    // Nobody has tried whether what the gofer reads and writes is held to them.
    readRate: { enforced: false, why: 'rates of disks were not tried with gVisor' },
    writeRate: { enforced: false, why: 'rates of disks were not tried with gVisor' },
    cpuTime: { enforced: false, why: 'what the processor does for gVisor is counted for the sandbox as a whole' },
    processes: processesOf(version),
    ...(cgroups &&
      limits.memory.enforced && {
        memory: { ...limits.memory, by: `${limits.memory.by}, around the sandbox with ${sentryBytes / 2 ** 20} MiB for gVisor itself`, whole: true },
      }),
  }
}

/** Throws SandboxError('unsupported') for what gVisor's kernel does not have. */
export function refuseLacking({ rootMode, commands, liners, mounts, network }: CellSpec): void {
  const asked = [
    rootMode === 'overlay' && "root: 'overlay'",
    commands !== undefined && 'commands',
    liners === true && 'liners',
    mounts.some(({ mode }) => mode !== 'ro') && "mounts with another mode than 'ro'",
    network?.direct === true && 'a direct network',
  ].filter((what) => what !== false)
  if (asked.length > 0) throw new SandboxError('unsupported', `${asked.join(', ')}: not in a sandbox of gVisor`, { hint: 'glovebox doctor' })
}

export const terminalsOfSandbox = 'not the controlling ones of programs in every version of gVisor: no /dev/tty, no job control, no word of a new size'
