/** What the sections about cells of container runtimes and engines have in common. */
import { execFile } from 'node:child_process'
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import os from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { atMost, expectOne, python, ratioOf, sampleInterleaved } from '../dist/bench/index.js'
import { prepareContainers } from './peers/peers.mjs'

const execute = promisify(execFile)
const poolSize = 2
const fillPatienceMs = 30_000
const plain = { name: 'plain spawn of python3', run: async () => expectOne((await execute(python[0], python.slice(1))).stdout) }

/**
 * A section in a folder of its own. `open` makes ready what it is measured beside, which is disposed of afterwards; where that cannot be had, its rows are missing and
 * its goals absent, each with the reason.
 */
export function containerSection({ name, title, goals, open, compare }) {
  return {
    name,
    title,
    isLong: false,
    async measure(ground) {
      const { signal } = ground
      const folder = realpathSync(mkdtempSync(join(os.tmpdir(), `glovebox-bench-${name}-`)))
      try {
        const peer = await open({ ...(await prepareContainers({ folder, signal })), folder, signal })
        try {
          return await compare(peer, ground)
        } finally {
          await peer[Symbol.asyncDispose]()
        }
      } catch (error) {
        signal.throwIfAborted()
        const why = error.message.trim().split('\n').at(-1).slice(0, 300)
        return { rows: [], figures: [], missing: [{ name, why }], goals: goals.map((text) => atMost(text, { absent: why }, 1)) }
      } finally {
        rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
      }
    },
  }
}

/** A sandbox of its own for one run, cold. */
export function coldRun({ Sandbox, platform }, driver) {
  const run = async () => {
    const sandbox = await Sandbox.create({ platform, driver })
    try {
      expectOne((await sandbox.run(python)).stdout)
    } finally {
      await sandbox.close()
    }
  }
  return { name: `glovebox: create + python3 + close, ${driver}`, run }
}

/** The same from a pool, as fresh as the driver offers it, beside a plain spawn; with its goal where one is given. */
export async function samplePool({ SandboxPool, platform, rounds, signal }, driver, goal) {
  const probe = (await platform.probe()).find((each) => each.driver === driver)
  const fresh = probe.features.liners.available ? 'liner' : 'cell'
  const pool = await SandboxPool.create({ platform, driver, fresh, size: poolSize })
  const pooled = {
    name: `glovebox: python3 from a pool of ${driver} cells, fresh ${fresh}`,
    run: async () => expectOne((await pool.run(python)).stdout),
    after: () => untilFull(pool),
  }
  try {
    await untilFull(pool)
    const found = await sampleInterleaved([plain, pooled], { rounds: rounds * 2, pauseMs: 10, signal })
    if (goal === undefined) return found
    return { ...found, goal: atMost(goal, ratioOf({ rows: found.rows, ours: pooled.name, beside: plain.name }), 1) }
  } finally {
    await pool.close()
  }
}

/** A fresh cell that has to be made first is a cold one. */
async function untilFull(pool) {
  const until = performance.now() + fillPatienceMs
  for (let status = await pool.status(); status.available < poolSize || status.total > status.available; status = await pool.status()) {
    if (performance.now() > until) throw new Error(`the pool did not fill up within ${fillPatienceMs / 1000} s`)
    await sleep(2)
  }
}
