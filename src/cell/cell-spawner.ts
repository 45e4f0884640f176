import { type LaunchServer, startLaunchServer } from '../sys/launch-server.js'
import { type SpawnedProcess, spawnProcess } from '../sys/spawn.js'

export interface SpawnOrder {
  /** Of the launcher, given the process whose death ends the cell. */
  readonly argv: (ownerPid: number) => [string, ...string[]]
  /** What it gets as descriptors 3, 4, …: an open descriptor of ours, or a pipe to it. */
  readonly descriptors: readonly (number | 'pipe')[]
}

/** How launchers are started. */
export type CellSpawner = (order: SpawnOrder) => Promise<SpawnedProcess>

export const spawnDirectly: CellSpawner = ({ argv, descriptors }) => spawnProcess(argv(process.pid), { cwd: '/', env: {}, descriptors })

/**
 * The first by this process itself, so that whoever wants one cell waits for nothing else; then, where no descriptor has to be handed over, by a server, which is
 * started in the meantime.
 */
export function createCellSpawner(launcher: () => string): CellSpawner {
  let server: LaunchServer | undefined
  let starting: Promise<void> | undefined
  let spawned = 0
  const start = (): void => {
    starting ??= startLaunchServer(launcher())
      .then((started) => void (server = started))
      // Everything goes on without; the next one tries again.
      .catch(() => undefined)
      .finally(() => (starting = undefined))
  }
  return (order) => {
    spawned += 1
    const pipes = order.descriptors.filter((kind) => kind === 'pipe')
    if (pipes.length < order.descriptors.length) return spawnDirectly(order)
    // One that was not launched is nowhere.
    if (server && !server.isOver) return server.launch(order.argv(server.pid), pipes.length).catch(() => spawnDirectly(order))
    if (spawned > 1) start()
    return spawnDirectly(order)
  }
}
