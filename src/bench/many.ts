/**
 * A thousand sandboxes alive at once. One stands alone first, then ten, then all; what is measured of one and of ten is measured again when all are there. What the host holds for them is listed before the
 * first and after the last, and the difference must be nothing.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Platform } from '../contract/platform.js'
import type { Sandbox } from '../sandbox/index.js'
import { atMost, ratioOf } from './goals.js'
import type { Ground, Section } from './ground.js'
import { availableBytes, descendantsOf, pssBytes } from './host-processes.js'
import { newTraces, traceHost } from './host-traces.js'
import type { Figure, Goal, Row, Table } from './report.js'
import { summarise } from './statistics.js'

const all = 1000
const few = 10
const atOnce = 8
const gibibyte = 2 ** 30
const kinds = ['processes', 'mounts', 'cgroups', 'ids', 'files'] as const

interface Crowd {
  readonly platform: Platform
  readonly sandboxes: Sandbox[]
  readonly ground: Ground
}

interface Filled {
  readonly rows: readonly Row[]
  readonly createdSeconds: number
  readonly pssBytes: number
  readonly availableBytes: number
}

/** By then all that is kept is there. */
const kept = 3

export const many: Section = {
  name: 'many',
  title: 'Many: a thousand sandboxes alive at once',
  isLong: true,
  async measure(ground: Ground) {
    await using platform = ground.createPlatform({ bounds: { maxSandboxes: all + few } })
    const crowd: Crowd = { platform, sandboxes: [], ground }
    // What is made once and kept, such as caches and the launcher that stays from the second cell on, is not left behind by sandboxes.
    for (let n = 0; n < kept; n += 1) await (await createOne(crowd)).close()
    const before = traceHost()
    let filled: Filled
    let closedSeconds: number
    try {
      filled = await fill(crowd)
    } finally {
      closedSeconds = await closeAll(crowd)
    }
    // Node reads the end of a child on a later turn of its loop.
    await sleep(200)
    const left = newTraces(before, traceHost())
    return report({ filled, closedSeconds, left: kinds.map((kind) => ({ kind, count: left[kind].length })) })
  },
}

async function fill(crowd: Crowd): Promise<Filled> {
  const free = availableBytes()
  const own = pssBytes([process.pid])
  const begin = performance.now()
  let aside = 0
  /** What is measured on the way is no part of the time that all of them took. */
  const measured = async (act: () => Promise<Row>): Promise<Row> => {
    const since = performance.now()
    const row = await act()
    aside += performance.now() - since
    return row
  }
  await grow(crowd, 1)
  const alone = await measured(() => sampleRuns(crowd, 'true, one alone'))
  await grow(crowd, few)
  const createAtFew = await measured(() => sampleCreates(crowd, `create, ${few} alive`))
  await grow(crowd, all)
  const createdSeconds = (performance.now() - begin - aside) / 1000
  const available = free - availableBytes()
  const pss = pssBytes(descendantsOf(process.pid)) + pssBytes([process.pid]) - own
  const createAtAll = await sampleCreates(crowd, `create, ${all} alive`)
  const among = await sampleRuns(crowd, `true in any of ${all}`)
  return { rows: [alone, among, createAtFew, createAtAll], createdSeconds, pssBytes: pss, availableBytes: available }
}

function createOne({ ground, platform }: Crowd): Promise<Sandbox> {
  return ground.Sandbox.create({ platform, lifetime: '1h', signal: ground.signal })
}

async function grow(crowd: Crowd, target: number): Promise<void> {
  let begun = crowd.sandboxes.length
  const caller = async (): Promise<void> => {
    while (begun < target) {
      begun += 1
      crowd.sandboxes.push(await createOne(crowd))
    }
  }
  // All have to be over before anyone counts or closes what there is.
  const ends = await Promise.allSettled(Array.from({ length: atOnce }, caller))
  const failure = ends.find((end) => end.status === 'rejected')
  if (failure !== undefined) throw failure.reason
}

async function sampleRuns({ sandboxes, ground }: Crowd, name: string): Promise<Row> {
  const samplesMs: number[] = []
  for (let round = 0; round < ground.rounds * 3; round++) {
    ground.signal.throwIfAborted()
    const sandbox = sandboxes[Math.floor(Math.random() * sandboxes.length)]
    const begin = performance.now()
    const result = await sandbox?.run(['/usr/bin/true'])
    samplesMs.push(performance.now() - begin)
    if (result?.outcome.kind !== 'exited') throw new Error(`true ended as ${result?.outcome.kind}`)
  }
  return summarise(name, samplesMs)
}

async function sampleCreates(crowd: Crowd, name: string): Promise<Row> {
  const samplesMs: number[] = []
  for (let round = 0; round < Math.max(10, crowd.ground.rounds / 2); round++) {
    const begin = performance.now()
    const sandbox = await createOne(crowd)
    samplesMs.push(performance.now() - begin)
    await sandbox.close()
  }
  return summarise(name, samplesMs)
}

async function closeAll({ sandboxes }: Crowd): Promise<number> {
  const begin = performance.now()
  const ends = await Promise.allSettled(sandboxes.map((sandbox) => sandbox.close()))
  const failure = ends.find((end) => end.status === 'rejected')
  if (failure !== undefined) throw failure.reason
  return (performance.now() - begin) / 1000
}

interface Result {
  readonly filled: Filled
  readonly closedSeconds: number
  readonly left: readonly { readonly kind: string; readonly count: number }[]
}

function report(result: Result): Omit<Table, 'section' | 'title'> {
  const { filled, closedSeconds, left } = result
  const figures: Figure[] = [
    { name: `${all} created, ${atOnce} at once`, value: filled.createdSeconds, unit: 's' },
    { name: `memory of ${all}, engine included, by PSS`, value: filled.pssBytes / gibibyte, unit: 'GiB' },
    { name: `memory of ${all}, by what is available`, value: filled.availableBytes / gibibyte, unit: 'GiB' },
    { name: `${all} closed`, value: closedSeconds, unit: 's' },
    ...left.map(({ kind, count }) => ({ name: `${kind} left`, value: count, unit: '' })),
  ]
  return { rows: filled.rows, figures, missing: [], goals: goalsOf(result) }
}

function goalsOf({ filled, closedSeconds, left }: Result): readonly Goal[] {
  const { rows } = filled
  const most = Math.max(filled.pssBytes, filled.availableBytes) / gibibyte
  const runs = ratioOf({ rows, ours: `true in any of ${all}`, beside: 'true, one alone', at: 'p95' })
  const creates = ratioOf({ rows, ours: `create, ${all} alive`, beside: `create, ${few} alive` })
  return [
    atMost('a thousand sandboxes are created within 120 s', filled.createdSeconds, 120),
    atMost('a thousand sandboxes take at most 2.5 GiB', most, 2.5),
    atMost('`true` in any of a thousand costs at most 3 × that in one alone, at p95', runs, 3),
    atMost('a thousand sandboxes are closed within 60 s', closedSeconds, 60),
    atMost(
      'nothing is left of a thousand sandboxes',
      left.reduce((sum, { count }) => sum + count, 0),
      0,
    ),
    atMost('create at a thousand alive costs at most 1.5 × create at ten', creates, 1.5),
  ]
}
