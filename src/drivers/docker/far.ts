/**
 * An engine of another machine, or of one whose processes and folders are not seen here. Its container is from an image that has the template in it; what holds around the
 * cell is read by our launcher in the container, and told by way of the engine.
 */
import { randomInt } from 'node:crypto'
import { readOwnPosture } from '../../cell/cell-posture.js'
import { checkLiners, checkRootMode } from '../../cell/mount-refusals.js'
import { openCell } from '../../cell/open-cell.js'
import { createTurnstile } from '../../cell/turnstile.js'
import type { Cell, CellSpec } from '../../contract/driver.js'
import { SandboxError } from '../../contract/errors.js'
import type { CgroupLimit } from '../../sys/cgroups.js'
import type { EngineClient } from '../../sys/docker/client.js'
import { containerArgv } from './arguments.js'
import { containerConfig } from './container.js'
import type { Dialect } from './dialect.js'
import { type FarGround, readGround } from './far-ground.js'
import { inspectFar } from './far-posture.js'
import { type ContainerPrograms, importTemplate } from './image.js'
import type { ContainerLease } from './lease.js'
import { wordsOf } from './words.js'
import { spawnContainer } from './spawner.js'
import { startTeller } from './teller.js'

export interface FarParts {
  readonly engine: EngineClient
  readonly dialect: Dialect
  readonly programs: Partial<ContainerPrograms> | undefined
  readonly openFiles: number
  readonly runtime: string | undefined
  /** By the engine's cgroups. */
  readonly holds: readonly CgroupLimit[]
}

export const farWords = 'the container engine runs on another machine, or where this process cannot see what it starts'
const mostEndings = 32
const firstId = 0x78000000
const lastId = 0x7ffffffe

export function createFarOpener(parts: FarParts): (spec: CellSpec, signal: AbortSignal) => Promise<Cell> {
  const inTurn = createTurnstile(mostEndings)
  const own = readOwnPosture()
  return async (spec, signal) => {
    refuseFar(spec, parts)
    const image = await importTemplate(parts.engine, spec.root, parts.programs)
    const lease = farLease(spec, inTurn)
    let ground: FarGround | undefined
    const spawn = spawnFar({ ...parts, spec, signal, lease, image, onGround: (read) => (ground = read) })
    const unveilable = new Set(spec.root.binds.map(({ source }) => source))
    const argv = (plan: Parameters<typeof containerArgv>[0]): [string, ...string[]] => containerArgv(plan, { isApart: true })
    const programs = { launcher: '', warden: '' }
    const inspect: Parameters<typeof openCell>[0]['inspect'] = (order) => inspectFar(order, ground as FarGround)
    try {
      return await openCell({ spec, lease, signal, spawn, own, unveilable, sources: [], programs, argv, wordsOf, inspect })
    } catch (error) {
      ground?.teller.close()
      throw error
    }
  }
}

/** What would need something of this machine there. */
function refuseFar(spec: CellSpec, { dialect }: FarParts): void {
  checkRootMode(spec, 'single')
  checkLiners(spec)
  const refuse = (what: string, hint: string): SandboxError => new SandboxError('unsupported', `${what}: ${farWords}`, { hint })
  if (spec.mounts.length > 0) throw refuse('mounts[0].source: no folder of this machine can be mounted', 'glovebox cp')
  if (spec.network?.certificates !== undefined) throw refuse('network: certificates of ours cannot be put into the cell', 'glovebox run --allow …')
  if (dialect.isPodman) throw refuse('seccomp: Podman takes a profile only as a file of its own machine', 'glovebox doctor')
}

interface FarSpawn extends FarParts {
  readonly spec: CellSpec
  readonly signal: AbortSignal
  readonly lease: ContainerLease
  readonly image: string
  readonly onGround: (ground: FarGround) => void
}

function spawnFar({ lease, onGround, ...order }: FarSpawn): Parameters<typeof openCell>[0]['spawn'] {
  const { engine, spec, signal, dialect, holds } = order
  return ({ argv }) =>
    spawnContainer({
      ...{ engine, id: spec.id, signal, goesOn: true, remains: lease.remains },
      config: containerConfig({ ...order, argv: argv(process.pid), ids: lease.hostIds, groups: 'engine', bound: 'nothing' }),
      settle: async ({ id }) => {
        const teller = await startTeller(engine, id)
        try {
          onGround(await readGround({ teller, spec, dialect, holds }))
        } catch (error) {
          teller.close()
          throw error
        }
        return -1
      },
    })
}

/** There is nothing of it here but its connection, with which it ends. */
function farLease(spec: CellSpec, inTurn: ContainerLease['inTurn']): ContainerLease {
  const held = spec.root.hold?.(spec.id)
  const id = randomInt(firstId, lastId)
  const hostIds = { uid: id, gid: id }
  return {
    ...{ standing: 'far', ids: { kind: 'single', host: hostIds }, hostIds, cgroup: undefined, engineCgroup: undefined, holds: [] },
    buildGroups: () => Promise.resolve(),
    remains: () => [],
    inTurn,
    clear: () => undefined,
    release: () => {
      held?.[Symbol.dispose]()
      return Promise.resolve()
    },
  }
}
