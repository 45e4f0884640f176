/** An engine of this machine, whose processes are seen here: what it did is looked at, and what it cannot do is done, before its container goes on. */
import { readlinkSync, statSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { PlacedMount } from '../../cell/placed-mounts.js'
import type { CellSpec } from '../../contract/driver.js'
import { SandboxError } from '../../contract/errors.js'
import { argumentsOf, uidOf } from '../../sys/processes.js'
import { templatePlace } from './image.js'
import type { ContainerLease } from './lease.js'
import { putMounts, recogniseMounts } from './mounts.js'

export interface Settling {
  readonly spec: CellSpec
  readonly lease: ContainerLease
  readonly mounts: readonly PlacedMount[]
}

const patienceMs = 2000
const pauseMs = 2

export async function settleNear({ spec, lease, mounts }: Settling, pid: number): Promise<number> {
  if (!(await isSeenSoon(pid, { id: spec.id, uid: lease.hostIds.uid })))
    throw new SandboxError('not-enforced', 'the first process of the container is not what was asked of the engine', { hint: 'glovebox doctor' })
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

interface Sought {
  /** Of the cell. */
  readonly id: string
  readonly uid: number
}

/** A container counts as started when its runtime is about to become its first process. */
export async function isSeenSoon(pid: number, sought: Sought): Promise<boolean> {
  const until = performance.now() + patienceMs
  while (!isSeen(pid, sought)) {
    if (performance.now() > until) return false
    await sleep(pauseMs)
  }
  return true
}

/** Any process here may have the number that a process has elsewhere: it must have the id that was asked for, and know of this cell. */
function isSeen(pid: number, { id, uid }: Sought): boolean {
  try {
    return uidOf(pid) === uid && argumentsOf(pid).includes(id) && readlinkSync(`/proc/${pid}/ns/user`) !== ''
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
