import { atMost, sampleInterleaved } from '../dist/bench/index.js'
import { createUninspectedPlatform } from '../dist/compose.js'

const text = 'looking at a cell adds at most 1.5 ms to create, at the median'

/** What it costs to read from the kernel what holds: the same acts on a platform that does not look. */
export const price = {
  name: 'price',
  title: 'The price of looking: create, run, receipt',
  isLong: false,
  async measure({ Sandbox, platform, rounds, signal }) {
    const unlooking = createUninspectedPlatform()
    const standing = await Promise.all([unlooking, platform].map((each) => Sandbox.create({ platform: each })))
    try {
      const creates = await sampleInterleaved(
        [
          { name: 'create, nothing looked at', run: () => Sandbox.create({ platform: unlooking }), after: (sandbox) => sandbox.close() },
          { name: 'create, the cell looked at', run: () => Sandbox.create({ platform }), after: (sandbox) => sandbox.close() },
        ],
        { rounds: rounds * 3, signal },
      )
      const runs = await sampleInterleaved(
        [
          { name: 'true in a running sandbox, nothing looked at', run: () => standing[0].run(['/usr/bin/true']) },
          { name: 'true in a running sandbox, each looked at', run: () => standing[1].run(['/usr/bin/true']) },
          { name: 'a receipt of a running sandbox', run: () => standing[1].receipt() },
        ],
        { rounds: rounds * 4, signal },
      )
      const [without, looked] = creates.rows
      const added = looked === undefined ? { failed: 'create with looking failed' } : looked.p50 - without.p50
      return {
        rows: [...creates.rows, ...runs.rows],
        figures: [],
        missing: [...creates.missing, ...runs.missing],
        goals: [atMost(text, added, 1.5)],
      }
    } finally {
      await Promise.all(standing.map((sandbox) => sandbox.close()))
      await unlooking[Symbol.asyncDispose]()
    }
  },
}
