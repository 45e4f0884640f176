/** Requests made of the description by a generator with a fixed seed: mostly right, and wrong in one way or another. */
import { Agent, request } from 'node:http'
import { readdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import { openApi } from '../../src/server/openapi.js'
import { ownServer, plain } from './own-server.js'

const total = Number(process.env.GLOVEBOX_FUZZ ?? 10_000)
const seed = 20_261_117

/** mulberry32 */
function randomOf(start: number): () => number {
  let state = start
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let value = Math.imul(state ^ (state >>> 15), 1 | state)
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value
    return ((value ^ (value >>> 14)) >>> 0) / 4_294_967_296
  }
}

interface Schema {
  readonly type?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly allOf?: readonly Schema[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly examples?: readonly unknown[]
  readonly minimum?: number
  readonly maximum?: number
}

interface Operation {
  readonly operationId: string
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly schema: Schema }[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> }
}

const oddities: readonly unknown[] = [
  null,
  true,
  -1,
  0,
  1e308,
  9_007_199_254_740_993,
  '',
  'a\0b',
  '../../etc/passwd',
  '\ud800',
  '🦀'.repeat(50),
  [],
  {},
  [[[]]],
  { a: { b: {} } },
  'x'.repeat(5000),
]

class Maker {
  readonly #random: () => number

  constructor(random: () => number) {
    this.#random = random
  }

  chance(share: number): boolean {
    return this.#random() < share
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[Math.floor(this.#random() * items.length)] as Item
  }

  value(schema: Schema, depth = 0): unknown {
    if (this.chance(0.08) || depth > 6) return this.pick(oddities)
    const choices = schema.anyOf ?? schema.oneOf
    if (choices) return this.value(this.pick(choices), depth + 1)
    if (schema.allOf) return Object.assign({}, ...schema.allOf.map((each) => this.value(each, depth + 1)))
    if (schema.enum) return this.pick(schema.enum)
    if (schema.const !== undefined) return schema.const
    switch (schema.type) {
      case 'object':
        return this.#object(schema, depth)
      case 'array':
        return Array.from({ length: Math.floor(this.#random() * 3) }, () => this.value(schema.items ?? {}, depth + 1))
      case 'string':
        return this.pick([...(schema.examples ?? []), 'a', 'true', '10', '1s', 'echo', '.'])
      case 'integer':
      case 'number':
        return this.pick([schema.minimum ?? 0, 1, 2, 80, schema.maximum ?? 100])
      case 'boolean':
        return this.chance(0.5)
      default:
        return this.pick(oddities)
    }
  }

  #object({ properties = {}, required = [] }: Schema, depth: number): unknown {
    const entries = Object.entries(properties).filter(([name]) => (required.includes(name) ? !this.chance(0.05) : this.chance(0.15)))
    const more = this.chance(0.05) ? [[this.pick(['x', 'constructor', 'toString', '__proto__x']), 1] as const] : []
    return Object.fromEntries([...entries.map(([name, schema]) => [name, this.value(schema, depth + 1)] as const), ...more])
  }
}

test(`${total} requests made of the description: nothing fails on our side, and nothing grows`, { timeout: 900_000 }, async () => {
  await using own = await ownServer()
  const key = await own.key('red', 'admin')
  const client = own.client(key)
  const maker = new Maker(randomOf(seed))
  const document = openApi('0') as unknown as { readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>> }
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  )
  const agent = new Agent({ keepAlive: true, maxSockets: 8 })
  let { id } = await client.create(plain)
  const statuses = new Map<number, number>()
  const failures: string[] = []

  const one = async (): Promise<void> => {
    const { path, method, operation } = maker.pick(operations)
    const { target, headers, body } = requestFor(maker, { path, operation, id, key })
    const status = await send({ agent, port: own.port, method: method.toUpperCase(), target, headers, body, isCut: maker.chance(0.03) })
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
    // What cannot be had here, or has no room, is no failure of ours.
    if (status >= 500 && ![501, 502, 503, 507].includes(status))
      failures.push(`${status} ${method} ${target} ${JSON.stringify(body)?.slice(0, 300)} ${own.lines.findLast(({ defect }) => defect)?.defect}`)
  }

  const round = async (count: number): Promise<void> => {
    for (let done = 0; done < count; done += 8) await Promise.all(Array.from({ length: 8 }, one))
    await client.closeAll()
    for (const { id: pool } of (await own.ask('/v1/pools?limit=1000', { key })).json().items as { id: string }[]) await client.pools.close(pool)
    ;({ id } = await client.create(plain))
  }

  const heap = (): number => {
    globalThis.gc?.()
    return process.memoryUsage().rss
  }
  await round(Math.min(1000, total / 10))
  const before = { rss: heap(), descriptors: readdirSync('/proc/self/fd').length }
  for (let n = 0; n < 9; n += 1) await round(total / 10)
  expect(failures).toEqual([])
  expect(statuses.get(200)).toBeGreaterThan(total / 50)
  expect(statuses.get(400)).toBeGreaterThan(total / 50)
  expect(statuses.get(401)).toBeGreaterThan(0)
  agent.destroy()
  await expect.poll(() => readdirSync('/proc/self/fd').length - before.descriptors, { timeout: 30_000 }).toBeLessThanOrEqual(30)
  expect(heap() - before.rss).toBeLessThan(300 * 2 ** 20)
  expect((await own.ask('/v1/health')).status).toBe(200)
})

interface Wanted {
  readonly path: string
  readonly operation: Operation
  readonly id: string
  readonly key: string
}

function requestFor(maker: Maker, { path, operation, id, key }: Wanted) {
  const { parameters, requestBody } = operation
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => (name === 'id' && maker.chance(0.9) ? id : encodeURIComponent(wordFor(maker, name))))
  const query = parameters
    .filter((each) => each.in === 'query' && maker.chance(0.4))
    .map(({ name, schema }) => `${name}=${encodeURIComponent(text(maker.value(schema)))}`)
  const headers: Record<string, string> = {
    ...(maker.chance(0.97) && { authorization: `Bearer ${key}` }),
    accept: maker.pick(['application/json', 'application/x-ndjson', 'text/event-stream', '*/*']),
  }
  const [type, { schema } = { schema: {} }] = Object.entries(requestBody?.content ?? {})[0] ?? []
  if (type === undefined) return { target: filled + (query.length > 0 ? `?${query.join('&')}` : ''), headers, body: undefined }
  headers['content-type'] = maker.chance(0.97) ? type : 'text/plain'
  const made = type === 'application/json' ? JSON.stringify(held(maker.value(schema))) : text(maker.pick(oddities))
  const body = maker.chance(0.03) ? made.slice(0, made.length / 2) : made
  return { target: filled + (query.length > 0 ? `?${query.join('&')}` : ''), headers, body }
}

/** Sandboxes without walls, so that thousands are made in little time; and nothing that outlives the test. */
function held(body: unknown): unknown {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return body
  const { sandbox, spec, size, settings, ...rest } = body as Record<string, unknown>
  const own = 'template' in rest || 'limits' in rest || Object.keys(rest).length === 0 ? plain : {}
  return {
    ...rest,
    ...own,
    ...(sandbox !== undefined && { sandbox: plain }),
    ...(spec !== undefined && { spec: plain }),
    ...(settings !== undefined && { settings: { size: 0 } }),
    ...(size !== undefined && { size }),
  }
}

function wordFor(maker: Maker, name: string): string {
  return maker.pick([name === 'process' ? '1' : name === 'port' ? '9' : 'aaaaaaaaaaaaaaaaaaaa', 'default', 'x', '0', 'é', 'a b'])
}

function text(value: unknown): string {
  return typeof value === 'string' ? value.replace(/\p{Surrogate}/gu, '?') : JSON.stringify(value)
}

interface Sending {
  readonly agent: Agent
  readonly port: number
  readonly method: string
  readonly target: string
  readonly headers: Record<string, string>
  readonly body: string | undefined
  /** The connection is cut in the midst of it. */
  readonly isCut: boolean
}

/** Streams are read for a moment. */
function send({ agent, port, method, target, headers, body, isCut }: Sending): Promise<number> {
  return new Promise((resolve) => {
    const sent = request({ host: '127.0.0.1', port, path: target, method, headers, agent }, (response) => {
      const over = (): void => resolve(response.statusCode ?? 0)
      response.on('data', () => undefined)
      response.on('end', over)
      response.on('error', over)
      setTimeout(() => response.destroy(), 300).unref()
      response.on('close', over)
    })
    sent.on('error', () => resolve(0))
    sent.on('upgrade', (_, socket) => {
      socket.destroy()
      resolve(101)
    })
    sent.end(body)
    if (isCut) setImmediate(() => sent.destroy())
    setTimeout(() => sent.destroy(), 5000).unref()
  })
}
