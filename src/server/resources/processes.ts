import type { PlatformProcess } from '../../contract/platform.js'
import type { RunRequest, SignalName } from '../../contract/run.js'
import { media } from '../../contract/wire/media.js'
import { type Answer, events, json, none, type WireEvent } from '../answers.js'
import type { Call, Handlers } from '../call.js'
import type { Desk } from '../desk.js'
import { leaving } from '../leaving.js'
import { inOrder, pageOf } from '../pages.js'
import { capture, feed, feedAll, findProcess, inputBytes, outputOf, whileStarting } from '../programs.js'

type Names =
  | 'processes.start'
  | 'processes.list'
  | 'processes.attach'
  | 'processes.output'
  | 'processes.stdin'
  | 'processes.signal'
  | 'processes.resize'
  | 'processes.kill'

export function processHandlers(desk: Desk): Handlers<Names> {
  return {
    'processes.start': (call) => start(desk, call),
    'processes.list': async ({ platform, params, query, signal }) => {
      const found = await platform.processes.list(params.id, { signal })
      return json(pageOf(found, query, (_, index) => inOrder(index)))
    },
    'processes.attach': async (call) => events(tell(desk, call, { process: await findProcess(desk, call, call.body), isKept: true })),
    'processes.output': async (call) => events(outputOf(await findProcess(desk, call, call.query), call.gone, call.query)),
    'processes.stdin': async (call) => {
      await feed(await findProcess(desk, call), call)
      return none
    },
    'processes.signal': async (call) => {
      await (await findProcess(desk, call)).signal(call.body.signal as SignalName)
      return none
    },
    'processes.resize': async (call) => {
      await (await findProcess(desk, call)).resize(call.body)
      return none
    },
    'processes.kill': async (call) => {
      await (await findProcess(desk, call)).kill(call.body.reason)
      return none
    },
  }
}

/** A run belongs to the stream that tells of it, and ends with it; a process that is kept does not. */
async function start(desk: Desk, call: Call<'processes.start'>): Promise<Answer> {
  const { input, ...rest } = call.body as unknown as RunRequest & { readonly input?: unknown }
  const bytes = inputBytes(input)
  const isKept = rest.background === true || rest.terminal !== undefined
  const request = { ...rest, ...(bytes && { stdin: true }), ...(call.stream === undefined && !isKept && { output: rest.output ?? {} }) }
  const begin = (signal: AbortSignal): Promise<PlatformProcess> => call.platform.start(call.params.id, request, { signal })
  const process = await (isKept ? whileStarting(call.signal, begin) : begin(call.signal))
  feedAll(process, bytes)
  if (call.stream !== undefined) return events(tell(desk, call, { process, isKept }))
  return isKept ? json({ pid: process.pid }, 201) : json(await capture(process, call.gone))
}

interface Told {
  readonly process: PlatformProcess
  readonly isKept: boolean
}

/** A client of ours reads what is kept by itself, as often as it likes; for others it is told here. */
async function* tell(
  desk: Desk,
  { actor, params, gone, stream }: Call<'processes.start'> | Call<'processes.attach'>,
  { process, isKept }: Told,
): AsyncGenerator<WireEvent, void, undefined> {
  const held = { sandbox: params.id, process }
  const view = desk.views.add(actor.tenant, held)
  try {
    yield { type: 'started', view, pid: process.pid }
    if (!isKept || stream !== media.frames) yield* leaving(process.output, gone)
    const ending = await untilAborted(process.ended, gone)
    if (ending) yield { type: 'ended', ending }
  } finally {
    desk.views.remove(view)
    if (!(isKept && gone.aborted) && process.pid !== 0) desk.endedViews.add(actor.tenant, held, view)
  }
}

/** Undefined once nobody waits any more. */
function untilAborted<Value>(pending: Promise<Value>, signal: AbortSignal): Promise<Value | undefined> {
  return new Promise((resolve, reject) => {
    const over = (): void => resolve(undefined)
    signal.addEventListener('abort', over, { once: true })
    pending.then(resolve, reject).finally(() => signal.removeEventListener('abort', over))
    if (signal.aborted) over()
  })
}
