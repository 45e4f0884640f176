/** Folders and files of this machine in a container: how they get there, and that they are what was meant. */
import { fstatSync, statSync } from 'node:fs'
import { type PlacedMount, mappedOwner } from '../../cell/placed-mounts.js'
import { SandboxError } from '../../contract/errors.js'
import type { EngineClient } from '../../sys/docker/client.js'
import type { ForbiddenTree } from '../../sys/mount-source-rules.js'
import { nativeProgram } from '../../sys/native.js'
import { spawnProcess } from '../../sys/spawn.js'
import { inContainer } from './image.js'

const rules = 'whoever has it rules the containers of this machine'

/** Where the engine listens and where it keeps its containers: nothing that leads there is shown in any. */
export function engineTrees({ address }: EngineClient, dataRoot: string | undefined): ForbiddenTree[] {
  const socket = address.kind === 'socket' ? [{ path: address.path, why: rules }] : []
  return [...socket, ...(dataRoot === undefined ? [] : [{ path: dataRoot, why: rules }])]
}

export function mountPlace({ name }: PlacedMount): string {
  return `${inContainer.mounts}/${name}`
}

export interface PutOrder {
  /** The first process of the container, which waits. */
  readonly pid: number
  readonly uid: number
  readonly mounts: readonly PlacedMount[]
}

/** By our launcher, as root, from the very descriptors that were checked; the engine is not told of them. */
export async function putMounts({ pid, uid, mounts }: PutOrder): Promise<void> {
  if (mounts.length === 0) return
  // They are inherited in the order of the spec.
  const inOrder = mounts.toSorted((one, other) => one.inherited - other.inherited)
  const words = inOrder.flatMap((mount) => ['--mount', `${mount.inherited}`, mount.name, mount.mode === 'ro' ? 'ro' : 'rw', ...mappedOwner(mount, uid)])
  const launcher = await spawnProcess([nativeProgram('launcher'), '--put', `${pid}`, `${uid}`, ...words, '--', inContainer.mounts], {
    cwd: '/',
    env: {},
    descriptors: inOrder.map(({ source }) => source.descriptor),
  })
  launcher.channel.end()
  launcher.channel.resume()
  const { code } = await launcher.wait()
  if (code !== 0) throw new SandboxError('unavailable', `the cell did not open: ${launcher.diagnosis().split('\n').at(-1)}`, { hint: 'glovebox doctor' })
}

/** What an engine bound by its path must be what was checked, before anything of a guest's can reach it. */
export function recogniseMounts(mounts: readonly PlacedMount[], pid: number): void {
  for (const mount of mounts) {
    const { source } = mount
    const [meant, shown] = [fstatSync(source.descriptor), statSync(`/proc/${pid}/root${mountPlace(mount)}`)]
    if (meant.dev === shown.dev && meant.ino === shown.ino) continue
    throw new SandboxError('not-enforced', `${mount.target} of the cell: the container engine shows something else than ${source.path} of this machine`, {
      hint: `ls -ld ${source.path}`,
    })
  }
}
