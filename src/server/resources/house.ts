/** Keys, tenants, the audit trail, and the server itself. */
import type { AuditFilter, AuditTrail } from '../../contract/audit.js'
import { SandboxError } from '../../contract/errors.js'
import type { ListenOptions, PlatformEventType } from '../../contract/events.js'
import { type House, includesScope, type Keys, type Quotas, type Tenants } from '../../contract/tenants.js'
import type { TemplateListing } from '../../contract/templates.js'
import { type Answer, events, json, none } from '../answers.js'
import type { Call, Handlers } from '../call.js'
import type { Desk } from '../desk.js'
import { openApi } from '../openapi.js'
import { pageOf } from '../pages.js'
import type { Tickets } from '../tickets.js'

/** What the server is given beside platforms. */
export interface HouseParts {
  readonly house: House
  readonly keys: Keys
  readonly tenants: Tenants
  readonly quotas: Quotas
  readonly audit: AuditTrail
  readonly templates: { list(): Promise<readonly TemplateListing[]> }
  /** For Prometheus. Not given: there are no figures. */
  readonly metrics?: (accept: string | undefined) => { readonly text: string; readonly contentType: string }
  readonly version: string
}

type KeyNames = 'keys.create' | 'keys.list' | 'keys.revoke'
type TenantNames = 'tenants.create' | 'tenants.list' | 'tenants.get' | 'tenants.update' | 'tenants.remove' | 'tenants.usage' | 'usage.own'
type AuditNames = 'audit.list' | 'audit.tail' | 'audit.head' | 'audit.verify' | 'audit.export'
type HouseNames =
  | 'calls.cancel'
  | 'tickets.create'
  | 'templates.list'
  | 'templates.get'
  | 'house.events'
  | 'house.probe'
  | 'house.openapi'
  | 'house.health'
  | 'house.ready'
  | 'house.metrics'

type Stated<Value> = { [Key in keyof Value]?: Exclude<Value[Key], undefined> }

function stated<Value extends object>(value: Value): Stated<Value> {
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined)) as Stated<Value>
}

export function keyHandlers({ keys }: HouseParts): Handlers<KeyNames> {
  return {
    'keys.create': async ({ actor, body }) => json(await keys.create(body, actor), 201),
    'keys.list': async ({ query: { tenant, all, ...page } }) => json(await keys.list(stated({ tenant, all }), stated(page))),
    'keys.revoke': async ({ actor, params }) => json({ revoked: await keys.revoke(params.key, actor) }),
  }
}

export function tenantHandlers({ tenants, quotas }: HouseParts): Handlers<TenantNames> {
  return {
    'tenants.create': async ({ actor, body }) => json(await tenants.create(body, actor), 201),
    'tenants.list': async ({ query }) => json(await tenants.list(stated(query))),
    'tenants.get': async ({ params }) => json(await tenants.get(params.tenant)),
    'tenants.update': async ({ actor, params, body }) => json(await tenants.update(params.tenant, body, actor)),
    'tenants.remove': async ({ actor, params }) => json({ removed: await tenants.remove(params.tenant, actor) }),
    'tenants.usage': async ({ params }) => json(await quotas.usage((await tenants.get(params.tenant)).id)),
    'usage.own': async ({ actor }) => json(await quotas.usage(actor.tenant)),
  }
}

export function auditHandlers({ audit }: HouseParts): Handlers<AuditNames> {
  return {
    'audit.list': async ({ query: { limit, cursor, from, ...filter } }) => json(await audit.list(stated(filter), stated({ limit, cursor, from }))),
    'audit.tail': ({ query: { last, ...filter }, signal }) =>
      Promise.resolve(events(audit.tail(stated(filter) as AuditFilter, { signal, ...stated({ last }) }) as AsyncIterable<never>)),
    'audit.head': async () => json(await audit.head()),
    'audit.verify': async ({ body: { anchor }, signal }) => json(await audit.verify({ signal, ...stated({ anchor }) })),
    'audit.export': ({ signal }) =>
      Promise.resolve({ kind: 'bytes', bytes: inBytes(audit.export({ signal })), headers: { 'content-type': 'application/x-ndjson' } } satisfies Answer),
  }
}

async function* inBytes(lines: AsyncIterable<string>): AsyncGenerator<Uint8Array, void, undefined> {
  const utf8 = new TextEncoder()
  for await (const line of lines) yield utf8.encode(line.endsWith('\n') ? line : `${line}\n`)
}

export interface HouseDesk {
  readonly desk: Desk
  readonly tickets: Tickets
  /** False once it takes no new work. */
  readonly isReady: () => boolean
}

export function houseHandlers(parts: HouseParts, { desk, tickets, isReady }: HouseDesk): Handlers<HouseNames> {
  const { templates, metrics, version } = parts
  let described: unknown
  return {
    'calls.cancel': ({ actor, params }) => {
      desk.calls.find(actor.tenant, params.call)?.abort(new SandboxError('closed', 'the call was called off'))
      return Promise.resolve(none)
    },
    'tickets.create': ({ actor }) => Promise.resolve(json(tickets.issue(actor), 201)),
    'templates.list': async ({ query }) => json(pageOf(await templates.list(), query, ({ name, id }) => `${name} ${id}`)),
    'templates.get': async ({ params }) => {
      const found = (await templates.list()).find(({ name, id }) => name === params.template || id === params.template)
      if (!found) throw new SandboxError('not-found', `there is no template ${params.template} here`)
      return json(found)
    },
    'house.events': (call) => Promise.resolve(events(parts.house.events.listen(eventWish(call)) as AsyncIterable<never>)),
    'house.probe': async ({ platform, signal }) => json({ items: await platform.probe({ signal }) }),
    'house.openapi': () => Promise.resolve(json((described ??= openApi(version)))),
    'house.health': () => Promise.resolve(json({ status: 'ok' })),
    'house.ready': () => Promise.resolve(json({ ready: isReady() }, isReady() ? 200 : 503)),
    'house.metrics': ({ request }) => {
      if (!metrics) return Promise.reject(new SandboxError('unsupported', 'this server counts nothing'))
      const { text, contentType } = metrics(request.headers.accept)
      return Promise.resolve({ kind: 'text', text, type: contentType })
    },
  }
}

/** Its own tenant's; those of others are for whoever may name them. A reader of Server-Sent Events that comes back says by a header how far it was. */
function eventWish({ actor, query, signal, request }: Call<'house.events'>): ListenOptions {
  const { tenant, types, after = request.headers['last-event-id'], sandbox, agent } = query
  if (tenant !== undefined && tenant !== actor.tenant && !includesScope(actor.scopes, 'admin'))
    throw new SandboxError('forbidden', 'tenant: only a key for admin may name another')
  const whose = includesScope(actor.scopes, 'admin') ? stated({ tenant }) : { tenant: actor.tenant }
  const chosen = types === undefined ? {} : { types: types.split(',') as readonly PlatformEventType[] }
  return { signal, ...stated({ sandbox, agent }), ...(typeof after === 'string' && { after }), ...chosen, ...whose }
}
