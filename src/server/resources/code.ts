import type { CodeResult, PlatformExecution } from '../../contract/code.js'
import { joinBytes } from '../../contract/wire/frames.js'
import { type Answer, events, json, none, type WireEvent } from '../answers.js'
import type { Call, Handlers } from '../call.js'
import type { Desk } from '../desk.js'
import { SandboxError } from '../../contract/errors.js'
import { leaving } from '../leaving.js'
import { pageOf } from '../pages.js'

type Names = 'code.languages' | 'code.execute' | 'code.answer' | 'code.interrupt' | 'contexts.create' | 'contexts.list' | 'contexts.restart' | 'contexts.remove'

export function codeHandlers(desk: Desk): Handlers<Names> {
  const find = ({ actor, params }: Call<'code.answer' | 'code.interrupt'>): PlatformExecution => {
    const held = desk.executions.get(actor.tenant, params.execution)
    if (held.sandbox !== params.id) throw new SandboxError('not-found', 'there is no such execution here')
    return held.execution
  }
  return {
    'code.languages': async ({ platform, params, signal }) => json(await platform.code.languages(params.id, { signal })),
    'code.execute': async (call) => {
      const { platform, params, body, signal } = call
      const execution = await platform.code.execute(params.id, body, { signal })
      return call.stream === undefined ? gather(execution, call) : events(tell(desk, call, execution))
    },
    'code.answer': async (call) => {
      await find(call).answer(call.body.line)
      return none
    },
    'code.interrupt': async (call) => {
      await find(call).interrupt()
      return none
    },
    'contexts.create': async ({ platform, params, body, signal }) => json(await platform.code.createContext(params.id, body, { signal }), 201),
    'contexts.list': async ({ platform, params, query, signal }) =>
      json(pageOf(await platform.code.listContexts(params.id, { signal }), query, ({ createdAt, id }) => `${createdAt} ${id}`)),
    'contexts.restart': async ({ platform, params, signal }) => json(await platform.code.restartContext(params.id, params.context, { signal })),
    'contexts.remove': async ({ platform, params, signal }) => json({ removed: await platform.code.removeContext(params.id, params.context, { signal }) }),
  }
}

/** Leaving it interrupts it, as it does everywhere. */
async function* tell(desk: Desk, { actor, params, gone }: Call<'code.execute'>, execution: PlatformExecution): AsyncGenerator<WireEvent, void, undefined> {
  const name = desk.executions.add(actor.tenant, { sandbox: params.id, execution })
  try {
    yield { type: 'begun', execution: name }
    yield* leaving(execution.events, gone) as AsyncIterable<WireEvent>
    if (gone.aborted) return
    yield { type: 'ended', ending: await execution.ended }
  } finally {
    desk.executions.remove(name)
  }
}

/** Of all that it prints. */
const mostGathered = 10 * 2 ** 20

async function gather(execution: PlatformExecution, { gone }: Call<'code.execute'>): Promise<Answer> {
  const kept = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] }
  const results: CodeResult[] = []
  let [room, truncated] = [mostGathered, false]
  for await (const event of leaving(execution.events, gone)) {
    if (event.type === 'result') results.push(event.result)
    // Nobody sees the question, so nobody can answer.
    if (event.type === 'ask') await execution.answer(null).catch(() => undefined)
    if (event.type !== 'stdout' && event.type !== 'stderr') continue
    const bytes = event.bytes.subarray(0, room)
    room -= bytes.length
    truncated ||= bytes.length < event.bytes.length
    kept[event.type].push(Uint8Array.from(bytes))
  }
  const ending = await execution.ended
  const text = (pieces: readonly Uint8Array[]): string => new TextDecoder('utf-8', { ignoreBOM: true }).decode(joinBytes(pieces))
  return json({ ...ending, stdout: text(kept.stdout), stderr: text(kept.stderr), truncated, results })
}
