// Fuzzes what is written in TypeScript: each target instrumented, in a thread that is watched, for a time and a number of executions.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { instrument } from './instrument.mjs'

/** @typedef {{ name: string, kind: string, executions: number, seconds: number, corpus: number, coverage: string, findings: string[], note?: string }} Row */
/** @typedef {{ root: string, name: string, seconds: number, executions: number, seed: number, say: (line: string) => void }} Order */

const hangMs = 10_000
const mostInputBytes = 1 << 20
/** So many are enough to begin with. */
const mostFindings = 10

/** @param {string} folder @returns {Uint8Array[]} */
function keptIn(folder) {
  try {
    return readdirSync(folder)
      .sort()
      .map((file) => new Uint8Array(readFileSync(join(folder, file))))
  } catch {
    // None yet.
    return []
  }
}

/** @param {Order} order @returns {Promise<Row>} */
export async function fuzzScripted(order) {
  const { root, name, seconds, executions, seed } = order
  const outfile = join(root, 'build/fuzz', `${name}.mjs`)
  mkdirSync(join(root, 'build/fuzz'), { recursive: true })
  const { branches, tokens } = await instrument({ entry: join(root, 'test/fuzz/targets', `${name}.ts`), outfile })
  const shared = new SharedArrayBuffer(16 + mostInputBytes)
  const kept = keptIn(join(root, 'test/fuzz/kept', name))
  const startedAt = Date.now()
  const data = { module: outfile, seed, untilMs: startedAt + seconds * 1000, executions, tokens, kept, shared }
  const findings = await watch(new Worker(new URL('./worker.mjs', import.meta.url), { workerData: data, resourceLimits: { maxOldGenerationSizeMb: 512 } }), {
    shared,
    order,
  })
  const [done = 0, , corpus = 0, covered = 0] = new Int32Array(shared, 0, 4)
  return {
    name,
    kind: 'TypeScript',
    executions: done,
    seconds: (Date.now() - startedAt) / 1000,
    corpus,
    coverage: `${covered}/${branches} branches`,
    findings,
  }
}

/** Until it is done, or an input was found that it does not come back from. @param {Worker} worker @param {{ shared: SharedArrayBuffer, order: Order }} watched @returns {Promise<string[]>} */
function watch(worker, { shared, order }) {
  const counters = new Int32Array(shared, 0, 4)
  /** @type {Map<string, string>} */
  const findings = new Map()
  return new Promise((resolve) => {
    let last = -1
    let since = Date.now()
    const end = () => {
      clearInterval(timer)
      resolve([...findings.values()])
      void worker.terminate()
    }
    const note = (/** @type {{ bytes: Uint8Array, text: string, id: string }} */ found) => {
      // Where it broke tells one finding from another.
      const key = /^ +at .*(?:\n +at .*)?/m.exec(found.text)?.[0] ?? found.text.slice(0, 40)
      if (findings.has(key)) return
      findings.set(key, keepFinding(order, found))
      if (findings.size >= mostFindings) end()
    }
    const noteCurrent = (/** @type {string} */ text) =>
      note({ bytes: new Uint8Array(shared, 16, Math.min(counters[1] ?? 0, mostInputBytes)).slice(), text, id: `${Date.now()}` })
    const timer = setInterval(() => {
      if (counters[0] !== last) [last, since] = [counters[0] ?? 0, Date.now()]
      else if (Date.now() - since > hangMs) {
        noteCurrent(`did not come back within ${hangMs} ms`)
        end()
      }
    }, 500)
    worker.on('message', (message) => (message.done ? end() : note(message.found)))
    worker.on('error', (error) => {
      noteCurrent(`ended the thread: ${error.message}`)
      end()
    })
    worker.on('exit', end)
  })
}

/** @param {Order} order @param {{ bytes: Uint8Array, text: string, id: string }} found */
function keepFinding({ root, name, say }, { bytes, text, id }) {
  const folder = join(root, 'build/fuzz/found', name)
  mkdirSync(folder, { recursive: true })
  const path = join(folder, id)
  writeFileSync(path, bytes)
  say(`FOUND ${name}: ${path}\n${text.slice(0, 600).split('\n').slice(0, 5).join('\n')}`)
  return `${path}: ${text.split('\n')[0]}`
}
