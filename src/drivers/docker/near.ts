/** An engine of this machine, whose processes are seen here: what it did is looked at, and what it cannot do is done, before its container goes on. */
import { readlinkSync, statSync, writeFileSync } from 'node:fs'
import type { PlacedMount } from '../../cell/placed-mounts.js'
import type { CellSpec } from '../../contract/driver.js'
import { SandboxError } from '../../contract/errors.js'
import { argumentsOf, uidOf } from '../../sys/processes.js'
import { templatePlace } from './arguments.js'
import type { ContainerLease } from './lease.js'
import { putMounts, recogniseMounts } from './mounts.js'

export interface Settling {
  readonly spec: CellSpec
  readonly lease: ContainerLease
  readonly mounts: readonly PlacedMount[]
}

/** That the process with this number is not the container's: the engine is somewhere else, or we may not look at what it starts. */
export class NotSeen extends SandboxError {
  constructor() {
    super('unsupported', 'the container engine runs on another machine, or where this process cannot see what it starts', {
      hint: 'export DOCKER_HOST=unix:///var/run/docker.sock',
    })
  }
}

export async function settleNear({ spec, lease, mounts }: Settling, pid: number): Promise<number> {
  if (!isSeen(pid, spec, lease)) throw new NotSeen()
  recogniseTemplate(spec, pid)
  if (lease.standing === 'root') {
    await putMounts({ pid, uid: lease.hostIds.uid, mounts })
    // It waits for a word of ours until then, has a single thread, and cannot enter them by itself.
    for (const door of lease.cgroup?.joins ?? []) writeFileSync(door, `${pid}`)
  } else {
    recogniseMounts(mounts, pid)
    lease.engineCgroup?.find(pid)
  }
  return pid
}

/** Any process here may have the number that a process has elsewhere: it must have the id that was asked for, and know of this cell. */
function isSeen(pid: number, { id }: CellSpec, { hostIds }: ContainerLease): boolean {
  try {
    return uidOf(pid) === hostIds.uid && argumentsOf(pid).includes(id) && readlinkSync(`/proc/${pid}/ns/user`) !== ''
  } catch {
    return false
  }
}

/** An engine may have other mounts than this process, or bind something else: what it shows must be the very folders that were meant. */
function recogniseTemplate({ root }: CellSpec, pid: number): void {
  root.binds.forEach(({ source, target }, index) => {
    const [meant, shown] = [statSync(source), statSync(`/proc/${pid}/root${templatePlace(index)}`)]
    if (meant.dev === shown.dev && meant.ino === shown.ino) return
    throw new SandboxError('not-enforced', `${target} of the cell: the container engine shows something else than ${source} of this machine`, {
      hint: 'glovebox doctor',
    })
  })
}
