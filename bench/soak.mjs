/**
 * Mixed random use of a real engine over bwrap, for minutes: programs that end in every way there is, files, terminals, pauses, forks, snapshots, code, pools, the way out, readers that leave, callers
 * that call off. Then nothing may be left of it: memory, descriptors, mounts, cgroups, ids, processes, files; and every act must have ended, once and as it had to.
 * `npm run soak [-- --minutes N] [--seed N] [--lanes N] [--out DIR]`; what is left, grows or ends otherwise makes it end with exit code 1.
 */
import { spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { environmentOf, missedGoals, renderGoal, versionOf, writeReport } from '../dist/bench/index.js'
import { Accounts, Told } from './soak/accounts.mjs'
import { openGround } from './soak/ground.mjs'
import { descriptorCount, holdings, leftOf, memoryHeld, memoryNow } from './soak/holdings.mjs'
import { workInLanes } from './soak/lanes.mjs'
import { chartOf, reportOf } from './soak/report.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const say = (line) => process.stderr.write(`… ${line}\n`)
/** Cells that wait for the next run go by themselves after half a minute. */
const patienceMs = 90_000

function options() {
  const { values } = parseArgs({
    options: {
      minutes: { type: 'string', default: '10' },
      seed: { type: 'string', default: `${randomInt(2 ** 31)}` },
      lanes: { type: 'string', default: '4' },
      out: { type: 'string', default: fileURLToPath(new URL('./results/', import.meta.url)) },
    },
  })
  if (!(Number(values.minutes) > 0)) throw new Error(`--minutes: expected a number above 0, got ${values.minutes}`)
  for (const name of ['seed', 'lanes']) if (!/^\d{1,9}\d?$/.test(values[name])) throw new Error(`--${name}: expected a whole number, got ${values[name]}`)
  return { minutes: Number(values.minutes), seed: Number(values.seed), lanes: Math.max(1, Number(values.lanes)), out: values.out }
}

/** For some time; the pool is there only meanwhile, so that what waits in it is not taken for something left. */
async function phase(ground, { lanes, untilMs }) {
  const isOver = () => performance.now() >= untilMs || stop.signal.aborted
  const pool = await ground.openPool()
  try {
    await workInLanes({ ...ground, pool }, { count: lanes, isOver })
  } finally {
    await pool.close()
  }
}

/** What is there once everything that goes by itself has gone: when nothing was less for a while. */
async function settled(ground, isQuiet) {
  const until = performance.now() + patienceMs
  for (;;) {
    const now = holdings(ground.snapshotDir)
    if (isQuiet(now) || performance.now() > until) return now
    await sleep(1000)
  }
}

/** Of the engine alone: no sandbox, so no process but what stays to make them. */
const hasNoCell = ({ traces }) => traces.ids.length === 0 && traces.cgroups.length === 0

function sampler(accounts, startedAt) {
  const samples = []
  const take = () => samples.push({ seconds: (performance.now() - startedAt) / 1000, acts: accounts.ended, descriptors: descriptorCount(), ...memoryNow() })
  take()
  const timer = setInterval(take, 5000)
  return { samples, end: () => (clearInterval(timer), take(), samples) }
}

async function soak(ground, { minutes, seed, lanes }) {
  const startedAt = performance.now()
  const totalMs = minutes * 60_000
  const warmMs = Math.min(15 * 60_000, totalMs / 4)
  const accounts = new Accounts()
  const told = new Told(ground.platform)
  const sampling = sampler(accounts, startedAt)
  const work = { ...ground, accounts, seed }
  await phase(work, { lanes, untilMs: startedAt + warmMs })
  const before = await settled(ground, hasNoCell)
  const warm = { ...(await memoryHeld()), seconds: (performance.now() - startedAt) / 1000 }
  say(`warm after ${Math.round(warm.seconds)} s and ${accounts.ended} acts`)
  await phase({ ...work, seed: seed + 1 }, { lanes, untilMs: performance.now() + totalMs - warmMs })
  const after = await settled(ground, (now) => leftOf(before, now).length === 0)
  const end = await memoryHeld()
  const seconds = (performance.now() - startedAt) / 1000
  await told.end()
  return { seed, minutes, lanes, warm, end, left: leftOf(before, after), accounts, told, open: accounts.open, samples: sampling.end(), seconds }
}

const stop = new AbortController()

function onSignal() {
  if (stop.signal.aborted) process.exit(130)
  stop.abort()
}

async function main() {
  for (const name of ['SIGINT', 'SIGTERM']) process.on(name, onSignal)
  const chosen = options()
  say(`soak: seed ${chosen.seed}, ${chosen.minutes} minutes, ${chosen.lanes} callers`)
  const ground = await openGround()
  const found = await soak(ground, chosen).finally(() => ground[Symbol.asyncDispose]())
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  const report = reportOf(found, environmentOf({ version, commit: versionOf('git', ['-C', root, 'rev-parse', '--short', 'HEAD']), peers: [] }))
  for (const path of writeReport(report, { folder: chosen.out, name: 'soak', chart: chartOf(found) })) say(path)
  for (const each of report.tables[0].goals) process.stdout.write(`${renderGoal(each)}\n`)
  process.stdout.write(`soak: ${found.accounts.ended} acts in ${Math.round(found.seconds)} s, seed ${found.seed}\n`)
  return missedGoals(report).length === 0 ? 0 : 1
}

/** What was freed goes back to the system at once, so that what is resident tells what is held, and not what was held at the busiest moment. Read when a process begins. */
const givesBack = { MALLOC_ARENA_MAX: '1', MALLOC_TRIM_THRESHOLD_: '65536', MALLOC_MMAP_THRESHOLD_: '65536' }

/** The same in a process that has this, and for root a mount namespace, so that what others mount meanwhile is not taken for ours; its exit code. */
async function again() {
  const apart = process.getuid?.() === 0 ? ['unshare', '--mount'] : []
  const [program, ...args] = [...apart, process.execPath, ...process.execArgv, ...process.argv.slice(1)]
  const child = spawn(program, args, { stdio: 'inherit', env: { ...process.env, ...givesBack } })
  for (const name of ['SIGINT', 'SIGTERM']) process.on(name, () => child.kill(name))
  const [code] = await once(child, 'exit')
  return code ?? 2
}

try {
  process.exitCode = process.env.MALLOC_ARENA_MAX === undefined ? await again() : await main()
} catch (error) {
  process.stderr.write(`${error.stack}\n`)
  process.exitCode = 2
}
