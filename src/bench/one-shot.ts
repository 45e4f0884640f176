import { atMost, type Measured, ratioOf } from './goals.js'
import type { Ground, Section } from './ground.js'
import { noPools, openWarmPool, type WarmPool } from './pool-door.js'
import type { Goal, Missing, Row } from './report.js'
import { missingOf, sampleInterleaved, type Subject } from './sampling.js'
import { expectOne, plainSpawn, python } from './subjects.js'

export const linerName = 'glovebox: one-shot, fresh liner, pool warm'
export const cellName = 'glovebox: one-shot, fresh cell, pool warm'

export interface OneShots extends AsyncDisposable {
  readonly subjects: readonly Subject[]
  /** The same, each with a signed record of what was enforced, made before its result is there. */
  readonly withReceipts: readonly Subject[]
  readonly missing: readonly Missing[]
}

/** Of either kind, each with a pool of its own. A kind that cannot be had here is told with its reason. */
export async function openOneShots(ground: Ground, size: number): Promise<OneShots> {
  const pools: WarmPool[] = []
  const subjects: Subject[] = []
  const withReceipts: Subject[] = []
  const missing: Missing[] = []
  for (const fresh of ['liner', 'cell'] as const) {
    const name = fresh === 'liner' ? linerName : cellName
    try {
      const pool = await openWarmPool(ground, { fresh, template: 'python', size })
      if (pool === undefined) missing.push({ name, why: noPools, isUnsupported: true })
      else {
        pools.push(pool)
        subjects.push({ name, run: async () => expectOne(await pool.run(python)), after: () => pool.settle() })
        withReceipts.push({
          name: `${name}, with its receipt`,
          run: async () => expectOne(await pool.run(python, { receipt: true })),
          after: () => pool.settle(),
        })
      }
    } catch (error) {
      missing.push(missingOf(name, error))
    }
  }
  return {
    subjects,
    withReceipts,
    missing,
    [Symbol.asyncDispose]: async () => {
      for (const pool of pools) await pool[Symbol.asyncDispose]()
    },
  }
}

export const oneShots: Section = {
  name: 'one-shot',
  title: 'One-shot: run hello in Python in a sandbox of its own, the pool warm',
  isLong: false,
  async measure(ground: Ground) {
    const plain = plainSpawn()
    await using shots = await openOneShots(ground, 2)
    const { rows, missing } = await sampleInterleaved([plain, ...shots.subjects, ...shots.withReceipts], {
      rounds: ground.rounds * 2,
      warmups: 5,
      pauseMs: 5,
      signal: ground.signal,
    })
    return { rows, figures: [], missing: [...shots.missing, ...missing], goals: goalsOf(rows, { plain: plain.name, missing: [...shots.missing, ...missing] }) }
  },
}

interface Beside {
  readonly plain: string
  readonly missing: readonly Missing[]
}

function goalsOf(rows: readonly Row[], { plain, missing }: Beside): readonly Goal[] {
  const beside = (ours: string, at: 'p50' | 'p95'): Measured => absence(missing, ours) ?? ratioOf({ rows, ours, beside: plain, at })
  return [
    atMost('a one-shot in a fresh liner costs at most 0.5 × a plain spawn', beside(linerName, 'p50'), 0.5),
    atMost('a one-shot in a fresh liner costs at most 0.9 × a plain spawn at p95', beside(linerName, 'p95'), 0.9),
    atMost('a one-shot in a fresh cell costs at most 0.8 × a plain spawn', beside(cellName, 'p50'), 0.8),
  ]
}

/** Why one cannot be measured here; undefined when it can be. Only what cannot be had excuses it. */
export function absence(missing: readonly Missing[], ours: string): Measured | undefined {
  const found = missing.find(({ name }) => name === ours)
  if (found === undefined) return undefined
  return found.isUnsupported ? { absent: found.why } : { failed: found.why }
}
