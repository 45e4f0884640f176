import { readlinkSync } from 'node:fs'
import { basename } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { atMost, type Measured } from './goals.js'
import type { Ground, Section } from './ground.js'
import { descendantsOf, pssBytes } from './host-processes.js'
import { absence } from './one-shot.js'
import { noPools, openWarmPool } from './pool-door.js'
import type { Figure, Missing } from './report.js'
import { missingOf } from './sampling.js'

const count = 20
const settleMs = 500
const mebibyte = 2 ** 20

/** One kind of sandbox that stands idle, so many times; resolves to what all of them take together. */
interface Idle {
  readonly name: string
  readonly count: number
  readonly measureBytes: () => Promise<number>
}

const plainName = 'glovebox: idle sandbox'
const readyName = 'glovebox: idle sandbox, Python ready'

/** PSS of all processes that came, divided by the number of sandboxes: launcher, bwrap, warden and what they keep ready. */
export const idle: Section = {
  name: 'idle',
  title: 'Idle: memory that a sandbox takes while it does nothing',
  isLong: false,
  async measure(ground: Ground) {
    const peers = ground.peers.found.flatMap(({ name, idleBytes }) => (idleBytes ? [{ name, count: 5, measureBytes: () => idleBytes(5) }] : []))
    const own: readonly Idle[] = [
      { name: plainName, count, measureBytes: () => idleSandboxes(ground) },
      ...(ground.SandboxPool ? [{ name: readyName, count: 8, measureBytes: () => idlePool(ground, 8) }] : []),
    ]
    const figures: Figure[] = []
    const missing: Missing[] = ground.SandboxPool ? [] : [{ name: readyName, why: noPools, isUnsupported: true }]
    for (const each of [...own, ...peers]) {
      ground.signal.throwIfAborted()
      try {
        figures.push({ name: each.name, value: (await each.measureBytes()) / each.count / mebibyte, unit: 'MiB' })
      } catch (error) {
        missing.push(missingOf(each.name, error))
      }
    }
    const measured = (name: string): Measured => absence(missing, name) ?? figures.find((each) => each.name === name)?.value ?? { failed: 'not measured' }
    return {
      rows: [],
      figures,
      missing,
      goals: [
        atMost('an idle sandbox takes at most 1.0 MiB', measured(plainName), 1),
        atMost('an idle sandbox with Python ready takes at most 4 MiB', measured(readyName), 4),
      ],
    }
  },
}

async function idleSandboxes({ Sandbox, platform, signal }: Ground): Promise<number> {
  const before = new Set(descendantsOf(process.pid))
  const sandboxes = []
  try {
    while (sandboxes.length < count) sandboxes.push(await Sandbox.create({ platform, signal }))
    return await bytesOfNew(before)
  } finally {
    await Promise.all(sandboxes.map((sandbox) => sandbox.close()))
  }
}

async function idlePool(ground: Ground, size: number): Promise<number> {
  const before = new Set(descendantsOf(process.pid))
  // A module that every interpreter has: it makes the pool start one in each of its cells, and adds nothing.
  await using _pool = await openWarmPool(ground, { fresh: 'liner', template: 'python', size, imports: ['sys'] })
  const bytes = await bytesOfNew(before)
  const ready = descendantsOf(process.pid).filter((pid) => !before.has(pid) && isPython(pid)).length
  if (ready < size) throw new Error(`Python is ready in ${ready} of ${size} sandboxes`)
  return bytes
}

function isPython(pid: number): boolean {
  return basename(readlinkSync(`/proc/${pid}/exe`)).startsWith('python')
}

async function bytesOfNew(before: ReadonlySet<number>): Promise<number> {
  // What a new sandbox does ahead, it does in its first moments.
  await sleep(settleMs)
  return pssBytes(descendantsOf(process.pid).filter((pid) => !before.has(pid)))
}
