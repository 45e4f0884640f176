import type { CellPlan, CellPrograms } from '../../cell/arguments.js'
import { type CellDriverOptions, createCellDriver, type Preparation } from '../../cell/cell-driver.js'
import { expectedOfGofer, readHostFiles } from '../../cell/expected-mounts.js'
import { programPath } from '../../cell/facts.js'
import { refuseLacking } from '../../cell/gvisor/abilities.js'
import { enterAsOne, withSentry } from '../../cell/gvisor/cgroup.js'
import { inspectSandbox } from '../../cell/gvisor/inspection.js'
import { findSandbox } from '../../cell/gvisor/processes.js'
import { diskPlace } from '../../cell/gvisor/warden-words.js'
import type { Lease } from '../../cell/lease.js'
import type { CellSpec, Driver } from '../../contract/driver.js'
import { SandboxError } from '../../contract/errors.js'
import type { Json } from '../../contract/posture.js'
import { nativeProgram } from '../../sys/native.js'
import { type Bundle, type Bundles, createBundles, withBundle } from './bundles.js'
import { sandboxArgv, sandboxConfig, stagedMounts } from './gvisor-config.js'
import { chooseGvisor, type Gvisor } from './gvisor-platform.js'
import { gvisorMechanism } from './gvisor-probe.js'

interface GvisorPrograms extends CellPrograms {
  readonly runtime: string
}

export interface GvisorDriverOptions extends CellDriverOptions {
  /** What cells are built with, instead of what is found. */
  readonly programs?: Partial<GvisorPrograms>
}

/** Cells that are sandboxes of gVisor: their programs run on a kernel of its own. Nothing is touched before the driver is used. */
export function createGvisorDriver({ programs: given = {}, ...options }: GvisorDriverOptions = {}): Driver {
  const path = (): string | undefined => given.runtime ?? programPath('runsc')
  let chosen: Promise<Gvisor> | undefined
  const gvisor = (): Promise<Gvisor> => {
    chosen ??= choose(path)
    chosen.catch(() => (chosen = undefined))
    return chosen
  }
  let bundles: Bundles | undefined
  return createCellDriver({
    ...options,
    mechanism: gvisorMechanism(path, gvisor),
    isOwnLauncher: given.launcher === undefined,
    limitsOfGroups: withSentry,
    findPrograms: () => ({ launcher: given.launcher ?? nativeProgram('launcher'), warden: given.warden ?? nativeProgram('warden'), runtime: runtimeOf(path) }),
    prepare: async ({ spec, lease, programs }) => {
      refuseLacking(spec)
      const { flags } = await gvisor()
      const bundle = (bundles ??= createBundles()).make(spec.id)
      try {
        return await prepareSandbox({ lease: withBundle(lease, bundle), bundle, words: [programs.runtime, '--root', bundle.state, ...flags], spec })
      } catch (error) {
        bundle.remove()
        throw error
      }
    },
  })
}

interface SandboxOrder {
  readonly lease: Lease
  readonly bundle: Bundle
  readonly words: readonly string[]
  readonly spec: CellSpec
}

/** The groups come first: which of them the sandbox enters is told to the launcher. */
async function prepareSandbox({ lease, bundle, words, spec }: SandboxOrder): Promise<Preparation> {
  await lease.buildGroups()
  const groups = lease.cgroup && enterAsOne(lease.cgroup)
  return {
    lease: {
      ...lease,
      cgroup: groups?.cgroup,
      buildGroups: () => Promise.resolve(),
      holds: lease.holds.filter((name) => name !== 'processes'),
      release: (end) => {
        groups?.leave()
        return lease.release(end)
      },
    },
    inspect: (order) => inspectSandbox(order, { folders: groups?.folders ?? [], mounts: goferMounts(order.plan) }),
    ...(groups && { remark: groups.remark }),
    disk: { processOf: (monitorPid) => findSandbox(monitorPid)?.gofer, path: diskPlace },
    argv: (plan) => {
      bundle.write(sandboxConfig({ plan }))
      return sandboxArgv(plan, [...words, 'run', '--detach', '--bundle', bundle.folder, spec.id])
    },
  }
}

function goferMounts(plan: CellPlan): Json {
  return expectedOfGofer({ plan, host: readHostFiles(), diskPlace, shown: stagedMounts(plan) })
}

function choose(path: () => string | undefined): Promise<Gvisor> {
  return new Promise<Gvisor>((resolve) => resolve(chooseGvisor(runtimeOf(path))))
}

function runtimeOf(path: () => string | undefined): string {
  const found = path()
  if (found === undefined) throw new SandboxError('unavailable', 'the program runsc is not installed', { hint: 'glovebox doctor' })
  return found
}
