import { cgroupLimits } from '../../cell/cell-limits.js'
import { enterAsOne, type SandboxGroups, withSentry } from '../../cell/gvisor/cgroup.js'
import type { Lease } from '../../cell/lease.js'
import { createTurnstile } from '../../cell/turnstile.js'
import type { CellSpec } from '../../contract/driver.js'
import type { CgroupLimit, Cgroups, CgroupsUnavailable } from '../../sys/cgroups.js'
import { argumentsOf, findProcesses } from '../../sys/processes.js'

export interface SandboxLease {
  readonly lease: Lease
  readonly groups: SandboxGroups | undefined
  /** By which what is left of the sandbox is known on this machine. */
  readonly belongsTo: (containerId: string) => void
}

export type SandboxLessor = (spec: CellSpec) => Promise<SandboxLease>

const mostEndings = 32
/** Ids are those of gVisor's kernel; the host's are the engine's affair. Nobody is root: what root wrote to gVisor's own /dev would not count as disk. */
const ids = { kind: 'range', base: 0, size: 65_536, hasRoot: false } as const

/** The groups are there before anything is started, because the whole sandbox is put into the group of one run. */
export async function createSandboxLessor(cgroups: Cgroups | CgroupsUnavailable): Promise<SandboxLessor> {
  const groups = 'unavailable' in cgroups ? undefined : cgroups
  const held = groups === undefined ? [] : (Object.keys(groups.enforces) as CgroupLimit[]).filter((name) => groups.enforces[name].enforced)
  const holds = held.filter((name) => name !== 'processes')
  await groups?.sweep()
  const inTurn = createTurnstile(mostEndings)
  return async (spec) => {
    const template = spec.root.hold?.(spec.id)
    const planned = groups?.plan({ id: spec.id, ...withSentry(cgroupLimits(spec, spec.limits)) })
    let container: string | undefined
    let entered: SandboxGroups | undefined
    const release = async (): Promise<void> => {
      try {
        entered?.leave()
        await planned?.cgroup.remove()
      } finally {
        template?.[Symbol.dispose]()
      }
    }
    try {
      await planned?.build()
      entered = planned && enterAsOne(planned.cgroup)
    } catch (error) {
      await release()
      throw error
    }
    const lease: Lease = {
      ...{ ids, cgroup: entered?.cgroup, holds, inTurn, release },
      buildGroups: () => Promise.resolve(),
      remains: () => (container === undefined ? [] : processesOf(container)),
      clear: () => planned?.cgroup.clear(),
    }
    return { lease, groups: entered, belongsTo: (id) => (container = id) }
  }
}

/** Sentry and gofer have the container's id among their arguments, and so have the processes in which guests' code runs: they are copies of the sentry's. */
function processesOf(container: string): number[] {
  return findProcesses((pid) => {
    const argv = argumentsOf(pid)
    return ['boot', 'gofer'].some((word) => argv.includes(word)) && argv.some((word) => word.includes(container))
  })
}
