/** What is under way when a step fails: for each point of the table one act that comes by it. */
import { engineOptions } from '../../src/compose.js'
import { type FaultPoint, faultPoints, type Faults } from '../../src/contract/faults.js'
import type { SpecInput } from '../../src/contract/spec.js'
import { Engine } from '../../src/engine/engine.js'
import { createSnapshotStore } from '../../src/templates/snapshots.js'
import { isDeep } from '../server/random.js'

export interface FaultyEngine extends AsyncDisposable {
  readonly engine: Engine
  readonly driver: string
  /** From now on this point does what it is told to; what was there before is forgotten. */
  arm(point: FaultPoint | undefined, act?: () => void): void
  /** How often the armed point was come by. */
  readonly hits: number
}

export class Injected extends Error {}

export function createFaultyEngine(driver: string, snapshotDir: string): FaultyEngine {
  let armed: { readonly point: FaultPoint | undefined; readonly act: () => void; hits: number } = { point: undefined, act: () => undefined, hits: 0 }
  const faults: Faults = (point) => {
    if (point !== armed.point) return
    armed.hits += 1
    if (armed.hits === 1) armed.act()
  }
  const engine = new Engine({ ...engineOptions({ snapshotDir }), snapshots: createSnapshotStore(() => snapshotDir, faults), faults })
  return {
    engine,
    driver,
    get hits() {
      return armed.hits
    },
    arm: (point, act = () => undefined) => {
      armed = { point, act, hits: 0 }
    },
    [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
  }
}

interface Scenario {
  /** What is there before anything fails; its result is handed on. */
  readonly before?: (subject: FaultyEngine) => Promise<string>
  readonly act: (subject: FaultyEngine, given: string) => Promise<unknown>
}

const specOf = ({ driver }: FaultyEngine, more: SpecInput = {}): SpecInput => ({ driver, ...more })

async function made(subject: FaultyEngine): Promise<string> {
  const { id } = await subject.engine.create(specOf(subject))
  await (await subject.engine.start(id, { command: ['sh', '-c', 'echo some >file'] })).ended
  return id
}

async function kept(subject: FaultyEngine): Promise<string> {
  const id = await made(subject)
  const snapshot = await subject.engine.snapshots.take(id, { name: 'origin' })
  await subject.engine.close(id)
  return snapshot.id
}

const create: Scenario = { act: (subject) => subject.engine.create(specOf(subject)) }
const createConnected: Scenario = { act: (subject) => subject.engine.create(specOf(subject, { network: { allow: ['example.org'] } })) }
const createFrom: Scenario = { before: kept, act: (subject, from) => subject.engine.create(specOf(subject, { from })) }
/** What runs when nobody ends it. */
export const endless = `1000.${process.pid}`
const run: Scenario = { before: made, act: async ({ engine }, id) => (await engine.start(id, { command: ['sleep', endless] })).ended }
const runToEnd: Scenario = { before: made, act: async ({ engine }, id) => (await engine.start(id, { command: ['true'] })).ended }
const snapshot: Scenario = { before: made, act: ({ engine }, id) => engine.snapshots.take(id, { name: 'taken' }) }
const fork: Scenario = { before: made, act: ({ engine }, id) => engine.snapshots.fork(id, 2) }
const close: Scenario = { before: made, act: ({ engine }, id) => engine.close(id) }

export const scenarios: Readonly<Record<FaultPoint, Scenario>> = {
  'create/prepared': create,
  'create/network': createConnected,
  'create/ids': create,
  'create/lease': create,
  'create/bundle': create,
  'create/planned': create,
  'create/spawned': create,
  'create/groups': create,
  'create/greeted': create,
  'create/settled': create,
  'create/connected': create,
  'create/looked-at': create,
  'create/joined': createConnected,
  'create/restored': createFrom,
  'create/born': create,
  'create/shown': create,
  'run/begun': run,
  'run/counted': run,
  'run/started': run,
  'run/running': run,
  'run/ended': runToEnd,
  'snapshot/drafted': snapshot,
  'snapshot/packed': snapshot,
  'snapshot/still': snapshot,
  'snapshot/written': snapshot,
  'snapshot/sealed': snapshot,
  'snapshot/placed': snapshot,
  'fork/sealed': fork,
  'fork/made': fork,
  'close/begun': close,
  'close/ended': close,
  'close/groups': close,
  'close/ids': close,
  'close/gone': close,
}

/** Those that a driver comes by: only a container runtime is given a bundle. */
export function pointsOf(driver: string): FaultPoint[] {
  if (driver.startsWith('oci'))
    return faultPoints.filter((point) => (isDeep ? /^(create|close)\// : /bundle|spawned|greeted|^close\/(ended|groups)/).test(point))
  return faultPoints.filter((point) => point !== 'create/bundle')
}

/** Comes by the point, with whatever has to be there before, and does there what it is told. */
export async function failAt(subject: FaultyEngine, point: FaultPoint, act: () => void): Promise<PromiseSettledResult<unknown>> {
  const scenario = scenarios[point]
  subject.arm(undefined)
  const given = (await scenario.before?.(subject)) ?? ''
  subject.arm(point, act)
  const [settled] = await Promise.allSettled([scenario.act(subject, given)])
  return settled
}
