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
  const samples = [pooled, second, third]
  return {
    rows: samples.flatMap(({ rows }) => rows),
    figures: [],
    missing: samples.flatMap(({ missing }) => missing),
    goals: [pooled.goal, atMost(warmText, ratioOf({ rows: second.rows, ours: warm.name, beside: exec.name }), 0.2)],
  }
}
