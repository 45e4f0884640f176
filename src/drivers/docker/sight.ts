import type { CellSpec } from '../../contract/driver.js'
import { defaultLimits } from '../../contract/limit-words.js'
import type { EngineClient } from '../../sys/docker/client.js'
import { randomId } from '../../sys/random-id.js'
import { containerConfig } from './container.js'
import type { Dialect } from './dialect.js'
import { inContainer } from './image.js'
import type { Standing } from './lease.js'
import { isSeenSoon } from './near.js'
import { spawnContainer } from './spawner.js'

export interface SightOrder {
  readonly engine: EngineClient
  readonly image: string
  readonly dialect: Dialect
  readonly standing: Exclude<Standing, 'far'>
  readonly runtime: string | undefined
}

const patienceMs = 30_000
/** Nobody's. */
const lastId = 0x7fffffff

/** Whether what the engine starts can be looked at from here: tried with a container whose first process waits, and is ended. */
export async function seesContainers({ engine, image, dialect, standing, runtime }: SightOrder): Promise<boolean> {
  const id = randomId()
  const ids = standing === 'root' ? { uid: lastId, gid: lastId } : { uid: process.getuid?.() ?? lastId, gid: process.getgid?.() ?? lastId }
  let isSeen = false
  const container = await spawnContainer({
    ...{ engine, id, signal: AbortSignal.timeout(patienceMs), goesOn: false, remains: () => [] },
    config: containerConfig({
      ...{ image, dialect, runtime, ids, spec: emptySpec(id), openFiles: 1024, groups: 'engine', bound: 'nothing' },
      argv: [inContainer.launcher, '--await', '--', inContainer.warden, id],
    }),
    settle: async ({ pid }) => {
      isSeen = await isSeenSoon(pid, { id, uid: ids.uid })
      return -1
    },
  })
  container.channel.on('error', () => undefined).resume()
  container.signal('SIGKILL')
  await container.wait()
  container.channel.destroy()
  return isSeen
}

function emptySpec(id: string): CellSpec {
  return {
    id,
    root: { name: 'nothing', binds: [], symlinks: [], shell: '', env: {} },
    limits: { ...defaultLimits, diskBytes: 65_536, inodes: 64, fileSizeBytes: 65_536, stated: [] },
    rootMode: 'readonly',
    mounts: [],
    commands: undefined,
  }
}
