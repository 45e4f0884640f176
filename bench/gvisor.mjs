import { sampleInterleaved } from '../dist/bench/index.js'
import { coldRun, containerSection, samplePool } from './containers.mjs'
import { openOci } from './peers/oci.mjs'

const driver = 'oci:runsc'

/** What sandboxes of gVisor cost, beside that by itself. There is no goal: what a program costs there is gVisor's. */
export const gvisor = containerSection({
  name: 'gvisor',
  title: 'gVisor: cells that are sandboxes of runsc',
  goals: [],
  open: (prepared) => openOci({ ...prepared, runtime: 'runsc', flags: ['--platform=ptrace', '--network=none'], name: 'bare runsc run, ptrace' }),
  async compare(bare, ground) {
    const platform = ground.createPlatform()
    try {
      return await compare(bare, { ...ground, platform })
    } finally {
      await platform[Symbol.asyncDispose]()
    }
  },
})

async function compare(bare, ground) {
  const { Sandbox, platform, rounds, signal } = ground
  const probe = (await platform.probe()).find((each) => each.driver === driver)
  if (!probe?.available) throw new Error(`there is no ${driver} here: ${probe?.obstacles.map(({ why }) => why).join('; ') ?? 'glovebox doctor'}`)
  const cold = await sampleInterleaved([bare, coldRun(ground, driver)], { rounds: Math.ceil(rounds / 4), pauseMs: 10, signal })
  const pooled = await samplePool({ ...ground, rounds: Math.ceil(rounds / 8) }, driver)
  const sandbox = await Sandbox.create({ platform, driver })
  try {
    const warm = { name: `glovebox: true in a running ${driver} sandbox`, run: () => Promise.resolve(sandbox.run(['/usr/bin/true'])) }
    const third = await sampleInterleaved([warm], { rounds, pauseMs: 10, signal })
    const samples = [cold, pooled, third]
    return { rows: samples.flatMap(({ rows }) => rows), figures: [], missing: samples.flatMap(({ missing }) => missing), goals: [] }
  } finally {
    await sandbox.close()
  }
}
