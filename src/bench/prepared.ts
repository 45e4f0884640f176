import { SandboxError } from '../contract/errors.js'
import type { Sandbox } from '../sandbox/index.js'
import { atMost, ratioOf } from './goals.js'
import type { Ground, Section } from './ground.js'
import { absence } from './one-shot.js'
import { noPools, openWarmPool, type WarmPool } from './pool-door.js'
import type { Missing, Table } from './report.js'
import { missingOf, sampleInterleaved } from './sampling.js'
import { expectOne } from './subjects.js'

const script = ['/usr/bin/python3', '-c', 'import pandas; print(1)']
const coldName = 'import pandas, by a python3 started for it'
const oursName = 'glovebox: one-shot with pandas ready, fresh liner'
const goal = 'pandas ready in a fresh liner costs at most 0.03 × a cold import'

/** What a program costs whose library was imported ahead, beside one that imports it: the files are those of the template `data` for both. */
export const prepared: Section = {
  name: 'prepared',
  title: 'Prepared: pandas imported ahead',
  isLong: false,
  async measure(ground: Ground) {
    const opened = await open(ground)
    if ('why' in opened) return { rows: [], figures: [], missing: [opened], goals: [atMost(goal, absence([opened], oursName) ?? Number.NaN, 0.03)] }
    try {
      return await compare(opened, ground)
    } finally {
      await opened.pool[Symbol.asyncDispose]()
      await opened.sandbox.close()
    }
  },
}

interface Opened {
  readonly sandbox: Sandbox
  readonly pool: WarmPool
}

/** Or why not: the template was not built, or there are no liners. */
async function open(ground: Ground): Promise<Opened | Missing> {
  const { Sandbox, platform } = ground
  let sandbox: Sandbox | undefined
  try {
    // A whole processor, so that the cold import is not slowed by a limit that a plain one would not have.
    sandbox = await Sandbox.create({ platform, template: 'data', limits: { cpus: 1 } })
    const pool = await openWarmPool(ground, { fresh: 'liner', template: 'data', size: 1, imports: ['pandas'] })
    if (pool !== undefined) return { sandbox, pool }
    await sandbox.close()
    return { name: oursName, why: noPools, isUnsupported: true }
  } catch (error) {
    await sandbox?.close()
    const missing = missingOf(oursName, error)
    return error instanceof SandboxError && error.hint?.includes('template build')
      ? { ...missing, why: `${missing.why}; ${error.hint}`, isUnsupported: true }
      : missing
  }
}

async function compare({ sandbox, pool }: Opened, { rounds, signal }: Ground): Promise<Omit<Table, 'section' | 'title'>> {
  const subjects = [
    { name: coldName, run: async () => expectOne((await sandbox.run(script)).stdout) },
    { name: oursName, run: async () => expectOne(await pool.run(script)), after: () => pool.settle() },
  ]
  const { rows, missing } = await sampleInterleaved(subjects, { rounds: Math.ceil(rounds / 2), signal, pauseMs: 5 })
  const measured = absence(missing, oursName) ?? ratioOf({ rows, ours: oursName, beside: coldName })
  return { rows, figures: [], missing, goals: [atMost(goal, measured, 0.03)] }
}
