import { connectWarden } from '../../channel/index.js'
import type { Cell, CellSpec, Obstacle, Probe } from '../../contract/driver.js'
import { SandboxError } from '../../contract/errors.js'
import { defaultLimits } from '../../contract/limits.js'
import { randomId } from '../../sys/random-id.js'
import { type HostFacts, readHostFacts } from './facts.js'
import { canMapRanges, judgeLimits, judgeUsers, obstacleOf, obstaclesBefore, type Trial } from './judgement.js'

const trialMs = 10_000

export interface ProbeOptions {
  open(spec: CellSpec, signal: AbortSignal): Promise<Cell>
  /** What cgroups can hold here. */
  readonly cgroupLimits?: () => Promise<Partial<Probe['limits']>>
}

/** Never throws: what goes wrong is an obstacle. */
export async function probeHost(options: ProbeOptions): Promise<Probe> {
  const facts = await readHostFacts()
  const before = obstaclesBefore(facts)
  if (before.length > 0) return describe(facts, before)
  const trial = await tryCell(options)
  if (!trial.opened) return describe(facts, [obstacleOf(facts, trial.said)])
  return describe(facts, [], await options.cgroupLimits?.())
}

function describe(facts: HostFacts, obstacles: readonly Obstacle[], cgroupLimits: Partial<Probe['limits']> = {}): Probe {
  return {
    driver: 'bwrap',
    tier: 'process',
    available: obstacles.length === 0,
    obstacles,
    limits: judgeLimits(facts, cgroupLimits),
    users: judgeUsers(facts),
    filtersSyscalls: true,
    isolates: true,
    facts: {
      bwrap: facts.bwrap === undefined ? 'none' : `${facts.bwrap.version} (${facts.bwrap.path})`,
      ids: canMapRanges(facts) ? '65536 for each cell, from 0x78000000 up' : `only uid ${facts.uid}`,
      kernel: facts.kernel.join('.'),
    },
  }
}

/** The smallest cell there is: nothing of the host but the warden, which must say hello. */
async function tryCell(options: ProbeOptions): Promise<Trial> {
  const signal = AbortSignal.timeout(trialMs)
  let cell: Cell | undefined
  try {
    cell = await options.open(trialSpec(), signal)
    const warden = await connectWarden(cell.channel, { signal })
    warden.close()
    return { opened: true }
  } catch (error) {
    const said = cell?.diagnosis() || (error instanceof SandboxError ? error.message : String(error))
    return { opened: false, said: signal.aborted ? `no answer within ${trialMs} ms ${said}` : said }
  } finally {
    await cell?.close()
  }
}

function trialSpec(): CellSpec {
  return {
    id: randomId(),
    root: { name: 'trial', binds: [], symlinks: [], shell: '/bin/sh', env: {} },
    limits: { ...defaultLimits, diskBytes: 65_536, stated: [] },
  }
}
