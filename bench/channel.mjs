/**
 * What the channel costs: bytes streamed out of a running warden and into it beside a plain pipe, and `true` beside a plain spawn, without any isolation.
 * `node bench/channel.mjs [--rounds N]` after a build; a missed goal ends it with exit code 1.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { parseArgs } from 'node:util'
import { atMost, environmentOf, missedGoals, ratioOf, renderMarkdown, sampleInterleaved } from '../dist/bench/index.js'
import { connectWarden } from '../dist/channel/index.js'
import { createFakeDriver } from '../dist/drivers/fake/driver.js'

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

const piece = Buffer.alloc(2 ** 20)

async function feedPlainly([file, ...args]) {
  const child = spawn(file, args, { env, stdio: ['pipe', 'pipe', 'ignore'] })
  let printed = ''
  child.stdout.on('data', (chunk) => (printed += chunk))
  for (let sent = 0; sent < streamedBytes; sent += piece.length) if (!child.stdin.write(piece)) await once(child.stdin, 'drain')
  child.stdin.end()
  await once(child, 'close')
  expectBytes(Number(printed), streamedBytes)
}

async function feedThroughWarden(argv) {
  const { uid, gid } = cell.users[0]
  const { process: run } = await warden.start({ argv, env, cwd: '/', uid, gid, capabilities: 0n, rlimits: [], stdin: true })
  for (let sent = 0; sent < streamedBytes; sent += piece.length) await run.write(piece)
  await run.endInput()
  let printed = ''
  for await (const { bytes } of run.output) printed += Buffer.from(bytes)
  await run.exited
  expectBytes(Number(printed), streamedBytes)
}

async function compare(title, { argv, expected, rounds, most, goal, isFed = false }) {
  const subjects = [
    { name: 'plain spawn from Node', run: () => (isFed ? feedPlainly(argv) : plainly(argv, expected)) },
    { name: 'running warden', run: () => (isFed ? feedThroughWarden(argv) : throughWarden(argv, expected)) },
  ]
  const { rows, missing } = await sampleInterleaved(subjects, { rounds, signal: new AbortController().signal })
  const measured = ratioOf({ rows, ours: subjects[1].name, beside: subjects[0].name })
  return { section: 'channel', title, rows, figures: [], missing, goals: [atMost(goal, measured, most)] }
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
  await compare('256 MiB of input', {
    argv: ['/usr/bin/wc', '-c'],
    isFed: true,
    rounds: Math.ceil(rounds / 20),
    most: 4,
    goal: 'fed at least a quarter as fast as a plain pipe',
  }),
]
warden.close()
await cell.close()
const report = { environment: environmentOf({ version: 'of this clone', peers: [] }), tables }
process.stdout.write(renderMarkdown(report))
if (missedGoals(report).length > 0) process.exitCode = 1
