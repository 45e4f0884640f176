/**
 * Everything at once, with callers that leave in the midst of it, for minutes: what the server holds must be the same at the end as at the beginning.
 * `node bench/server-load.mjs [--minutes N]` after a build; something that is left or grows ends it with exit code 1.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import WebSocket from 'ws'
import { holdingsOf, Left, withServer } from './server-process.mjs'

const clients = 16
/** Of what was measured after the first tenth, when everything was used once. */
const mostGrowth = 0.25
const steadyBytes = 48 * 2 ** 20

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

/** What there was once everything was used, what there is at the end, and how much was done. */
export async function mixedLoad(server, { minutes, signal }) {
  const until = performance.now() + minutes * 60_000
  let done = 0
  const caller = async () => {
    while (performance.now() < until && !signal.aborted) {
      await acts[Math.floor(Math.random() * acts.length)](server).catch(onlyLeft)
      done += 1
    }
  }
  const running = Promise.all(Array.from({ length: clients }, caller))
  await Promise.race([running, sleep(minutes * 6000)])
  const warm = holdingsOf(server.pid)
  await running
  const quiet = await settled(server)
  return { done, warm, quiet }
}

/** Connections that are kept, and cells that wait for the next run, are no leak: they go by themselves. */
async function settled(server) {
  const patience = performance.now() + 90_000
  for (;;) {
    const { text } = await server.ask('/v1/sandboxes')
    const now = { ...holdingsOf(server.pid), sandboxes: JSON.parse(text).items.length }
    if ((now.sandboxes === 0 && now.descriptors <= idleDescriptors) || performance.now() > patience) return now
    await sleep(1000)
  }
}

/** A server that was used and rests: its files, its launcher, what waits in pools, and a few connections. */
const idleDescriptors = 100

export function problemsOf({ warm, quiet }) {
  const most = warm.rssBytes * (1 + mostGrowth) + steadyBytes
  return [
    ...(quiet.sandboxes > 0 ? [`${quiet.sandboxes} sandboxes are left`] : []),
    ...(quiet.descriptors > idleDescriptors ? [`${quiet.descriptors} descriptors are open`] : []),
    ...(quiet.cgroups > 20 ? [`${quiet.cgroups} cgroups have processes`] : []),
    ...(quiet.rssBytes > most ? [`memory grew from ${mebi(warm.rssBytes)} to ${mebi(quiet.rssBytes)} MiB`] : []),
  ]
}

const mebi = (bytes) => Math.round(bytes / 2 ** 20)

async function main() {
  const { values } = parseArgs({ options: { minutes: { type: 'string', default: '10' } } })
  const measured = await withServer((server) => mixedLoad(server, { minutes: Number(values.minutes), signal: new AbortController().signal }))
  const problems = problemsOf(measured)
  const { done, warm, quiet } = measured
  process.stdout.write(`${done} acts in ${values.minutes} min: memory ${mebi(warm.rssBytes)} → ${mebi(quiet.rssBytes)} MiB, ${quiet.descriptors} descriptors, `)
  process.stdout.write(`${quiet.cgroups} cgroups with processes, ${quiet.sandboxes} sandboxes\n${problems.map((line) => `${line}\n`).join('')}`)
  return problems.length === 0 ? 0 : 1
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exit(await main())
