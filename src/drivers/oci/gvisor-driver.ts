import type { CellPrograms } from '../../cell/arguments.js'
import { type CellDriverOptions, createCellDriver, type Preparation } from '../../cell/cell-driver.js'
import { programPath } from '../../cell/facts.js'
import type { Lease } from '../../cell/lease.js'
import type { CellSpec, Driver } from '../../contract/driver.js'
import { SandboxError } from '../../contract/errors.js'
import { nativeProgram } from '../../sys/native.js'
import { type Bundle, type Bundles, createBundles, withBundle } from './bundles.js'
import { enterAsOne, withSentry } from './gvisor-cgroup.js'
import { sandboxArgv, sandboxConfig } from './gvisor-config.js'
import { inspectSandbox } from './gvisor-inspection.js'
import { chooseGvisor, type Gvisor } from './gvisor-platform.js'
import { gvisorMechanism } from './gvisor-probe.js'
import { findSandbox } from './gvisor-processes.js'

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
      refuse(spec)
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
    inspect: (order) => inspectSandbox(order, groups?.folders ?? []),
    ...(groups && { remark: groups.remark }),
    disk: { processOf: (monitorPid) => findSandbox(monitorPid)?.gofer, path: '/.disk' },
    argv: (plan) => {
      bundle.write(sandboxConfig({ plan }))
      return sandboxArgv(plan, [...words, 'run', '--detach', '--bundle', bundle.folder, spec.id])
    },
  }
}

/** Throws SandboxError('unsupported') for what gVisor's kernel does not have. */
function refuse({ rootMode, commands, liners, mounts, network }: CellSpec): void {
  const lacks = [
    rootMode === 'overlay' && "root: 'overlay'",
    commands !== undefined && 'commands',
    liners === true && 'liners',
    mounts.some(({ mode }) => mode !== 'ro') && "mounts with another mode than 'ro'",
    network?.direct === true && 'a direct network',
  ].filter((what) => what !== false)
  if (lacks.length > 0) throw new SandboxError('unsupported', `${lacks.join(', ')}: not in a sandbox of gVisor`, { hint: 'glovebox doctor' })
}

function choose(path: () => string | undefined): Promise<Gvisor> {
  return new Promise<Gvisor>((resolve) => resolve(chooseGvisor(runtimeOf(path))))
}

function runtimeOf(path: () => string | undefined): string {
  const found = path()
  if (found === undefined) throw new SandboxError('unavailable', 'the program runsc is not installed', { hint: 'glovebox doctor' })
  return found
}
