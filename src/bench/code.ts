import type { CodeOptions } from '../sandbox/index.js'
import { atMost, ratioOf } from './goals.js'
import type { Ground, Section } from './ground.js'
import { sampleInterleaved } from './sampling.js'
import { plainSpawn } from './subjects.js'

/** Beside a plain spawn of the interpreter; files are looked over before and after, as they are unless that is turned off. */
export const code: Section = {
  name: 'code',
  title: 'Code: 1+1 in a warm context of Python',
  isLong: false,
  async measure({ Sandbox, platform, rounds, signal }: Ground) {
    await using sandbox = await Sandbox.create({ platform })
    const add = async (options: CodeOptions): Promise<void> => {
      const { text } = await sandbox.code('1+1', options)
      if (text !== '2') throw new Error(`1+1 is ${text}`)
    }
    const plain = plainSpawn()
    const ours = { name: 'glovebox: 1+1 in a warm context', run: () => add({}) }
    const unlooking = { name: 'glovebox: 1+1 in a warm context, artifacts not looked for', run: () => add({ artifacts: false }) }
    const { rows, missing } = await sampleInterleaved([plain, ours, unlooking], { rounds: rounds * 2, warmups: 10, signal })
    const measured = ratioOf({ rows, ours: ours.name, beside: plain.name })
    return { rows, figures: [], missing, goals: [atMost('`1+1` in a warm context costs at most 0.25 × a plain spawn of python3', measured, 0.25)] }
  },
}
