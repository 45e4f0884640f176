import { execFile } from 'node:child_process'
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import os from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { atMost, expectOne, python, ratioOf, sampleInterleaved } from '../dist/bench/index.js'
import { openDocker } from './peers/docker.mjs'
import { prepareContainers } from './peers/peers.mjs'

const execute = promisify(execFile)
const poolText = 'a fresh python3 from a pool of docker cells costs at most 1.0 × a plain spawn'
const warmText = '`true` in a running docker sandbox costs at most 0.2 × an exec by the Docker API'

/** What cells in containers cost, in a daemon of the benchmark's own, beside a plain spawn and beside an exec by the same daemon. */
export const docker = {
  name: 'docker',
  title: 'Docker: cells in containers',
  isLong: false,
  async measure(ground) {
    const folder = realpathSync(mkdtempSync(join(os.tmpdir(), 'glovebox-bench-docker-')))
    try {
      const engine = await open(folder, ground)
      if ('why' in engine)
        return {
          rows: [],
          figures: [],
          missing: [{ name: 'docker', ...engine }],
          goals: [poolText, warmText].map((text) => atMost(text, { absent: engine.why }, 1)),
        }
      try {
        return await compare(engine, ground)
      } finally {
        await engine[Symbol.asyncDispose]()
      }
    } finally {
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
    }
  },
}

async function open(folder, { signal }) {
  try {
    return await openDocker({ ...(await prepareContainers({ folder, signal })), folder, signal })
  } catch (error) {
    signal.throwIfAborted()
    return { why: error.message.trim().split('\n').at(-1).slice(0, 300) }
  }
}

async function compare(engine, { Sandbox, SandboxPool, createPlatform, rounds, signal }) {
  const before = process.env.DOCKER_HOST
  process.env.DOCKER_HOST = engine.host
  const platform = createPlatform()
  const exec = await engine.execTrue()
  try {
    const [probe] = (await platform.probe()).filter(({ driver }) => driver === 'docker')
    const fresh = probe.features.liners.available ? 'liner' : 'cell'
    const pool = await SandboxPool.create({ platform, driver: 'docker', fresh, size: 2 })
    const sandbox = await Sandbox.create({ platform, driver: 'docker' })
    const ours = { name: `glovebox: python3 from a pool of docker cells, fresh ${fresh}`, run: async () => expectOne((await pool.run(python)).stdout) }
    const plain = { name: 'plain spawn of python3', run: async () => expectOne((await execute(python[0], python.slice(1))).stdout) }
    const warm = { name: 'glovebox: true in a running docker sandbox', run: () => Promise.resolve(sandbox.run(['/usr/bin/true'])) }
    const cold = {
      name: 'glovebox: create a docker sandbox',
      run: () => Sandbox.create({ platform, driver: 'docker' }),
      after: (made) => made.close(),
    }
    const first = await sampleInterleaved([plain, ours], { rounds: rounds * 2, pauseMs: 10, signal })
    const second = await sampleInterleaved([exec, warm], { rounds, pauseMs: 10, signal })
    const third = await sampleInterleaved([cold], { rounds: Math.ceil(rounds / 4), signal })
    await sandbox.close()
    await pool.close()
    return {
      rows: [...first.rows, ...second.rows, ...third.rows],
      figures: [],
      missing: [...first.missing, ...second.missing, ...third.missing],
      goals: [
        atMost(poolText, ratioOf({ rows: first.rows, ours: ours.name, beside: plain.name }), 1),
        atMost(warmText, ratioOf({ rows: second.rows, ours: warm.name, beside: exec.name }), 0.2),
      ],
    }
  } finally {
    await exec[Symbol.asyncDispose]()
    await platform[Symbol.asyncDispose]()
    if (before === undefined) delete process.env.DOCKER_HOST
    else process.env.DOCKER_HOST = before
  }
}
