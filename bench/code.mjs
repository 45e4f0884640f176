import { Sandbox } from '../dist/index.js'
import { sampleInterleaved, withRatios } from './sampling.mjs'

/** `1+1` in a context that is there, beside a plain spawn of the interpreter; files are looked over before and after, as they are unless that is turned off. */
export async function measureCode(platform, { plain, rounds }) {
  const sandbox = await Sandbox.create({ platform })
  const execute = async (options) => {
    const { text } = await sandbox.code('1+1', options)
    if (text !== '2') throw new Error(`1+1 is ${text}`)
  }
  const subjects = [
    plain,
    { name: 'glovebox: 1+1 in a warm context', run: () => execute({}) },
    { name: 'glovebox: 1+1 in a warm context, artifacts not looked for', run: () => execute({ artifacts: false }) },
  ]
  const rows = withRatios(await sampleInterleaved(subjects, { rounds: rounds * 2, warmups: 10 }))
  await sandbox.close()
  const measured = rows[1].ratio
  return {
    title: 'Code: 1+1 in a warm context of Python',
    rows,
    goals: [{ text: '`1+1` in a warm context costs at most 0.25 × a plain spawn of python3', measured, met: measured <= 0.25 }],
  }
}
