import { connectWarden } from '../../channel/index.js'
import type { Cell, CellSpec, Obstacle, Probe } from '../../contract/driver.js'
import { SandboxError } from '../../contract/errors.js'
import { defaultLimits } from '../../contract/limits.js'
import type { Cgroups, CgroupsUnavailable } from '../../sys/cgroups.js'
import { randomId } from '../../sys/random-id.js'
import { type HostFacts, readHostFacts } from './facts.js'
import { canMapRanges, judgeLimits, judgeFeatures, judgeUsers, obstacleOf, obstaclesBefore, type Trial } from './judgement.js'

const trialMs = 10_000

export interface ProbeOptions {
  open(spec: CellSpec, signal: AbortSignal): Promise<Cell>
  cgroups(): Promise<Cgroups | CgroupsUnavailable>
  /** What the cells opened so far share with the host in spite of themselves; empty when nothing. */
  sharedFiles(): string
}

/** Never throws: what goes wrong is an obstacle. */
export async function probeHost(options: ProbeOptions): Promise<Probe> {
  const facts = await readHostFacts()
  const before = obstaclesBefore(facts)
  if (before.length > 0) return describe(facts, before, { unavailable: 'not looked for' })
  const cgroups = await options.cgroups().catch((error: unknown): CgroupsUnavailable => ({ unavailable: String(error) }))
  const trial = await tryCell(options)
  const found = describe(facts, trial.opened ? [] : [obstacleOf(facts, trial)], cgroups)
  const sharedFiles = options.sharedFiles()
  return sharedFiles === '' ? found : { ...found, facts: { ...found.facts, 'shared files': sharedFiles } }
}

function describe(facts: HostFacts, obstacles: readonly Obstacle[], cgroups: Cgroups | CgroupsUnavailable): Probe {
  return {
    driver: 'bwrap',
    tier: 'process',
    available: obstacles.length === 0,
    obstacles,
    limits: judgeLimits(facts, 'unavailable' in cgroups ? (cgroups.enforces ?? cgroups.unavailable) : cgroups.enforces),
    users: judgeUsers(facts),
    features: judgeFeatures(),
    filtersSyscalls: true,
    isolates: true,
    facts: {
      bwrap: facts.bwrap === undefined ? 'none' : `${facts.bwrap.version} (${facts.bwrap.path})`,
      ids: canMapRanges(facts) ? '65536 for each cell, from 0x78000000 up' : `only uid ${facts.uid}`,
      kernel: facts.kernel.join('.'),
    },
  }
}

/** A small cell: nothing of the host but the warden, which must say hello, and the folder that every template shows. */
async function tryCell(options: ProbeOptions): Promise<Trial> {
  const signal = AbortSignal.timeout(trialMs)
  try {
    const cell = await options.open(trialSpec(), signal)
    try {
      const warden = await connectWarden(cell.channel, { signal })
      warden.close()
    } finally {
      await cell.close()
    }
    return { opened: true }
  } catch (error) {
    if (signal.aborted) return { opened: false, said: `no answer within ${trialMs} ms` }
    if (!(error instanceof SandboxError)) return { opened: false, said: String(error) }
    // Failures of the programs point here; others know the way on.
    const knows = error.hint !== undefined && !error.hint.includes('doctor')
    return { opened: false, said: error.message, ...(knows ? { hint: error.hint } : {}) }
  }
}

function trialSpec(): CellSpec {
  return {
    id: randomId(),
    root: { name: 'trial', binds: [{ source: '/usr', target: '/usr' }], symlinks: [], shell: '/bin/sh', env: {} },
    limits: { ...defaultLimits, diskBytes: 65_536, inodes: 64, fileSizeBytes: 65_536, stated: [] },
    rootMode: 'readonly',
    mounts: [],
    commands: undefined,
  }
}
