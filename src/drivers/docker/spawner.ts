/** A container as a process whose stdin and stdout are ours: made, attached to, started, and waited for until the engine has removed it. */
import { SandboxError } from '../../contract/errors.js'
import { type AttachedStreams, attachedStreams } from '../../sys/docker/attach.js'
import { EngineError, type EngineClient } from '../../sys/docker/client.js'
import { gone } from '../../sys/sweeper.js'
import { type ProcessEnd, type SpawnedProcess, spawnedProcess } from '../../sys/spawn.js'

export interface ContainerSpawn {
  readonly engine: EngineClient
  /** Of the cell. */
  readonly id: string
  /** What the engine is asked for. */
  readonly config: object
  readonly signal: AbortSignal
  /**
   * While the first process waits: makes sure of what was built, and puts in what is missing. Resolves to the number that the process has here, or to none that any has
   * where it cannot be seen.
   */
  readonly settle: (container: StartedContainer) => Promise<number>
  /** What is left of the cell here; an engine that says that all is gone need not be believed. */
  readonly remains: () => readonly number[]
  /** Whether the first process goes on when that is done; otherwise whoever asked for it tells it to. */
  readonly goesOn: boolean
}

export interface StartedContainer {
  readonly id: string
  /** As the engine tells it. */
  readonly pid: number
}

/** As one is told of whose end nobody vouches for: what is left is looked for and ended. */
const killed: ProcessEnd = { code: null, signal: 'SIGKILL' }
const startMs = 60_000
const removeMs = 10_000
const aliveMs = 1000
/** Longer than a warden takes to end, on a machine that does other things too. */
const endMs = 500

/** Resolves when its first process is there, in the groups of its cell. Whatever keeps it from that, no container is left. */
export async function spawnContainer(order: ContainerSpawn): Promise<SpawnedProcess> {
  const { engine, signal } = order
  signal.throwIfAborted()
  const id = await create(order)
  try {
    signal.throwIfAborted()
    const query = { stream: '1', stdin: '1', stdout: '1', stderr: '1' }
    const streams = attachedStreams(await engine.hijack(`/containers/${id}/attach`, { query }))
    try {
      const { promise: lost, giveUp } = surrender(streams)
      const ended = Promise.race([waitFor(engine, id), lost])
      await engine.call('POST', `/containers/${id}/start`, { timeoutMs: startMs })
      const monitor = await order.settle({ id, pid: await firstProcess({ order, id, streams, ended }) })
      if (order.goesOn) streams.stdin.write('+')
      endWithChannel({ engine, id, streams, ended })
      return spawned({ streams, ended, monitor, remains: order.remains, remove: () => void removeOrElse({ engine, id, giveUp }) })
    } catch (error) {
      streams.stdin.destroy()
      throw error
    }
  } catch (error) {
    await removeWhole(engine, id)
    throw error
  }
}

async function create(order: ContainerSpawn): Promise<string> {
  const query = { name: `glovebox-${order.id}` }
  const created = (await order.engine.call('POST', '/containers/create', { query, body: order.config, timeoutMs: startMs })) as {
    readonly Id?: unknown
  }
  if (typeof created.Id !== 'string' || !/^[0-9a-f]{12,64}$/.test(created.Id))
    throw new SandboxError('broken', 'the container engine made a container without an id')
  return created.Id
}

/** Quiet when it is gone, which it resolves to, or on its way. */
export async function remove(engine: EngineClient, id: string): Promise<typeof gone | undefined> {
  try {
    await engine.call('DELETE', `/containers/${id}`, { query: { force: '1', v: '1' }, timeoutMs: removeMs })
  } catch (error) {
    if (!(error instanceof EngineError && (error.status === 404 || error.status === 409))) throw error
    if (error.status === 404) return gone
  }
  return undefined
}

/** The engine may be about to remove it because its stdin has ended, and says so before it has: until then it is listed. */
async function removeWhole(engine: EngineClient, id: string): Promise<void> {
  const removed = engine.call('POST', `/containers/${id}/wait`, { query: { condition: 'removed' }, timeoutMs: removeMs }).catch(() => undefined)
  await remove(engine, id)
  await removed
}

/** An engine that does not answer is not waited for either: the processes of the cell are then ended without it, and it finds that out when it can. */
async function removeOrElse({ engine, id, giveUp }: { readonly engine: EngineClient; readonly id: string; readonly giveUp: () => void }): Promise<void> {
  try {
    await remove(engine, id)
    // What was removed is told by whoever waits for it, at once.
    setTimeout(giveUp, removeMs).unref()
  } catch {
    giveUp()
  }
}

/** Nothing more is heard of it either. */
function surrender({ stdin }: AttachedStreams): { readonly promise: Promise<ProcessEnd>; readonly giveUp: () => void } {
  let giveUp: () => void = () => undefined
  const promise = new Promise<ProcessEnd>((resolve) => {
    giveUp = () => {
      stdin.destroy()
      resolve(killed)
    }
  })
  return { promise, giveUp }
}

/** Asked before the container is started, so that no end is missed. Told when it is removed: nothing of it is left then. */
async function waitFor(engine: EngineClient, id: string): Promise<ProcessEnd> {
  try {
    const end = (await engine.call('POST', `/containers/${id}/wait`, { query: { condition: 'removed' }, timeoutMs: 0 })) as { readonly StatusCode?: unknown }
    return { code: typeof end.StatusCode === 'number' ? end.StatusCode : null, signal: null }
  } catch {
    // An engine that went away cannot vouch for anything: what is left is looked for.
    await remove(engine, id).catch(() => undefined)
    return killed
  }
}

interface Started {
  readonly order: ContainerSpawn
  readonly id: string
  readonly streams: AttachedStreams
  readonly ended: Promise<ProcessEnd>
}

async function firstProcess({ order, id, streams, ended }: Started): Promise<number> {
  const found = (await order.engine.call('GET', `/containers/${id}/json`)) as { readonly State?: { readonly Pid?: unknown } }
  const pid = Number(found.State?.Pid ?? 0)
  if (pid === 0) throw await earlyEnd(streams, ended)
  return pid
}

async function earlyEnd({ stderr, stdout }: AttachedStreams, ended: Promise<ProcessEnd>): Promise<SandboxError> {
  let said = ''
  stdout.resume()
  stderr.on('error', () => undefined).on('data', (bytes: Buffer) => (said += bytes.toString('utf8')))
  // What is told of a container that ends keeps nobody waiting by itself.
  const letGo = stayAlive()
  const { code } = await ended.finally(letGo)
  const words = said.trim().split('\n').at(-1) || `its container ended with status ${code}`
  return new SandboxError('unavailable', `the cell did not open: ${words}`, { hint: 'glovebox doctor' })
}

interface Ending {
  readonly engine: EngineClient
  readonly id: string
  readonly streams: AttachedStreams
  readonly ended: Promise<ProcessEnd>
}

/** Not every engine tells a container that its stdin has ended, by which the warden would end itself. */
function endWithChannel({ engine, id, streams, ended }: Ending): void {
  streams.stdin.once('finish', () => {
    const kill = (): void => void engine.call('POST', `/containers/${id}/kill`).catch(() => undefined)
    const timer = setTimeout(kill, endMs).unref()
    void ended.finally(() => clearTimeout(timer))
  })
}

function stayAlive(): () => void {
  const alive = setInterval(() => undefined, aliveMs)
  return () => clearInterval(alive)
}

interface Spawned {
  readonly streams: AttachedStreams
  readonly ended: Promise<ProcessEnd>
  /** The first process of the container, whose child the warden is. */
  readonly monitor: number
  readonly remains: ContainerSpawn['remains']
  readonly remove: () => void
}

function spawned({ streams, ended, monitor, remains, remove: end }: Spawned): SpawnedProcess {
  const container = spawnedProcess({
    pid: monitor,
    ...streams,
    pipes: new Map(),
    ended,
    signal: end,
    hold: stayAlive,
  })
  return {
    ...container,
    wait: async () => {
      const told = await container.wait()
      return remains().length > 0 ? killed : told
    },
  }
}
