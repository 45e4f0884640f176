import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { createPlatform, Sandbox } from '../../src/index.js'
import { sweepMachine } from '../../src/recovery.js'
import { isDeep, randomOf, seed } from '../server/random.js'
import { isGone, processesOf, tracesOf } from '../server/started-server.js'
import { type Bundled, bundleScript } from '../sys/run-script.js'
import { leftBehindBy } from './left-behind.js'

/** `GLOVEBOX_KILLS` sets another number, `GLOVEBOX_SEED` other moments. */
const kills = Number(process.env.GLOVEBOX_KILLS ?? (isDeep ? 100 : 4))
const earlyMs = 1000
const longestMs = 1500
const random = randomOf(seed)
/** Told apart from everything else on this machine. */
const marker = String(process.pid) + String(Date.now() % 1_000_000)

const probing = createPlatform()
const drivers = (await probing.probe()).filter(({ driver, available }) => available && ['bwrap', 'oci:runc'].includes(driver)).map(({ driver }) => driver)
await probing[Symbol.asyncDispose]()

let home: string
let load: Bundled
beforeAll(async () => {
  load = await bundleScript(new URL('programs/mixed-load.ts', import.meta.url))
  home = realpathSync(mkdtempSync(join(tmpdir(), 'gbx-load-')))
  for (const name of ['tmp', 'snapshots', 'cache', 'state']) mkdirSync(join(home, name), { mode: 0o700 })
  vi.stubEnv('TMPDIR', join(home, 'tmp'))
  vi.stubEnv('GLOVEBOX_CACHE_DIR', join(home, 'cache'))
  vi.stubEnv('GLOVEBOX_STATE_DIR', join(home, 'state'))
  vi.stubEnv('GLOVEBOX_SNAPSHOT_DIR', join(home, 'snapshots'))
})
afterAll(() => {
  load[Symbol.dispose]()
  vi.unstubAllEnvs()
  rmSync(home, { recursive: true, force: true })
})

interface Killed {
  readonly pid: number
  readonly processes: readonly number[]
  readonly traces: number
  readonly acts: readonly string[]
  readonly failures: string
}

async function killUnderLoad(driver: string, ofThis: number): Promise<Killed> {
  const child = spawn(process.execPath, [load.path, home, driver, String(ofThis), marker], { stdio: ['ignore', 'pipe', 'pipe'] })
  const pid = child.pid as number
  const [printed, failures, exited] = [text(child.stdout), text(child.stderr), once(child, 'exit')]
  // Mostly with everything under way, however long that takes here; some while it starts.
  const isEarly = random() < 0.2
  if (!isEarly) await Promise.race([once(child.stdout, 'readable'), exited])
  await sleep(random() * (isEarly ? earlyMs : longestMs))
  const processes = processesOf(pid, marker)
  const traces = tracesOf(pid, { folder: home, socket: '' }).length
  child.kill('SIGKILL')
  await exited
  // A wave of what it was just starting comes after it.
  const late = processesOf(pid, marker)
  return { pid, traces, processes: [...new Set([...processes, ...late])], acts: (await printed).split('\n').filter(Boolean), failures: await failures }
}

/** Whoever starts next, and whoever only sweeps, leave it alike. */
async function startNext(driver: string, isStart: boolean): Promise<void> {
  if (!isStart) return sweepMachine()
  await using platform = createPlatform({ snapshotDir: join(home, 'snapshots') })
  await using sandbox = await Sandbox.create({ platform, driver })
  expect((await sandbox.run(['echo', 'again'])).stdout).toBe('again\n')
}

test(`an engine that is killed at ${kills} moments of mixed load leaves nothing after one start of the next`, { timeout: 1_500_000 }, async ({ skip }) => {
  if (drivers.length === 0) skip('neither bwrap nor oci:runc is available here')
  const acts = new Map<string, number>()
  let [processes, traces] = [0, 0]
  for (let kill = 1; kill <= kills; kill += 1) {
    const driver = drivers[kill % drivers.length] as string
    const killed = await killUnderLoad(driver, seed + kill)
    const message = `after kill ${kill} of seed ${seed}, ${driver}, process ${killed.pid}`
    expect(killed.failures, message).toBe('')
    for (const act of killed.acts) acts.set(act, (acts.get(act) ?? 0) + 1)
    processes += killed.processes.length
    traces += killed.traces
    await startNext(driver, kill % 2 === 1)
    await expect.poll(() => killed.processes.filter((pid) => !isGone(pid)), { message }).toEqual([])
    expect(leftBehindBy(killed.pid, home), message).toEqual([])
  }
  // There was something to be left.
  expect([processes > kills, traces > kills, [...acts.values()].reduce((sum, count) => sum + count, 0) > kills]).toEqual([true, true, true])
  if (kills > 4)
    process.stderr.write(`${kills} kills: ${processes} processes and ${traces} traces were there; acts: ${JSON.stringify(Object.fromEntries(acts))}\n`)
})
