import { atMost, ratioOf } from './goals.js'
import type { Ground, Section } from './ground.js'
import { sampleInterleaved, sampleSeries } from './sampling.js'
import { runPlainly } from './subjects.js'

const program = ['/usr/bin/true']

export const warm: Section = {
  name: 'warm',
  title: 'Warm: a command in a running sandbox',
  isLong: false,
  async measure({ Sandbox, platform, rounds, signal }: Ground) {
    await using sandbox = await Sandbox.create({ platform })
    const plain = { name: 'plain spawn of true', run: () => runPlainly(program) }
    const ours = { name: 'glovebox: true in a running sandbox', run: () => Promise.resolve(sandbox.run(program)) }
    const { rows, missing } = await sampleInterleaved([plain, ours], { rounds: rounds * 4, pauseMs: 10, signal })
    const series = await sampleSeries([plain, ours], { rounds: Math.ceil(rounds / 4), length: 40, signal })
    const measured = ratioOf({ rows, ours: ours.name, beside: plain.name })
    return {
      rows: [...rows, ...series.rows],
      figures: [],
      missing: [...missing, ...series.missing],
      goals: [atMost('`true` in a running sandbox costs at most 1.0 × a plain spawn', measured, 1)],
    }
  },
}
