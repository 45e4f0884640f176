import { findProgram, readHostFacts } from '../../cell/facts.js'
import type { Mechanism } from '../../cell/probe.js'
import type { Enforcement } from '../../contract/driver.js'
import { installCommand } from '../../sys/install-command.js'
import { sentryBytes } from './gvisor-cgroup.js'
import type { Gvisor } from './gvisor-platform.js'
import { judgesOf, type OciFacts } from './probe.js'
import { wordsOfRunsc } from './gvisor-words.js'

/** What gVisor's kernel does not have, so that nothing of it is tried. */
const lacks = {
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

export function gvisorMechanism(path: () => string | undefined, gvisor: () => Promise<Gvisor>): Mechanism<OciFacts> {
  let version = ''
  return {
    ...judgesOf({ name: 'runsc' }),
    driver: 'oci:runsc',
    tier: 'gvisor',
    ownKernel: true,
    others: {
      ids: '65536 for the files of each cell, from 0x78000000 up; its kernel has nobody’s',
      terminals: 'not the controlling ones of programs in every version of gVisor: no /dev/tty, no job control, no word of a new size',
    },
    runtime: 'runsc',
    wordsOf: wordsOfRunsc,
    lacks,
    readFacts: async (known) => {
      const program = await findProgram(path(), known)
      const platform =
        known === undefined && program !== undefined
          ? await gvisor().then(
              ({ platform: name }) => ` ${name}`,
              () => '',
            )
          : ''
      version = `${program?.version ?? ''}${platform}`
      return { ...readHostFacts(), program: program && { ...program, version }, install: installCommand('runsc') }
    },
    limits: (limits, cgroups) => ({
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
    }),
  }
}
