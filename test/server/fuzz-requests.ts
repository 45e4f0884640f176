/** Requests made of the description: mostly right, wrong in one way or another, and about what earlier answers told of. */
import { openApi } from '../../src/server/openapi.js'
import { plain } from './own-server.js'

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

export interface FuzzRequest {
  readonly method: string
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
}

export interface Wanted {
  /** A sandbox that lives. */
  readonly id: string
  readonly key: string
}

export class RequestMaker {
  readonly #random: () => number
  readonly #operations = operationsOf()
  /** What answers named, by the parameter that stands for it: much of it is over by now. */
  readonly #known = new Map<string, string[]>()

  constructor(random: () => number) {
    this.#random = random
  }

  chance(share: number): boolean {
    return this.#random() < share
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[Math.floor(this.#random() * items.length)] as Item
  }

  /** Up to, and without. */
  below(most: number): number {
    return Math.floor(this.#random() * most)
  }

  make({ id, key }: Wanted): FuzzRequest {
    const { path, method, operation } = this.pick(this.#operations)
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => (name === 'id' && this.chance(0.8) ? id : encodeURIComponent(this.#wordFor(name))))
    const query = operation.parameters
      .filter((each) => each.in === 'query' && this.chance(0.4))
      .map(({ name, schema }) => `${name}=${encodeURIComponent(text(this.#value(schema)))}`)
    const accept = this.pick(['application/json', 'application/x-ndjson', 'text/event-stream', '*/*'])
    const headers = {
      accept,
      ...(this.chance(0.97) && { authorization: `Bearer ${key}` }),
      ...(this.chance(0.1) && { 'idempotency-key': `k${this.below(50)}` }),
    }
    const target = filled + (query.length > 0 ? `?${query.join('&')}` : '')
    const [type, { schema } = { schema: {} }] = Object.entries(operation.requestBody?.content ?? {})[0] ?? []
    if (type === undefined) return { method, target, headers, body: undefined }
    const made = type === 'application/json' ? JSON.stringify(held(this.#value(schema))) : text(this.pick(oddities))
    const body = this.chance(0.03) ? made.slice(0, made.length / 2) : made
    return { method, target, headers: { ...headers, 'content-type': this.chance(0.97) ? type : 'text/plain' }, body }
  }

  /** What an answer names is asked about later, when it may be over. */
  learn(answer: string): void {
    for (const [, name = '', value = ''] of answer.matchAll(/"(id|run|pid|execution|call|ask|context|snapshot)":\s*"?([\w:-]{1,64})/g)) {
      for (const param of namesFor[name] ?? [name]) this.#remember(param, value)
    }
  }

  #remember(name: string, value: string): void {
    const known = this.#known.get(name) ?? []
    known.push(value)
    this.#known.set(name, known.slice(-20))
  }

  #wordFor(name: string): string {
    const known = this.#known.get(name)
    if (known && this.chance(0.7)) return this.pick(known)
    return this.pick([name === 'process' ? '1' : name === 'port' ? '9' : 'aaaaaaaaaaaaaaaaaaaa', 'default', 'x', '0', 'é', 'a b'])
  }

  #value(schema: Schema, depth = 0): unknown {
    if (this.chance(0.08) || depth > 6) return this.pick(oddities)
    const choices = schema.anyOf ?? schema.oneOf
    if (choices) return this.#value(this.pick(choices), depth + 1)
    if (schema.allOf) return Object.assign({}, ...schema.allOf.map((each) => this.#value(each, depth + 1)))
    if (schema.enum) return this.pick(schema.enum)
    if (schema.const !== undefined) return schema.const
    switch (schema.type) {
      case 'object':
        return this.#object(schema, depth)
      case 'array':
        return Array.from({ length: this.below(3) }, () => this.#value(schema.items ?? {}, depth + 1))
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
    return Object.fromEntries([...entries.map(([name, schema]) => [name, this.#value(schema, depth + 1)] as const), ...more])
  }
}

/** Keys and tenants are not among them: whoever asks must go on being let in. */
const namesFor: Readonly<Record<string, readonly string[]>> = { id: ['id', 'pool', 'context', 'snapshot'], pid: ['process'] }

function operationsOf() {
  const { paths } = openApi('0') as unknown as { readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>> }
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  )
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

function text(value: unknown): string {
  return typeof value === 'string' ? value.replace(/\p{Surrogate}/gu, '?') : JSON.stringify(value)
}
