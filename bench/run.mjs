/**
 * Side by side, in one run: what a sandboxed run costs beside a plain spawn and beside the peers found on this machine.
 * `npm run bench [-- --rounds N]`. Figures go to bench/results/; a missed goal ends it with exit code 1.
 */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs, promisify } from 'node:util'
import { createUninspectedPlatform } from '../dist/compose.js'
import { createPlatform, Sandbox } from '../dist/index.js'
import { measureCode } from './code.mjs'
import { environment, writeReport } from './report.mjs'
import { sampleInterleaved, sampleSeries, withRatios } from './sampling.mjs'
import { measureTransfers } from './transfers.mjs'

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '60' } } })
const rounds = Number(values.rounds)
const execute = promisify(execFile)
const python = ['/usr/bin/python3', '-c', 'print(1)']
const cli = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url))

async function expectOne(promise) {
  const { stdout } = await promise
  if (stdout !== '1\n') throw new Error(`a benchmarked run printed ${JSON.stringify(stdout)}`)
}

const plain = { name: 'plain spawn of python3', run: () => expectOne(execute(python[0], python.slice(1))) }

function bareBwrap() {
  const links = ['bin', 'sbin', 'lib', 'lib64'].filter((name) => existsSync(`/usr/${name}`)).flatMap((name) => ['--symlink', `usr/${name}`, `/${name}`])
  const flags = ['--unshare-all', '--die-with-parent', '--ro-bind', '/usr', '/usr', ...links, '--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp']
  return { name: 'bwrap, no filter, no limits', run: () => expectOne(execute('bwrap', [...flags, '--', ...python])) }
}

async function cold(platform) {
  const sandboxed = {
    name: 'glovebox: create + python3 + close',
    async run() {
      const sandbox = await Sandbox.create({ platform, template: 'python' })
      try {
        await expectOne(sandbox.run(python))
      } finally {
        await sandbox.close()
      }
    },
  }
  const viaCli = { name: 'glovebox run (CLI, end to end)', run: () => expectOne(execute(process.execPath, [cli, 'run', '-q', '--', ...python])) }
  const rows = withRatios(await sampleInterleaved([plain, bareBwrap(), sandboxed, viaCli], { rounds }))
  const measured = rows[2].ratio
  return {
    title: 'Cold: run hello in Python, get its output',
    rows,
    goals: [{ text: 'create + python3 + close costs at most 2.5 × a plain spawn', measured, met: measured <= 2.5 }],
  }
}

async function warm(platform) {
  const sandbox = await Sandbox.create({ platform })
  const subjects = [
    { name: 'plain spawn of true', run: () => execute('/usr/bin/true') },
    { name: 'glovebox: true in a running sandbox', run: () => sandbox.run(['/usr/bin/true']) },
  ]
  const rows = withRatios(await sampleInterleaved(subjects, { rounds: rounds * 4, pauseMs: 10 }))
  const series = withRatios(await sampleSeries(subjects, { rounds: Math.ceil(rounds / 4), length: 40 }))
  await sandbox.close()
  const measured = rows[1].ratio
  return {
    title: 'Warm: a command in a running sandbox',
    rows: [...rows, ...series],
    goals: [{ text: '`true` in a running sandbox costs at most 1.0 × a plain spawn', measured, met: measured <= 1 }],
  }
}

/** What it costs to read from the kernel what holds: the same acts on a platform that does not look. */
async function price(platform) {
  const unlooking = createUninspectedPlatform()
  const first = await Promise.all([unlooking, platform].map((each) => Sandbox.create({ platform: each })))
  const createOnly = await sampleInterleaved(
    [
      { name: 'create, nothing looked at', run: () => Sandbox.create({ platform: unlooking }), after: (sandbox) => sandbox.close() },
      { name: 'create, the cell looked at', run: () => Sandbox.create({ platform }), after: (sandbox) => sandbox.close() },
    ],
    { rounds: rounds * 3 },
  )
  const runs = await sampleInterleaved(
    [
      { name: 'true in a running sandbox, nothing looked at', run: () => first[0].run(['/usr/bin/true']) },
      { name: 'true in a running sandbox, each looked at', run: () => first[1].run(['/usr/bin/true']) },
      { name: 'a receipt of a running sandbox', run: () => first[1].receipt() },
    ],
    { rounds: rounds * 4 },
  )
  await Promise.all(first.map((sandbox) => sandbox.close()))
  await unlooking[Symbol.asyncDispose]()
  const added = createOnly[1].p50 - createOnly[0].p50
  return {
    title: 'The price of looking: create, run, receipt',
    rows: [...withRatios(createOnly), ...withRatios(runs)],
    goals: [{ text: 'looking at a cell adds at most 1.5 ms to create, at the median', measured: added, met: added <= 1.5 }],
  }
}

const platform = createPlatform()
const report = {
  environment: environment(),
  tables: [
    await cold(platform),
    await warm(platform),
    await measureCode(platform, { plain, rounds }),
    await price(platform),
    await measureTransfers(platform, Math.ceil(rounds / 15)),
  ],
}
await platform[Symbol.asyncDispose]()
process.stdout.write(writeReport(report))
if (report.tables.some((table) => table.goals?.some((goal) => !goal.met))) process.exitCode = 1
