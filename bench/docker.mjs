import { atMost, ratioOf, sampleInterleaved } from '../dist/bench/index.js'
import { coldRun, containerSection, samplePool } from './containers.mjs'
import { openDocker } from './peers/docker.mjs'

const poolText = 'a fresh python3 from a pool of docker cells costs at most 1.0 × a plain spawn'
const warmText = '`true` in a running docker sandbox costs at most 0.2 × an exec by the Docker API'

/** What cells in containers cost, in a daemon of the benchmark's own, beside what the same daemon takes by its API and its CLI. */
export const docker = containerSection({
  name: 'docker',
  title: 'Docker: cells in containers',
  goals: [poolText, warmText],
  open: openDocker,
  async compare(engine, ground) {
    const before = process.env.DOCKER_HOST
    process.env.DOCKER_HOST = engine.host
    const platform = ground.createPlatform()
    const exec = await engine.execTrue()
    try {
      return await compare({ engine, exec }, { ...ground, platform })
    } finally {
      await exec[Symbol.asyncDispose]()
      await platform[Symbol.asyncDispose]()
      if (before === undefined) delete process.env.DOCKER_HOST
      else process.env.DOCKER_HOST = before
    }
  },
})

async function compare({ engine, exec }, ground) {
  const { Sandbox, platform, rounds, signal } = ground
  const pooled = await samplePool(ground, 'docker', poolText)
  const sandbox = await Sandbox.create({ platform, driver: 'docker' })
  const warm = { name: 'glovebox: true in a running docker sandbox', run: () => Promise.resolve(sandbox.run(['/usr/bin/true'])) }
  const second = await sampleInterleaved([exec, warm], { rounds, pauseMs: 10, signal })
  await sandbox.close()
  const third = await sampleInterleaved([...engine.peers, coldRun(ground, 'docker')], { rounds: Math.ceil(rounds / 4), pauseMs: 10, signal })
  const samples = [pooled, second, third, await sampleGvisor(engine, ground)]
  return {
    rows: samples.flatMap(({ rows }) => rows),
    figures: [],
    missing: samples.flatMap(({ missing }) => missing),
    goals: [pooled.goal, atMost(warmText, ratioOf({ rows: second.rows, ours: warm.name, beside: exec.name }), 0.2)],
  }
}

/** The same engine with gVisor as the runtime. There is no goal: what a program costs there is gVisor's; and fewer rounds, since a cell takes half a second. */
async function sampleGvisor(engine, ground) {
  const driver = 'docker:runsc'
  const probe = (await ground.platform.probe()).find((each) => each.driver === driver)
  if (!probe?.available) return { rows: [], missing: [{ name: driver, why: probe?.obstacles.map(({ why }) => why).join('; ') ?? 'it is not known here' }] }
  const cold = await sampleInterleaved([engine.peers[0], coldRun(ground, driver)], { rounds: Math.ceil(ground.rounds / 4), pauseMs: 10, signal: ground.signal })
  const pooled = await samplePool({ ...ground, rounds: Math.ceil(ground.rounds / 8) }, driver)
  // What they were measured beside, the API and a plain spawn, has its rows already.
  return { rows: [...cold.rows, ...pooled.rows].filter(({ name }) => name.includes(driver)), missing: [...cold.missing, ...pooled.missing] }
}
