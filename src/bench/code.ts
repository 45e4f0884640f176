import type { CodeOptions } from '../sandbox/index.js'
import { atMost, ratioOf } from './goals.js'
import type { Ground, Section } from './ground.js'
import { noPools, openWarmPool, type WarmPool } from './pool-door.js'
import type { Missing } from './report.js'
import { missingOf, sampleInterleaved, type Subject } from './sampling.js'
import { plainSpawn } from './subjects.js'

/** Beside a plain spawn of the interpreter; files are looked over before and after, as they are unless that is turned off. */
export const code: Section = {
  name: 'code',
  title: 'Code: 1+1 in a warm context of Python, and in sandboxes of its own',
  isLong: false,
  async measure(ground: Ground) {
    const { Sandbox, platform, rounds, signal } = ground
    await using sandbox = await Sandbox.create({ platform })
    const add = async (options: CodeOptions): Promise<void> => {
      const { text } = await sandbox.code('1+1', options)
      if (text !== '2') throw new Error(`1+1 is ${text}`)
    }
    const plain = plainSpawn()
    const ours = { name: 'glovebox: 1+1 in a warm context', run: () => add({}) }
    const unlooking = { name: 'glovebox: 1+1 in a warm context, artifacts not looked for', run: () => add({ artifacts: false }) }
    await using shots = await openCodeShots(ground)
    const warm = await sampleInterleaved([plain, ours, unlooking], { rounds: rounds * 2, warmups: 10, signal })
    const once = await sampleInterleaved([{ ...plain, name: `${plain.name}, beside one-shots` }, ...shots.subjects], { rounds, warmups: 2, pauseMs: 5, signal })
    const [rows, missing] = [
      [...warm.rows, ...once.rows],
      [...warm.missing, ...shots.missing, ...once.missing],
    ]
    const measured = ratioOf({ rows, ours: ours.name, beside: plain.name })
    return { rows, figures: [], missing, goals: [atMost('`1+1` in a warm context costs at most 0.25 × a plain spawn of python3', measured, 0.25)] }
  },
}

interface CodeShots extends AsyncDisposable {
  readonly subjects: readonly Subject[]
  readonly missing: readonly Missing[]
}

const interpreters = [
  { language: 'python', template: 'python', called: 'Python' },
  { language: 'javascript', template: 'node', called: 'Node' },
] as const

/** In a sandbox of its own: one in which the interpreter waited, one that waited without, and one that is created, with nothing ahead. */
async function openCodeShots(ground: Ground): Promise<CodeShots> {
  const { Sandbox, platform } = ground
  const pools: WarmPool[] = []
  const subjects: Subject[] = []
  const missing: Missing[] = []
  for (const { language, template, called } of interpreters) {
    const name = `glovebox: one-shot 1+1 in ${called}`
    const expectTwo = (text: string | undefined): void => {
      if (text !== '2') throw new Error(`1+1 is ${text}`)
    }
    for (const [state, more] of [
      ['pool warm', { language }],
      ['pool warm, interpreter not begun', {}],
    ] as const) {
      try {
        const pool = await openWarmPool(ground, { fresh: 'cell', template, size: 1, ...more })
        if (pool === undefined) missing.push({ name: `${name}, ${state}`, why: noPools, isUnsupported: true })
        else {
          pools.push(pool)
          subjects.push({ name: `${name}, ${state}`, run: async () => expectTwo(await pool.code('1+1', language)), after: () => pool.settle() })
        }
      } catch (error) {
        missing.push(missingOf(`${name}, ${state}`, error))
      }
    }
    const cold = async (): Promise<void> => {
      await using sandbox = await Sandbox.create({ platform, template })
      expectTwo((await sandbox.code('1+1', { language })).text)
    }
    subjects.push({ name: `${name}, cold`, run: cold })
  }
  return {
    subjects,
    missing,
    [Symbol.asyncDispose]: async () => {
      for (const pool of pools) await pool[Symbol.asyncDispose]()
    },
  }
}
