import { execFile } from 'node:child_process'
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import os from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { atMost, expectOne, python, ratioOf, sampleInterleaved } from '../dist/bench/index.js'
import { openOci } from './peers/oci.mjs'
import { prepareContainers } from './peers/peers.mjs'

const execute = promisify(execFile)
const coldText = 'create + python3 + close with oci:runc costs at most 1.2 × bare runc run'
const poolText = 'a fresh python3 from a pool of oci:runc cells costs at most 1.0 × a plain spawn'
const bareName = 'bare runc run, no filter'
const plainName = 'plain spawn of python3'

/** What cells cost that a container runtime starts, beside that runtime by itself. */
export const oci = {
  name: 'oci',
  title: 'OCI runtimes: cells that runc and crun start',
  isLong: false,
  async measure(ground) {
    const folder = realpathSync(mkdtempSync(join(os.tmpdir(), 'glovebox-bench-oci-')))
    const platform = ground.createPlatform()
    try {
      const bare = await openOci({ ...(await prepareContainers({ folder, signal: ground.signal })), folder, runtime: 'runc', flags: [], name: bareName })
      try {
        return await compare(bare, { ...ground, platform })
      } finally {
        await bare[Symbol.asyncDispose]()
      }
    } catch (error) {
      ground.signal.throwIfAborted()
      const why = error.message.trim().split('\n').at(-1).slice(0, 300)
      return { rows: [], figures: [], missing: [{ name: 'oci', why }], goals: [coldText, poolText].map((text) => atMost(text, { absent: why }, 1)) }
    } finally {
      await platform[Symbol.asyncDispose]()
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
    }
  },
}

async function compare(bare, { Sandbox, SandboxPool, platform, rounds, signal }) {
  const found = (await platform.probe()).filter(({ driver, available }) => driver.startsWith('oci:') && available).map(({ driver }) => driver)
  if (!found.includes('oci:runc')) throw new Error('there is no oci:runc here: glovebox doctor')
  const nameOf = (driver) => `glovebox: create + python3 + close, ${driver}`
  const cold = found.map((driver) => ({ name: nameOf(driver), run: () => once(() => Sandbox.create({ platform, driver })) }))
  const pool = await SandboxPool.create({ platform, driver: 'oci:runc', fresh: 'liner', size: 2 })
  const pooled = { name: 'glovebox: python3 from a pool of oci:runc cells, fresh liner', run: async () => expectOne((await pool.run(python)).stdout) }
  const plain = { name: plainName, run: async () => expectOne((await execute(python[0], python.slice(1))).stdout) }
  try {
    const first = await sampleInterleaved([bare, ...cold], { rounds: Math.ceil(rounds / 2), pauseMs: 10, signal })
    const second = await sampleInterleaved([plain, pooled], { rounds: rounds * 2, pauseMs: 10, signal })
    return {
      rows: [...first.rows, ...second.rows],
      figures: [],
      missing: [...first.missing, ...second.missing],
      goals: [
        atMost(coldText, ratioOf({ rows: first.rows, ours: nameOf('oci:runc'), beside: bareName }), 1.2),
        atMost(poolText, ratioOf({ rows: second.rows, ours: pooled.name, beside: plainName }), 1),
      ],
    }
  } finally {
    await pool.close()
  }
}

async function once(create) {
  const sandbox = await create()
  try {
    expectOne((await sandbox.run(python)).stdout)
  } finally {
    await sandbox.close()
  }
}
