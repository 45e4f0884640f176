import { SandboxError } from '../../contract/errors.js'
import type { CreationOptions } from '../../contract/platform-network.js'
import type { SandboxFilter, SandboxInfo } from '../../contract/platform.js'
import { type Answer, events, json, none } from '../answers.js'
import type { Call, Handlers } from '../call.js'
import type { Desk } from '../desk.js'
import { pageOf } from '../pages.js'
import { checkScope } from '../scopes.js'

type Names =
  | 'sandboxes.create'
  | 'sandboxes.list'
  | 'sandboxes.closeAll'
  | 'sandboxes.get'
  | 'sandboxes.close'
  | 'sandboxes.extend'
  | 'sandboxes.lifetime'
  | 'sandboxes.pause'
  | 'sandboxes.resume'
  | 'sandboxes.limit'
  | 'sandboxes.usage'
  | 'sandboxes.receipt'
  | 'sandboxes.events'
  | 'sandboxes.release'
  | 'sandboxes.changes'

type Filtered = Call<'sandboxes.list' | 'sandboxes.closeAll'>

/** A filter as a query has it. */
function filterOf({ name, agent, metadata }: Pick<Filtered['query'], 'name' | 'agent' | 'metadata'>): SandboxFilter {
  const pairs = (metadata ?? []).map((pair) => [unescaped(pair.slice(0, pair.indexOf('='))), pair.slice(pair.indexOf('=') + 1)] as const)
  return { ...(name !== undefined && { name }), ...(agent !== undefined && { agent }), ...(metadata && { metadata: Object.fromEntries(pairs) }) }
}

/** A key may have a = of its own, which is escaped once more. */
function unescaped(key: string): string {
  try {
    return decodeURIComponent(key)
  } catch {
    return key
  }
}

/** Makes a sandbox whose questions about the network, if it asks any, are put to whoever reads them. */
export async function created(
  { platform, actor, signal }: Pick<Call, 'platform' | 'actor' | 'signal'>,
  { desk, approvals }: { readonly desk: Desk; readonly approvals: boolean | undefined },
  create: (options: CreationOptions) => Promise<SandboxInfo>,
): Promise<Answer> {
  const opened = approvals ? desk.openAsks() : undefined
  const info = await create({ signal, ...(opened && { onRequest: opened.asks.judge }) })
  opened?.keepFor(actor.tenant, platform, info.id)
  return json(info, 201)
}

interface Holding {
  readonly gone: AbortSignal
  readonly close: () => Promise<void>
}

/** For a sandbox that is whoever's who reads this: it goes with them, however they went. */
async function* held<Event>(told: AsyncIterable<Event>, { gone, close }: Holding): AsyncGenerator<Event, void, undefined> {
  try {
    yield* told
  } finally {
    // A server that stops ends this stream first, and lets what is under way end.
    if (gone.aborted) await close()
  }
}

export function sandboxHandlers(desk: Desk): Handlers<Names> {
  return {
    'sandboxes.create': (call) => {
      desk.checkSpec(call.body)
      const { approvals, hold } = call.query
      return created(call, { desk, approvals }, async (options) => {
        const made = await call.platform.create(call.body, options)
        if (hold) desk.holders.expect(made.id, () => call.platform.close(made.id))
        return made
      })
    },
    'sandboxes.list': async ({ platform, query, signal }) => {
      const found: SandboxInfo[] = []
      for await (const info of platform.list(filterOf(query), { signal })) found.push(info)
      return json(pageOf(found, query, ({ createdAt, id }) => `${createdAt} ${id}`))
    },
    'sandboxes.closeAll': async ({ platform, query }) => {
      const filter = filterOf(query)
      if (Object.keys(filter).length === 0 && query.all !== true)
        throw new SandboxError('invalid', 'query: say which ones, or all=true for every sandbox there is')
      return json({ closed: await platform.closeAll(query.all === true ? undefined : filter) })
    },
    'sandboxes.get': async ({ platform, params, signal }) => json(await platform.info(params.id, { signal })),
    'sandboxes.close': async ({ platform, params }) => {
      await platform.close(params.id)
      return none
    },
    'sandboxes.extend': async ({ platform, params, body, signal }) => json(await platform.life.extend(params.id, body.duration, { signal })),
    'sandboxes.lifetime': async ({ platform, params, body, signal }) => json(await platform.life.setLifetime(params.id, body.duration, { signal })),
    'sandboxes.pause': async ({ platform, params, body: { memory }, signal }) =>
      json(await platform.life.pause(params.id, { signal, ...(memory !== undefined && { memory }) })),
    'sandboxes.resume': async ({ platform, params, signal }) => json(await platform.life.resume(params.id, { signal })),
    'sandboxes.limit': async ({ platform, params, body, signal }) => json(await platform.limit(params.id, body, { signal })),
    'sandboxes.usage': async ({ platform, params, signal }) => json(await platform.usage(params.id, { signal })),
    'sandboxes.receipt': async ({ platform, params, signal }) => json(await platform.receipt(params.id, { signal })),
    'sandboxes.events': async ({ platform, params, query, actor, signal, gone }) => {
      if (query.hold) checkScope(actor, 'run')
      const told = platform.life.events(params.id, { signal })
      // So that a sandbox that is not there is told by the status.
      await platform.info(params.id, { signal })
      if (query.hold) desk.holders.came(params.id)
      return events((query.hold ? held(told, { gone, close: () => platform.close(params.id) }) : told) as AsyncIterable<never>)
    },
    'sandboxes.release': async ({ platform, params }) => json(await platform.pools.release(params.id)),
    'sandboxes.changes': async ({ platform, params, query, signal }) => {
      const written = await platform.changes.written(params.id, query.target, { signal })
      return json(pageOf(written, query, ({ path }) => path))
    },
  }
}
