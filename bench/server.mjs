/** What the server costs beside the engine in one's own process: runs per second, time added to each, memory of what is merely open, and what minutes of everything leave. */
import { descendantsOf, atLeast, atMost, expectOne, measureThroughput, pssBytes, python, sampleInterleaved } from '../dist/bench/index.js'
import WebSocket from 'ws'
import { get } from 'node:http'
import { callerOf } from './server-caller.mjs'
import { measureMixedLoad } from './server-load.mjs'
import { withServer } from './server-process.mjs'

const callers = 64
const streams = 2000
const terminals = 500
const perSandbox = 25
const near = 'one-shot python3, engine in this process'
const far = 'one-shot python3, over HTTP'
/** Both sides alike: until the pools are full and V8 has compiled what is used. */
const warmUpMs = 12_000

export const server = {
  name: 'server',
  title: 'The server: one-shot runs over HTTP beside the engine, and what is open',
  isLong: true,
  measure,
}

async function measure(ground) {
  const { signal, minutes = 10 } = ground
  const { rows, busy, missing } = await withServer((subject) => measureRuns(subject, ground))
  const heldBytes = await withServer((fresh) => holdOpen(fresh, signal))
  const mixed = await measureMixedLoad({ minutes, signal })
  const p50 = (name) => rows.find((row) => row.name === name)?.p50
  const { problems } = mixed
  return {
    rows,
    figures: [
      ...busy.figures,
      { name: `${streams} event streams and ${terminals} terminals open, programs included`, value: heldBytes / 2 ** 20, unit: 'MiB' },
      ...mixedFigures(mixed, minutes),
    ],
    missing: [...missing, ...busy.missing],
    goals: [
      atLeast(`${callers} callers over HTTP: at least 0.8 × the runs per second of the engine`, busy.perSecond.get(far) / busy.perSecond.get(near), 0.8),
      atMost('a run over HTTP takes at most 2 ms more than one of the engine, p50', p50(far) - p50(near), 2),
      atMost(`${streams} event streams and ${terminals} terminals: less than 1.5 GiB`, heldBytes / 2 ** 30, 1.5),
      atMost('mixed load with callers that leave: nothing is left and memory is flat', problems.length === 0 ? 0 : { failed: problems.join('; ') }, 0),
    ],
  }
}

function mixedFigures({ done, warmBytes, lateBytes, warmHeapBytes, heapBytes, fresh, quiet }, minutes) {
  const memory = (name, bytes) => ({ name: `mixed load: ${name}`, value: bytes / 2 ** 20, unit: 'MiB' })
  return [
    { name: `mixed load, ${minutes} min: acts`, value: done, unit: 'acts' },
    memory('memory in its second fifth, median', warmBytes),
    memory('memory in its last fifth, median', lateBytes),
    memory('live heap after its second fifth', warmHeapBytes),
    memory('live heap at its end', heapBytes),
    { name: 'mixed load: descriptors before', value: fresh.descriptors, unit: '' },
    { name: 'mixed load: descriptors afterwards', value: quiet.descriptors, unit: '' },
  ]
}

/** The same job on both sides: a fresh liner from a pool that is warm, with what nobody stated. Here the answer of the server is an object once it is parsed, as the engine's is. */
async function measureRuns(subject, { Sandbox, platform, rounds, signal }) {
  const caller = callerOf(subject, '/v1/runs', { command: python, sandbox: { template: 'python' } })
  const subjects = [
    { name: near, run: async () => expectOne((await Sandbox.run(python, { platform, sandbox: { template: 'python' } })).stdout) },
    { name: far, run: async () => expectOne(JSON.parse(await caller.ask()).stdout) },
  ]
  try {
    await measureThroughput(subjects, { concurrency: callers, rounds: 0, sliceMs: warmUpMs, signal })
    const busy = await measureThroughput(subjects, { concurrency: callers, rounds: Math.ceil(rounds / 12), sliceMs: 2000, signal })
    const { rows, missing } = await sampleInterleaved(subjects, { rounds: rounds * 4, warmups: 20, pauseMs: 5, signal })
    return { rows, busy, missing }
  } finally {
    caller.close()
  }
}

/** Bytes of the server with all that runs below it, while everything is open and nothing happens. */
async function holdOpen(subject, signal) {
  const open = []
  try {
    for (let count = 0; count < streams; count += 100) open.push(...(await Promise.all(Array.from({ length: 100 }, () => openStream(subject)))))
    for (let count = 0; count < terminals; count += perSandbox) {
      signal.throwIfAborted()
      const spec = { template: 'host', limits: { memory: '256m' } }
      const { id } = JSON.parse((await subject.ask('/v1/sandboxes', { body: spec })).text)
      open.push(...(await Promise.all(Array.from({ length: perSandbox }, () => openTerminal(subject, id)))))
    }
    if (open.filter((each) => !each.isOver()).length !== streams + terminals) throw new Error('some of what was opened is over')
    return pssBytes([subject.pid, ...descendantsOf(subject.pid)])
  } finally {
    for (const each of open) each.end()
  }
}

function openStream({ url, key }) {
  return new Promise((resolve, reject) => {
    const sent = get(`${url}/v1/events`, { agent: false, headers: { authorization: `Bearer ${key}`, accept: 'text/event-stream' } }, (response) => {
      response.resume().on('error', () => undefined)
      resolve({ isOver: () => response.destroyed, end: () => sent.destroy() })
    })
    sent.on('error', reject)
  })
}

/** With a shell that has shown its prompt. */
function openTerminal({ port, key }, id) {
  return new Promise((resolve, reject) => {
    const web = new WebSocket(`ws://127.0.0.1:${port}/v1/sandboxes/${id}/terminal`, ['glovebox.v1'], { headers: { authorization: `Bearer ${key}` } })
    web.on('open', () => web.send(JSON.stringify({ type: 'start', command: ['sh'] })))
    web.on('message', (data, isBinary) => (isBinary ? resolve({ isOver: () => web.readyState !== 1, end: () => web.terminate() }) : failWith(data, reject)))
    web.on('error', reject)
  })
}

function failWith(data, reject) {
  const { type, error } = JSON.parse(data)
  if (type === 'error') reject(new Error(`terminal: ${error.message}`))
}
