/** Ports, networks, snapshots and pools. */
import type { NetworkInput } from '../../contract/network.js'
import type { PoolInput } from '../../contract/pools.js'
import { portSchema } from '../../contract/ports.js'
import { parseWith } from '../../contract/refusal.js'
import type { SpecInput } from '../../contract/spec.js'
import { media } from '../../contract/wire/media.js'
import { takeSchema } from '../../contract/wire/places.js'
import { events, json, none } from '../answers.js'
import type { Handlers } from '../call.js'
import type { Desk } from '../desk.js'
import { HttpError } from '../http-error.js'
import { inOrder, pageOf } from '../pages.js'
import { Queue } from '../queue.js'
import { changeInJson, download } from './files.js'
import { created } from './sandboxes.js'

type NetworkNames = 'ports.wait' | 'network.update' | 'network.log' | 'network.summary' | 'network.asks' | 'network.approve'
type SnapshotNames = 'snapshots.take' | 'snapshots.diff' | 'snapshots.export' | 'snapshots.fork' | 'snapshots.list' | 'snapshots.remove'
type PoolNames = 'pools.create' | 'pools.list' | 'pools.status' | 'pools.acquire' | 'pools.close' | 'pools.take'

export function portOf(text: string): number {
  return parseWith(portSchema, /^\d{1,5}$/.test(text) ? Number(text) : text, 'port')
}

export function networkHandlers(desk: Desk): Handlers<NetworkNames> {
  return {
    'ports.wait': async ({ platform, params, body: { timeout }, signal }) => {
      await platform.ports.waitFor(params.id, portOf(params.port), { signal, ...(timeout !== undefined && { timeout }) })
      return none
    },
    'network.update': async ({ platform, params, body, signal }) => {
      desk.checkNetwork(body)
      return json(await platform.network.update(params.id, body as unknown as Exclude<NetworkInput, false>, { signal }))
    },
    'network.log': async ({ platform, params, signal }) => {
      const log = platform.network.log(params.id, { signal })
      // So that a sandbox without one is told by the status.
      await platform.network.summary(params.id, { signal })
      return events(log as AsyncIterable<never>)
    },
    'network.summary': async ({ platform, params, query: { settled }, signal }) =>
      json(await platform.network.summary(params.id, { signal, ...(settled !== undefined && { settled }) })),
    'network.asks': async ({ actor, platform, params, signal, gone }) => {
      await platform.info(params.id, { signal })
      const queue = new Queue<{ readonly [key: string]: unknown }>()
      const stop = desk.asksOf(actor.tenant, params.id).listen({ onAsk: (ask) => queue.push(ask), onEnd: () => queue.end() })
      const leave = (): void => {
        stop()
        queue.end()
      }
      gone.addEventListener('abort', leave, { once: true })
      return events(queue)
    },
    'network.approve': ({ actor, params, body }) => {
      desk.asksOf(actor.tenant, params.id).answer(params.ask, body.approval)
      return Promise.resolve(none)
    },
  }
}

const optional = <Key extends string, Value>(key: Key, value: Value | undefined): { readonly [Each in Key]?: Value } =>
  (value === undefined ? {} : { [key]: value }) as { readonly [Each in Key]?: Value }

export const snapshotHandlers: Handlers<SnapshotNames> = {
  'snapshots.take': async ({ platform, params, body: { name }, signal }) =>
    json(await platform.snapshots.take(params.id, { signal, ...optional('name', name) }), 201),
  'snapshots.diff': async ({ platform, params, query: { since, ...page }, signal }) => {
    const changes = await platform.snapshots.diff(params.id, { signal, ...optional('since', since) })
    return json(
      pageOf(
        changes.map((change) => changeInJson(change)),
        page,
        (_, index) => inOrder(index),
      ),
    )
  },
  'snapshots.export': async ({ platform, params, query: { since }, signal }) =>
    download(await platform.snapshots.export(params.id, { signal, ...optional('since', since) }), media.tar),
  'snapshots.fork': async ({ platform, params, body: { count = 1, name, metadata }, signal }) =>
    json({ items: await platform.snapshots.fork(params.id, count, { signal, ...optional('name', name), ...optional('metadata', metadata) }) }, 201),
  'snapshots.list': async ({ platform, query, signal }) =>
    json(pageOf(await platform.snapshots.list({ signal }), query, ({ createdAt, id, name = '' }) => `${createdAt} ${id} ${name}`)),
  'snapshots.remove': async ({ platform, params, signal }) => json({ removed: await platform.snapshots.remove(params.snapshot, { signal }) }),
}

export function poolHandlers(desk: Desk): Handlers<PoolNames> {
  return {
    'pools.create': async ({ actor, platform, body, signal }) => {
      const { spec = {}, settings = {}, ...rest } = body as unknown as { readonly spec?: SpecInput; readonly settings?: PoolInput }
      refuseMore(rest)
      desk.checkSpec(spec)
      const info = await platform.pools.create(spec, settings, { signal })
      desk.pools.add(actor.tenant, info, info.id)
      return json(info, 201)
    },
    'pools.list': ({ actor, query }) => Promise.resolve(json(pageOf(desk.pools.of(actor.tenant), query, ({ id }) => id))),
    'pools.status': async ({ platform, params, signal }) => json(await platform.pools.status(params.pool, { signal })),
    'pools.acquire': (call) =>
      created(call, { desk, approvals: call.query.approvals }, (options) => call.platform.pools.acquire(call.params.pool, call.body, options)),
    'pools.close': async ({ actor, platform, params }) => {
      await platform.pools.close(params.pool)
      if (desk.pools.find(actor.tenant, params.pool)) desk.pools.remove(params.pool)
      return none
    },
    'pools.take': (call) => {
      const { spec = {}, ...given } = call.body as unknown as { readonly spec?: SpecInput }
      desk.checkSpec(spec)
      const { fresh, ready, language, approvals } = parseWith(takeSchema, given, 'body')
      const how = { ...optional('fresh', fresh), ...optional('pool', ready), ...optional('language', language) }
      return created(call, { desk, approvals }, (options) => call.platform.pools.take(spec, { ...options, ...how }))
    },
  }
}

function refuseMore(rest: object): void {
  const [unknown] = Object.keys(rest)
  if (unknown !== undefined) throw new HttpError(400, `${unknown.slice(0, 60)}: is not a known field`)
}
