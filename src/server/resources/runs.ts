/** Runs in sandboxes of their own. */
import { SandboxError } from '../../contract/errors.js'
import type { NetworkRecord } from '../../contract/network.js'
import type { OneShot, OneShotCall, OneShotPlace } from '../../contract/pools.js'
import { parseWith } from '../../contract/refusal.js'
import type { RunRequest, SignalName } from '../../contract/run.js'
import { runOwnSchema } from '../../contract/wire/processes.js'
import { type Answer, events, json, none, type WireEvent } from '../answers.js'
import { Asks } from '../asks.js'
import type { Call, Handlers } from '../call.js'
import type { Desk, HeldRun } from '../desk.js'
import { leaving } from '../leaving.js'
import { capture, feed, feedAll, inputBytes } from '../programs.js'
import { Queue } from '../queue.js'

type Names = 'runs.start' | 'runs.stdin' | 'runs.signal' | 'runs.resize' | 'runs.kill' | 'runs.receipt' | 'runs.summary' | 'runs.approve' | 'runs.release'

type RunCall = Pick<Call, 'actor'> & { readonly params: { readonly run: string } }

export function runHandlers(desk: Desk): Handlers<Names> {
  const find = ({ actor, params }: RunCall): HeldRun => desk.runs.get(actor.tenant, params.run)
  const network = (call: RunCall): NonNullable<OneShot['network']> => {
    const { shot } = find(call)
    return shot.network ?? refuseNetwork(shot)
  }
  return {
    'runs.start': (call) => start(desk, call),
    'runs.stdin': async (call) => {
      await feed(find(call).shot.program, call)
      return none
    },
    'runs.signal': async (call) => {
      await find(call).shot.program.signal(call.body.signal as SignalName)
      return none
    },
    'runs.resize': async (call) => {
      await find(call).shot.program.resize(call.body)
      return none
    },
    'runs.kill': async (call) => {
      await find(call).shot.program.kill(call.body.reason)
      return none
    },
    'runs.receipt': async (call) => json(await find(call).shot.receipt({ signal: call.signal })),
    'runs.summary': async (call) => json(await network(call).summary()),
    'runs.approve': (call) => {
      const { asks } = find(call)
      ;(asks ?? new Asks()).answer(call.params.ask, call.body.approval)
      return Promise.resolve(none)
    },
    'runs.release': async (call) => {
      const { shot, onReleased } = find(call)
      try {
        return json(await shot.release())
      } finally {
        onReleased()
      }
    },
  }
}

interface Order {
  readonly place: OneShotPlace
  readonly request: RunRequest
  readonly call: Omit<OneShotCall, 'signal' | 'onRequest'>
  readonly input: Uint8Array | undefined
  readonly asks: Asks | undefined
  readonly withReceipt: boolean
  readonly keep: boolean
}

const ownNames = ['pool', 'fresh', 'ready', 'receipt', 'keep', 'approvals'] as const

/** What is the run's own is parsed here; spec and request are the platform's to parse. */
function orderOf(body: Readonly<Record<string, unknown>>): Order {
  const { sandbox, input, ...rest } = body
  const given = Object.fromEntries(ownNames.filter((name) => Object.hasOwn(rest, name)).map((name) => [name, rest[name]]))
  const { pool, fresh, ready, receipt = false, keep = false, approvals = false } = parseWith(runOwnSchema, given, 'run')
  const request = Object.fromEntries(Object.entries(rest).filter(([name]) => !(ownNames as readonly string[]).includes(name)))
  const bytes = inputBytes(input)
  return {
    place: pool === undefined ? { spec: sandbox ?? {} } : { pool },
    request: { ...(request as unknown as RunRequest), ...(bytes && { stdin: true }) },
    call: { ...(fresh !== undefined && { fresh }), ...(ready !== undefined && { pool: ready }) },
    input: bytes,
    asks: approvals ? new Asks() : undefined,
    withReceipt: receipt,
    keep,
  }
}

async function start(desk: Desk, call: Call<'runs.start'>): Promise<Answer> {
  const order = orderOf(call.body)
  const { place, asks, input } = order
  if ('spec' in place) desk.checkSpec(place.spec)
  const request = call.stream === undefined ? { ...order.request, output: order.request.output ?? {} } : order.request
  const { signal } = call
  const shot = await call.platform.pools.run(place, request, { ...order.call, signal, ...(asks && { onRequest: asks.judge }) })
  feedAll(shot.program, input)
  if (call.stream !== undefined) return events(tell(desk, call, { shot, order }))
  try {
    const captured = await capture(shot.program, call.gone)
    const receipt = order.withReceipt ? await shot.receipt({ signal }) : undefined
    const released = await shot.release()
    return json({ ...captured, sandbox: shot.sandbox, ...(receipt && { receipt }), ...released })
  } catch (error) {
    await shot.release().catch(() => undefined)
    throw error
  }
}

interface Telling {
  readonly shot: OneShot
  readonly order: Order
}

/** The run is its stream's: when that is left, it is over. */
async function* tell(desk: Desk, { actor, signal, gone }: Call<'runs.start'>, { shot, order }: Telling): AsyncGenerator<WireEvent, void, undefined> {
  const { asks, keep, withReceipt } = order
  const { program, sandbox, network } = shot
  const life = { isReleased: false }
  const released = new Queue<never>()
  const onReleased = (): void => {
    life.isReleased = true
    released.end()
  }
  const run = desk.runs.add(actor.tenant, { shot, asks, onReleased })
  try {
    yield { type: 'begun', run, pid: program.pid, sandbox, hasNetwork: network !== undefined }
    yield* asks || network ? merged({ output: program.output, log: network?.log, asks }, gone) : leaving(program.output, gone)
    if (gone.aborted) return
    const ending = await program.ended
    const receipt = withReceipt ? await shot.receipt({ signal }) : undefined
    const last = keep || life.isReleased ? {} : await shot.release()
    life.isReleased ||= !keep
    yield { type: 'ended', ending, ...(receipt && { receipt }), ...last }
    // What is kept is kept for whoever holds this stream.
    if (keep) for await (const _ of leaving(released, gone));
  } finally {
    desk.runs.remove(run)
    asks?.end()
    if (!life.isReleased) await shot.release().catch(() => undefined)
  }
}

interface Sources {
  readonly output: OneShot['program']['output']
  readonly log: AsyncIterable<NetworkRecord> | undefined
  readonly asks: Asks | undefined
}

/** What it prints, and what happens by its network meanwhile; not reading holds the program back all the same. */
async function* merged({ output, log, asks }: Sources, gone: AbortSignal): AsyncGenerator<WireEvent, void, undefined> {
  const queue = new Queue<WireEvent>()
  const room = new Room()
  const over = new AbortController()
  const stop = asks?.listen({ onAsk: (ask) => queue.push(ask), onEnd: () => undefined })
  const reading = async (): Promise<void> => {
    for await (const event of leaving(output, gone)) {
      queue.push({ ...event, bytes: Uint8Array.from(event.bytes) })
      await room.wait(event.bytes.length)
    }
  }
  const logging = async (): Promise<void> => {
    for await (const record of leaving(log ?? new Queue<NetworkRecord>(), over.signal)) {
      queue.push({ type: 'record', record })
      await room.wait(recordBytes)
    }
  }
  void logging().catch(() => undefined)
  reading().then(
    () => queue.end(),
    (error: unknown) => queue.fail(error),
  )
  try {
    for await (const event of leaving(queue, gone)) {
      yield event
      if (event.bytes instanceof Uint8Array) room.free(event.bytes.length)
      else if (event.type === 'record') room.free(recordBytes)
    }
  } finally {
    stop?.()
    over.abort()
    room.free(Infinity)
  }
}

const mostWaiting = 2 ** 18
/** What a record counts for; of those that find no room the log tells how many were missed. */
const recordBytes = 512

/** How much waits to be read. */
class Room {
  #waiting = 0
  readonly #wakes = new Set<() => void>()

  async wait(bytes: number): Promise<void> {
    this.#waiting += bytes
    while (this.#waiting > mostWaiting) {
      await new Promise<void>((resolve) => {
        this.#wakes.add(resolve)
      })
    }
  }

  free(bytes: number): void {
    this.#waiting -= bytes
    for (const wake of this.#wakes) wake()
    this.#wakes.clear()
  }
}

function refuseNetwork({ sandbox }: OneShot): never {
  throw new SandboxError('conflict', `sandbox ${sandbox.id} has no network`)
}
