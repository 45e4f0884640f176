/**
 * What the channel costs: bytes streamed out of a running warden beside a plain pipe, and `true` beside a plain spawn, without any isolation.
 * `node bench/channel.mjs [--rounds N]` after a build; a missed goal ends it with exit code 1.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { parseArgs } from 'node:util'
import { connectWarden } from '../dist/channel/index.js'
import { createFakeDriver } from '../dist/drivers/fake/driver.js'
import { environment, markdown } from './report.mjs'
import { sampleInterleaved, withRatios } from './sampling.mjs'

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '200' } } })
const rounds = Number(values.rounds)
const streamedBytes = 256 * 2 ** 20
const stream = ['/usr/bin/head', '-c', String(streamedBytes), '/dev/zero']
const env = { PATH: '/usr/bin:/bin' }

const cell = await createFakeDriver().open({}, new AbortController().signal)
const warden = await connectWarden(cell.channel)

function expectBytes(received, expected) {
  if (received !== expected) throw new Error(`${received} bytes arrived instead of ${expected}`)
}

async function plainly([file, ...args], expected) {
  const child = spawn(file, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let received = 0
  child.stdout.on('data', (chunk) => (received += chunk.length))
  await once(child, 'close')
  expectBytes(received, expected)
}

async function throughWarden(argv, expected) {
  const { uid, gid } = cell.users[0]
  const result = await warden.start({ argv, env, cwd: '/', uid, gid, capabilities: 0n, rlimits: [], stdin: false })
  let received = 0
  for await (const { bytes } of result.process.output) received += bytes.length
  await result.process.exited
  expectBytes(received, expected)
}

async function compare(title, { argv, expected, rounds, most, goal }) {
  const subjects = [
    { name: 'plain spawn from Node', run: () => plainly(argv, expected) },
    { name: 'running warden', run: () => throughWarden(argv, expected) },
  ]
  const rows = withRatios(await sampleInterleaved(subjects, { rounds }))
  const measured = rows[1].ratio
  return { title, rows, goals: [{ text: goal, measured, met: measured <= most }] }
}

const tables = [
  await compare('true', { argv: ['/usr/bin/true'], expected: 0, rounds, most: 1, goal: '`true` costs at most a plain spawn' }),
  await compare('256 MiB of output', {
    argv: stream,
    expected: streamedBytes,
    rounds: Math.ceil(rounds / 20),
    most: 2,
    goal: 'streamed at least half as fast as a plain pipe',
  }),
]
warden.close()
await cell.close()
process.stdout.write(markdown({ environment: environment(), tables }))
if (tables.some(({ goals }) => goals.some(({ met }) => !met))) process.exitCode = 1
