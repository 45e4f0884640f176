import { type CellDriverOptions, createCellDriver, type Preparation } from '../../cell/cell-driver.js'
import type { CellPrograms } from '../../cell/arguments.js'
import { programPath } from '../../cell/facts.js'
import type { Lease } from '../../cell/lease.js'
import type { CellSpec, Driver } from '../../contract/driver.js'
import { SandboxError } from '../../contract/errors.js'
import { nativeProgram } from '../../sys/native.js'
import { containerArgv, doorCount, firstDoor } from './arguments.js'
import { type Bundle, type Bundles, createBundles, withBundle } from './bundles.js'
import { type CgroupPlace, cgroupPlace, placeOfEntering, placeOfJoined } from './cgroup-place.js'
import { containerConfig } from './config.js'
import { ociMechanism } from './probe.js'
import { bundleSeen, handedCount, rootlessArgv, rootlessConfig } from './rootless.js'
import { type Runtime, type RuntimeName, runtimes } from './runtimes.js'

interface OciPrograms extends CellPrograms {
  readonly runtime: string
}

export interface OciDriverOptions extends CellDriverOptions {
  /** What cells are built with, instead of what is found. */
  readonly programs?: Partial<OciPrograms>
}

/** Cells that a container runtime starts, from a bundle of ours. Nothing is touched before the driver is used. */
export function createOciDriver(name: RuntimeName, { programs: given = {}, ...options }: OciDriverOptions = {}): Driver {
  const runtime = runtimes[name]
  const path = (): string | undefined => given.runtime ?? programPath(name)
  let bundles: Bundles | undefined
  return createCellDriver({
    ...options,
    mechanism: ociMechanism(runtime, path),
    isOwnLauncher: given.launcher === undefined,
    findPrograms: () => findPrograms(name, { ...given, runtime: path() }),
    prepare: ({ spec, lease, programs }) => {
      if (lease.ids.kind === 'single') {
        const bundle = (bundles ??= createBundles()).make(spec.id)
        tryBundle(spec, bundle)
        return prepareRootless({ lease, bundle, runtime, path: programs.runtime })
      }
      const place = placeOf(runtime, spec, lease)
      const isEntering = place.joiner === 'warden'
      const bundle = (bundles ??= createBundles()).make(spec.id, place.made)
      tryBundle(spec, bundle)
      return {
        lease: withBundle(lease, bundle),
        firstDoor,
        argv: (asked) => {
          const plan = { ...asked, isEntering }
          bundle.write(containerConfig({ plan, cgroupsPath: place.path }))
          const order = { path: programs.runtime, bundle, cellId: spec.id, descriptors: doorCount(plan), leavesGroups: isEntering }
          return containerArgv({ plan, place, runtime: runtime.argv(order), copied: runtime.isCopied ? programs.runtime : undefined })
        },
      }
    },
  })
}

function placeOf({ isSmall }: Runtime, { id }: CellSpec, { cgroup }: Lease): CgroupPlace {
  if (isSmall) return placeOfJoined()
  return (cgroup && placeOfEntering(cgroup)) ?? cgroupPlace(id, cgroup)
}

/** The lease is not the bundle's yet. */
function tryBundle({ faults }: CellSpec, bundle: Bundle): void {
  try {
    faults?.('create/bundle')
  } catch (error) {
    bundle.remove()
    throw error
  }
}

interface RootlessOrder {
  readonly lease: Lease
  readonly bundle: Bundle
  readonly runtime: Runtime
  readonly path: string
}

function prepareRootless({ lease, bundle, runtime, path }: RootlessOrder): Preparation {
  return {
    lease: withBundle(lease, bundle),
    isWithin: true,
    argv: (plan) => {
      bundle.write(rootlessConfig(plan, bundle.folder))
      const seen = bundleSeen(bundle)
      const words = runtime.argv({ path, bundle: seen, cellId: plan.spec.id, descriptors: handedCount(plan) })
      return rootlessArgv({ plan, bundle: bundle.folder, runtime: words })
    },
  }
}

function findPrograms(name: RuntimeName, given: Partial<Record<keyof OciPrograms, string | undefined>>): OciPrograms {
  if (given.runtime === undefined) throw new SandboxError('unavailable', `the program ${name} is not installed`, { hint: 'glovebox doctor' })
  return { launcher: given.launcher ?? nativeProgram('launcher'), warden: given.warden ?? nativeProgram('warden'), runtime: given.runtime }
}
