// Tries one target in a thread of its own, which can be ended when an input makes it hang. What it tries now and how far it is stand in memory that its watcher sees.
import { createHash } from 'node:crypto'
import { parentPort, workerData } from 'node:worker_threads'
import { mutate, randomOf } from './mutate.mjs'

/** One that takes the processor for longer is a finding: nothing that a parser is given here is large. */
const mostMs = 500
const bucketOf = Uint8Array.from({ length: 256 }, (_, count) => (count < 4 ? count : count < 8 ? 4 : count < 16 ? 5 : count < 32 ? 6 : count < 128 ? 7 : 8))

/** @type {{ module: string, seed: number, untilMs: number, executions: number, tokens: string[], kept: Uint8Array[], shared: SharedArrayBuffer }} */
const { module, seed, untilMs, executions, tokens, kept, shared } = workerData
const counters = new Int32Array(shared, 0, 4)
const current = new Uint8Array(shared, 16)
const { target, __branches: branches } = await import(module)
const seen = new Uint16Array(branches.length)
const random = randomOf(seed)
const toBytes = (/** @type {string | Uint8Array} */ seed_) => (typeof seed_ === 'string' ? new TextEncoder().encode(seed_) : new Uint8Array(seed_))
/** @type {Uint8Array[]} */
const corpus = []
let covered = 0
/** @type {unknown} */
let stray
let isTrying = false
const takeStray = (/** @type {unknown} */ error) => {
  if (!isTrying) throw error
  stray ??= error
}
process.on('unhandledRejection', takeStray)
process.on('uncaughtException', takeStray)

/** Whether it came to a branch, or to a number of times, where none was before. */
function isNew() {
  let found = false
  for (let index = 0; index < branches.length; index += 1) {
    const count = branches[index]
    if (count === 0) continue
    const bit = 1 << (bucketOf[count] ?? 0)
    const known = seen[index] ?? 0
    if ((known & bit) === 0) {
      if (known === 0) covered += 1
      seen[index] = known | bit
      found = true
    }
    branches[index] = 0
  }
  return found
}

/** @param {Uint8Array} bytes */
async function tryOnce(bytes) {
  current.set(bytes.subarray(0, current.length))
  counters[1] = bytes.length
  const before = performance.now()
  const pending = target.run(bytes)
  if (pending !== undefined) await pending
  const took = performance.now() - before
  counters[0] = (counters[0] ?? 0) + 1
  if (stray !== undefined) {
    const error = stray
    stray = undefined
    throw error
  }
  return took
}

/** Where it broke, which is not noted while nothing does: refusals are many, and each would cost a look at the stack. @param {Uint8Array} bytes @param {unknown} first */
async function told(bytes, first) {
  Error.stackTraceLimit = 12
  try {
    await tryOnce(bytes)
    return `${first instanceof Error ? first.message : String(first)} (once, and not again)`
  } catch (error) {
    return error instanceof Error ? `${error.stack}` : `threw ${String(error)}`
  } finally {
    Error.stackTraceLimit = 0
  }
}

/** @param {Uint8Array} bytes */
async function execute(bytes) {
  isTrying = true
  try {
    // A busy machine is slow now and then; only what the processor did counts.
    if ((await tryOnce(bytes)) > mostMs) {
      const before = process.cpuUsage()
      await tryOnce(bytes)
      const { user, system } = process.cpuUsage(before)
      if ((user + system) / 1000 > mostMs) throw new Error(`took the processor for ${Math.round((user + system) / 1000)} ms`)
    }
  } catch (error) {
    const text = await told(bytes, error)
    parentPort?.postMessage({ found: { bytes: bytes.slice(), text, id: createHash('sha256').update(bytes).digest('hex').slice(0, 12) } })
    return false
  } finally {
    isTrying = false
  }
  return isNew()
}

Error.stackTraceLimit = 0
for (const each of [...target.seeds.map(toBytes), ...kept]) {
  await execute(each)
  corpus.push(each)
}
if (corpus.length === 0) corpus.push(new Uint8Array())
const kitchen = { random, corpus, tokens, most: target.most }
const isEnough = () => (counters[0] ?? 0) >= executions
while (!isEnough()) {
  // The newest lead on; the time is looked at now and then.
  for (let round = 0; round < 64 && !isEnough(); round += 1) {
    const from = random.chance(0.3) ? corpus[corpus.length - 1 - random.below(Math.min(16, corpus.length))] : random.pick(corpus)
    const bytes = mutate(from ?? new Uint8Array(), kitchen)
    if (await execute(bytes)) corpus.push(bytes.slice())
  }
  counters[2] = corpus.length
  counters[3] = covered
  // Messages, timers and what a target left for a later turn.
  await new Promise((resolve) => setImmediate(resolve))
  if (Date.now() >= untilMs) break
}
counters[2] = corpus.length
counters[3] = covered
parentPort?.postMessage({ done: true })
