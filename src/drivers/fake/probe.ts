import { connectWarden } from '../../channel/index.js'
import type { Availability, Cell, Enforcement, GuestUser, Obstacle, Probe } from '../../contract/driver.js'

const noWalls: Enforcement = { enforced: false, why: 'the fake driver has no walls and sets no limits' }
const notHere: Availability = { available: false, why: 'the fake driver has no root filesystem of its own' }
export const noWay = { available: false, why: 'the fake driver leaves programs on the network of the host' } as const satisfies Availability
const probeTimeoutMs = 10_000

/** What the fake driver can do here, found by running a program with it. */
export async function probeFake(open: (signal: AbortSignal) => Promise<Cell>): Promise<Probe> {
  const obstacle = await findObstacle(open)
  return {
    driver: 'fake',
    tier: 'none',
    available: obstacle === undefined,
    obstacles: obstacle ? [obstacle] : [],
    limits: {
      memory: noWalls,
      cpus: noWalls,
      cpuTime: noWalls,
      disk: noWalls,
      inodes: noWalls,
      fileSize: noWalls,
      openFiles: noWalls,
      processes: noWalls,
      readRate: noWalls,
      writeRate: noWalls,
    },
    features: {
      commands: notHere,
      'mounts-ro': notHere,
      'mounts-overlay': notHere,
      'mounts-rw': notHere,
      'root-overlay': notHere,
      liners: notHere,
      pause: { available: true },
      network: noWay,
      'direct-network': noWay,
    },
    users: { user: { available: true }, root: { available: false, why: 'the fake driver runs everything as whoever started it' } },
    filtersSyscalls: false,
    isolates: false,
    facts: { isolation: 'none: programs run on the host as whoever started them' },
  }
}

async function findObstacle(open: (signal: AbortSignal) => Promise<Cell>): Promise<Obstacle | undefined> {
  const signal = AbortSignal.timeout(probeTimeoutMs)
  let cell: Cell | undefined
  try {
    cell = await open(signal)
    await runTrue(cell, signal)
    return undefined
  } catch (error) {
    return { what: 'the warden', why: [messageOf(error), cell?.diagnosis()].filter(Boolean).join(': '), hint: './glovebox doctor' }
  } finally {
    await cell?.close().catch(() => undefined)
  }
}

async function runTrue(cell: Cell, signal: AbortSignal): Promise<void> {
  const warden = await connectWarden(cell.channel, { signal })
  const giveUp = (): void => warden.close()
  signal.addEventListener('abort', giveUp, { once: true })
  try {
    const { uid, gid, capabilities } = cell.users[0] as GuestUser
    const result = await warden.start({ argv: ['true'], env: { PATH: '/usr/bin:/bin' }, cwd: cell.workdir, uid, gid, capabilities, rlimits: [], stdin: false })
    if (!result.started) throw new Error(`${result.text} (errno ${result.errno})`)
    result.process.discardOutput()
    const { kind, code } = await result.process.exited
    if (kind !== 'exited' || code !== 0) throw new Error(`true ${kind} with ${code}`)
  } finally {
    signal.removeEventListener('abort', giveUp)
    warden.close()
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
