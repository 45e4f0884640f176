/**
 * Everything at once, with callers that leave in the midst of it, for minutes: what the server holds must be the same at the end as at the beginning.
 * `node bench/server-load.mjs [--minutes N]` after a build; something that is left or grows ends it with exit code 1.
 *
 * Memory is flat when half of the samples of the last fifth are at most a tenth above half of those of the second fifth; by the first, everything was used and compiled.
 * What lives on the heap, after everything dead was taken away, may have grown as little from the end of the second fifth to the end. What is counted is compared with the
 * server as it was before anyone came.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import WebSocket from 'ws'
import { openHeap } from './server-heap.mjs'
import { groupsBelow, holdingsOf, Left, residentBytes, withServer } from './server-process.mjs'

const clients = 16
const mostGrowth = 0.1
/** Of a heap of some MiB a tenth is what a few requests more or less make. */
const heapSlackBytes = 4 * 2 ** 20
/** The launcher, the log of a database, what was loaded late: opened once. */
const openedOnce = 16
const sampleMs = 500

const shoot = (server, leaving = {}) => server.ask('/v1/runs', { body: { command: ['sh', '-c', 'sleep 0.05; echo out'] }, ...leaving })
const stream = (server, path) => server.ask(path, { accept: 'text/event-stream', leaveAfterMs: Math.random() * 500 })

async function live(server) {
  const { text, status } = await server.ask('/v1/sandboxes', { body: { agent: 'bench', lifetime: '5m' } })
  if (status >= 300) throw new Error(`create: ${status} ${text}`)
  const one = `/v1/sandboxes/${JSON.parse(text).id}`
  try {
    await server.ask(`${one}/files/content?path=a`, { method: 'PUT', body: 'a'.repeat(100_000), type: 'application/octet-stream' })
    const leaving = Math.random() < 0.3 && { leaveAfterMs: Math.random() * 200 }
    await server.ask(`${one}/processes`, { body: { command: ['sh', '-c', 'wc -c a; sleep 0.05'] }, accept: 'application/x-ndjson', ...leaving })
    await stream(server, `${one}/events`).catch(onlyLeft)
    if (Math.random() < 0.3) await terminal(server, one)
  } finally {
    await server.ask(one, { method: 'DELETE' })
  }
}

/** Opened, used, and left without a word half of the time. */
function terminal({ port, key }, one) {
  return new Promise((resolve, reject) => {
    const web = new WebSocket(`ws://127.0.0.1:${port}${one}/terminal`, ['glovebox.v1'], { headers: { authorization: `Bearer ${key}` } })
    web.on('open', () => web.send(JSON.stringify({ type: 'start', command: ['sh'] })))
    web.on('message', (_, isBinary) => (isBinary ? (Math.random() < 0.5 ? web.terminate() : web.close()) : undefined))
    web.on('close', resolve)
    web.on('error', reject)
  })
}

function onlyLeft(error) {
  if (!(error instanceof Left)) throw error
}

const acts = [
  shoot,
  (server) => shoot(server, { leaveAfterMs: Math.random() * 100 }),
  live,
  (server) => stream(server, '/v1/events'),
  (server) => server.ask('/v1/sandboxes'),
]

/** How much was done, what there was meanwhile, and what there is afterwards. */
export async function mixedLoad(server, { minutes, signal }) {
  const heap = await openHeap(server.inspector)
  try {
    const fresh = holdingsOf(server.pid)
    const load = loading(server, { untilMs: performance.now() + minutes * 60_000, signal })
    const samples = sampling(server, load.running)
    await Promise.race([load.running, sleep(minutes * 24_000)])
    const warmHeapBytes = await heap.liveBytes()
    await load.running
    const heapBytes = await heap.liveBytes()
    const quiet = await settled(server, fresh)
    const resources = await heap.resources()
    return { done: load.done(), fresh, quiet, resources, warmHeapBytes, heapBytes, warned: server.warned(), ...medians(await samples) }
  } finally {
    heap.close()
  }
}

function loading(server, { untilMs, signal }) {
  let done = 0
  const caller = async () => {
    while (performance.now() < untilMs && !signal.aborted) {
      await acts[Math.floor(Math.random() * acts.length)](server).catch(onlyLeft)
      done += 1
    }
  }
  return { running: Promise.all(Array.from({ length: clients }, caller)), done: () => done }
}

/** Its memory, again and again, until the load is over. */
async function sampling(server, running) {
  const samples = []
  let isOver = false
  const over = running.finally(() => (isOver = true)).catch(() => undefined)
  while (!isOver) {
    samples.push(residentBytes(server.pid))
    await Promise.race([over, sleep(sampleMs)])
  }
  return samples
}

function medians(samples) {
  const fifth = Math.floor(samples.length / 5)
  const median = (part) => part.sort((one, other) => one - other)[Math.floor(part.length / 2)]
  return { warmBytes: median(samples.slice(fifth, 2 * fifth)), lateBytes: median(samples.slice(-fifth)), mostBytes: Math.max(...samples) }
}

/** Connections that are kept, and cells that wait for the next run, are no leak: they go by themselves. */
async function settled(server, fresh) {
  const patience = performance.now() + 120_000
  for (;;) {
    const { text } = await server.ask('/v1/sandboxes')
    server.rest()
    await sleep(1000)
    const now = { ...holdingsOf(server.pid), sandboxes: JSON.parse(text).items.length }
    if ((now.sandboxes === 0 && now.descriptors <= fresh.descriptors + openedOnce && now.groups <= fresh.groups) || performance.now() > patience) return now
  }
}

export function problemsOf({ fresh, quiet, warned, warmBytes, lateBytes, warmHeapBytes, heapBytes, left = 0 }) {
  const grew = (what, from, to) => `${what} grew from ${mebi(from)} to ${mebi(to)} MiB`
  return [
    ...(quiet.sandboxes > 0 ? [`${quiet.sandboxes} sandboxes are left`] : []),
    ...(quiet.descriptors > fresh.descriptors + openedOnce ? [`${quiet.descriptors} descriptors are open, and ${fresh.descriptors} were`] : []),
    ...(quiet.groups > fresh.groups ? [`${quiet.groups} cgroups are there, and ${fresh.groups} were`] : []),
    ...(quiet.listeners > fresh.listeners ? [`${quiet.listeners} sockets listen, and ${fresh.listeners} did`] : []),
    ...(left > 0 ? [`${left} cgroups outlived the server`] : []),
    ...(warned === undefined ? [] : [warned]),
    ...(lateBytes > warmBytes * (1 + mostGrowth) ? [grew('memory', warmBytes, lateBytes)] : []),
    ...(heapBytes > warmHeapBytes * (1 + mostGrowth) + heapSlackBytes ? [grew('the live heap', warmHeapBytes, heapBytes)] : []),
  ]
}

/** On a server of its own, of which nothing may outlive it either. */
export async function measureMixedLoad(options) {
  const measured = await withServer((server) => mixedLoad(server, options), { inspected: true })
  const whole = { ...measured, left: groupsBelow('/sys/fs/cgroup', measured.fresh.name) }
  return { ...whole, problems: problemsOf(whole) }
}

export const mebi = (bytes) => Math.round(bytes / 2 ** 20)

async function main() {
  const { values } = parseArgs({ options: { minutes: { type: 'string', default: '10' } } })
  const measured = await measureMixedLoad({ minutes: Number(values.minutes), signal: new AbortController().signal })
  const { done, fresh, quiet, problems, resources } = measured
  const lines = [
    `${done} acts in ${values.minutes} min`,
    `memory, medians: ${mebi(measured.warmBytes)} MiB in the second fifth, ${mebi(measured.lateBytes)} MiB in the last, ${mebi(measured.mostBytes)} MiB at most`,
    `live heap: ${mebi(measured.warmHeapBytes)} MiB after the second fifth, ${mebi(measured.heapBytes)} MiB at the end`,
    `before and after: descriptors ${fresh.descriptors} and ${quiet.descriptors}, cgroups ${fresh.groups} and ${quiet.groups}, sockets that listen ${fresh.listeners} and ${quiet.listeners}`,
    `left: ${quiet.sandboxes} sandboxes; when the server had ended ${measured.left} cgroups; what keeps it: ${JSON.stringify(resources)}`,
    ...problems,
  ]
  process.stdout.write(lines.map((line) => `${line}\n`).join(''))
  return problems.length === 0 ? 0 : 1
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exit(await main())
