import { statSync } from 'node:fs'
import { type OwnPosture, readOwnPosture } from '../../cell/cell-posture.js'
import { expectedOfBoundGofer, type MountRow, readHostFiles } from '../../cell/expected-mounts.js'
import { refuseLacking } from '../../cell/gvisor/abilities.js'
import { inspectSandbox } from '../../cell/gvisor/inspection.js'
import { findSandbox, type SandboxProcesses } from '../../cell/gvisor/processes.js'
import { diskPlace } from '../../cell/gvisor/warden-words.js'
import { openCell } from '../../cell/open-cell.js'
import type { CellPlan } from '../../cell/arguments.js'
import type { Cell, CellSpec } from '../../contract/driver.js'
import { SandboxError } from '../../contract/errors.js'
import type { Json } from '../../contract/posture.js'
import type { EngineClient } from '../../sys/docker/client.js'
import { type MountSources, openMountSources } from '../../sys/mount-source.js'
import type { ForbiddenTree } from '../../sys/mount-source-rules.js'
import { sealMounts } from '../../sys/seal-mounts.js'
import { argumentsOf, parentOf } from '../../sys/processes.js'
import { type BoundFolder, boundFolders, sandboxArgv, sandboxContainer } from './sandbox-container.js'
import { leaveEngineGroups } from './sandbox-groups.js'
import type { SandboxLease, SandboxLessor } from './sandbox-lease.js'
import { spawnContainer, type StartedContainer } from './spawner.js'
import { wordsOf } from './words.js'

export interface SandboxParts {
  readonly engine: EngineClient
  readonly image: (root: CellSpec['root']) => Promise<string>
  readonly runtime: string
  readonly openFiles: number
  readonly lessor: SandboxLessor
  /** Of the engine's own, which no cell may have. */
  readonly trees: readonly ForbiddenTree[]
  /** Of the root of every container, and of the file with its name that the engine binds into each. */
  readonly ofEngine: { readonly root: MountRow; readonly files: string }
}

/** Guests that are `user` have this id on the host too, as far as files are concerned. */
const userOnHost = 1000
/** It is in the image. */
const programs = { launcher: '', warden: '' }
const hostnamePath = '/etc/hostname'

export function createSandboxOpener(parts: SandboxParts): (spec: CellSpec, signal: AbortSignal) => Promise<Cell> {
  const own = readOwnPosture()
  return async (spec, signal) => {
    refuseLacking(spec)
    const sources = openMountSources(spec.mounts, 'range', parts.trees)
    try {
      refuseOwners(spec, sources)
      const image = await parts.image(spec.root)
      return await openWith({ ...parts, spec, signal, sources, own, container: image, leased: await parts.lessor(spec) })
    } finally {
      sources.close()
    }
  }
}

/** An engine binds folders with their owners as they are. Elsewhere root's stay so, and whoever else's become the guest's. */
function refuseOwners({ mounts }: CellSpec, { list }: MountSources): void {
  list.forEach(({ uid, path }, index) => {
    if (uid === 0 || uid === userOnHost) return
    const why = `it belongs to uid ${uid}, and gVisor in a container engine shows owners as they are`
    throw new SandboxError('unsupported', `mounts[${index}].source: ${mounts[index]?.source ?? path}: ${why}`, {
      hint: `glovebox run --driver oci:runsc --mount ${path} -- true`,
    })
  })
}

interface Order extends SandboxParts {
  readonly spec: CellSpec
  readonly signal: AbortSignal
  readonly sources: MountSources
  readonly own: OwnPosture
  /** Its image. */
  readonly container: string
  readonly leased: SandboxLease
}

function openWith({ spec, signal, sources, own, leased, ...order }: Order): Promise<Cell> {
  const { lease, groups } = leased
  const plan: CellPlan = { spec, ids: lease.ids, programs, ownerPid: process.pid, sources: sources.list }
  const bound = boundFolders(plan)
  return openCell({
    ...{ spec, lease, signal, own, programs, wordsOf, unveilable: new Set<string>(), sources: sources.list },
    argv: sandboxArgv,
    spawn: () =>
      spawnContainer({
        ...{ engine: order.engine, id: spec.id, signal, goesOn: lease.cgroup === undefined, remains: lease.remains },
        config: sandboxContainer({ plan, image: order.container, runtime: order.runtime, openFiles: order.openFiles }),
        settle: (container) => settle({ container, runtime: order.runtime, bound, leased }),
      }),
    inspect: (inspected) => inspectSandbox(inspected, { folders: groups?.folders ?? [], mounts: goferMounts(bound, order.ofEngine) }),
    disk: { processOf: (monitorPid) => findSandbox(monitorPid)?.gofer, path: diskPlace },
    ...(groups && { remark: groups.remark }),
  })
}

function goferMounts(bound: readonly BoundFolder[], { root, files }: SandboxParts['ofEngine']): Json {
  const named = { source: files, target: hostnamePath, isWhole: false }
  return expectedOfBoundGofer({ root, bound: [...bound, named], diskPlace, host: readHostFiles() })
}

interface Settling {
  readonly container: StartedContainer
  readonly runtime: string
  readonly bound: readonly BoundFolder[]
  readonly leased: SandboxLease
}

/** While the warden waits. Resolves to the engine's own monitor of the container, whose children sentry and gofer are. */
async function settle({ container, runtime, bound, leased }: Settling): Promise<number> {
  leased.belongsTo(container.id)
  const [monitor, found] = findStarted(container)
  if (found === undefined)
    throw new SandboxError('not-enforced', `the runtime ${runtime} of the container engine started no sandbox of gVisor that is seen here`, {
      hint: 'docker info',
    })
  recognise(bound, found)
  // Another would keep to what it was told; after this the kernel does.
  await sealMounts({ pid: found.gofer, disk: diskPlace })
  await leaveEngineGroups(found.sentry, leased.lease.cgroup?.joins ?? [])
  return monitor
}

/** Its number is one of the engine's machine, and may be another process's here. */
function findStarted({ id, pid }: StartedContainer): readonly [number, SandboxProcesses | undefined] {
  try {
    const monitor = parentOf(pid)
    const found = findSandbox(monitor)
    return [monitor, found && [found.sentry, found.gofer].every((each) => argumentsOf(each).some((word) => word.includes(id))) ? found : undefined]
  } catch {
    return [-1, undefined]
  }
}

function recognise(bound: readonly BoundFolder[], { gofer }: SandboxProcesses): void {
  for (const { source, target } of bound) {
    const [meant, shown] = [statSync(source), statSync(`/proc/${gofer}/root${target}`)]
    if (meant.dev === shown.dev && meant.ino === shown.ino) continue
    throw new SandboxError('not-enforced', `${target} of the cell: the container engine shows something else than ${source} of this machine`, {
      hint: `ls -ld ${source}`,
    })
  }
}
