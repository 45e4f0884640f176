import { atMost, ratioOf, sampleInterleaved } from '../dist/bench/index.js'
import { coldRun, containerSection, samplePool } from './containers.mjs'
import { openOci } from './peers/oci.mjs'

const coldText = 'create + python3 + close with oci:runc costs at most 1.2 × bare runc run'
const poolText = 'a fresh python3 from a pool of oci:runc cells costs at most 1.0 × a plain spawn'

/** Times that the engine, which runs in this process, makes such cells before any is timed, as in the section `cold`. */
const heating = 60

/** What cells cost that a container runtime starts, beside that runtime by itself. */
export const oci = containerSection({
  name: 'oci',
  title: 'OCI runtimes: cells that runc and crun start',
  goals: [coldText, poolText],
  open: (prepared) => openOci({ ...prepared, runtime: 'runc', flags: [], name: 'bare runc run, no filter' }),
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
  const { platform, rounds, signal } = ground
  const found = (await platform.probe()).filter(({ driver, available }) => ['oci:crun', 'oci:runc'].includes(driver) && available).map(({ driver }) => driver)
  if (!found.includes('oci:runc')) throw new Error('there is no oci:runc here: glovebox doctor')
  const cold = found.map((driver) => coldRun(ground, driver))
  await sampleInterleaved(cold, { rounds: 0, warmups: heating, signal })
  const first = await sampleInterleaved([bare, ...cold], { rounds, pauseMs: 10, signal })
  const second = await samplePool(ground, 'oci:runc', poolText)
  return {
    rows: [...first.rows, ...second.rows],
    figures: [],
    missing: [...first.missing, ...second.missing],
    goals: [atMost(coldText, ratioOf({ rows: first.rows, ours: coldRun(ground, 'oci:runc').name, beside: bare.name }), 1.2), second.goal],
  }
}
