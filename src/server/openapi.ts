/** The description of all routes for other programs, made of what the server itself goes by. */
import * as z from 'zod'
import { auditRecordSchema } from '../contract/audit.js'
import { limitsSchema } from '../contract/limits.js'
import { networkSchema } from '../contract/network.js'
import { policySchema } from '../contract/policy.js'
import { receiptSchema } from '../contract/receipt.js'
import { runRequestSchema } from '../contract/run.js'
import { specSchema } from '../contract/spec.js'
import { entryReply } from '../contract/wire/files.js'
import { media, wireHeaders } from '../contract/wire/media.js'
import { errorReply, type Shape } from '../contract/wire/pieces.js'
import { type Route, type RouteName, routes } from '../contract/wire/routes.js'
import { endingReply, networkRecord, networkSummary } from '../contract/wire/pieces-of-runs.js'
import { infoReply, sandboxEvent } from '../contract/wire/sandboxes.js'
import { shapes } from '../contract/wire/shapes.js'

type Json = Readonly<Record<string, unknown>>

const methodsOfProxy = ['get', 'post', 'put', 'patch', 'delete'] as const

export function openApi(version: string): Json {
  const paths: Record<string, Record<string, unknown>> = {}
  for (const name of Object.keys(routes) as RouteName[]) {
    const route: Route = routes[name]
    const path = route.path.replace(/:(\w+)/g, '{$1}').replace(/\*$/, '{rest}')
    const methods = route.method === '*' ? methodsOfProxy : [route.method.toLowerCase()]
    for (const method of methods) (paths[path] ??= {})[method] = operation(name, route, route.method === '*' ? `${name}.${method}` : name)
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Glovebox', version, description: 'Sandboxes for code that nobody has vouched for.' },
    security: [{ key: [] }],
    paths: withNames(paths),
    components: {
      securitySchemes: { key: { type: 'http', scheme: 'bearer', description: 'A key, as `glovebox keys create` prints it.' } },
      responses: {
        Error: { description: 'what went wrong', content: { [media.json]: { schema: { $ref: '#/components/schemas/Error' } } } },
      },
      schemas: Object.fromEntries(named.map(([name, schema]) => [name, withNames(schemaOf(schema), name)])),
    },
  }
}

/** What stands in many places has one. */
const named: readonly (readonly [string, z.ZodType])[] = [
  ['Error', errorReply],
  ['Receipt', receiptSchema],
  ['Sandbox', infoReply],
  ['NetworkSummary', networkSummary],
  ['NetworkRecord', networkRecord],
  ['SandboxEvent', sandboxEvent],
  ['Ending', endingReply],
  ['Spec', specSchema],
  ['Network', networkSchema],
  ['Policy', policySchema],
  ['Run', runRequestSchema],
  ['Limits', limitsSchema],
  ['Entry', entryReply],
  ['AuditRecord', auditRecordSchema],
]

/** Whatever is the same as something that has a name is told by that, but for the thing itself. */
function withNames(schema: unknown, own?: string): unknown {
  if (typeof schema !== 'object' || schema === null) return schema
  const text = JSON.stringify(schema)
  const known = named.find(([name, each]) => name !== own && text.length > 200 && textOf(each) === text)
  if (known) return { $ref: `#/components/schemas/${known[0]}` }
  if (Array.isArray(schema)) return schema.map((each) => withNames(each))
  return Object.fromEntries(Object.entries(schema).map(([key, each]) => [key, withNames(each)]))
}

const texts = new WeakMap<z.ZodType, string>()

function textOf(schema: z.ZodType): string {
  const text = texts.get(schema) ?? JSON.stringify(schemaOf(schema))
  texts.set(schema, text)
  return text
}

function operation(name: RouteName, route: Route, id: string): Json {
  const shape: Shape = shapes[name]
  return {
    operationId: id,
    summary: route.does,
    tags: [name.split('.')[0]],
    ...((route.scope === 'public' || route.scope === 'signed') && { security: [] }),
    'x-glovebox-scope': route.scope,
    parameters: [...pathParameters(route), ...queryParameters(shape), ...headerParameters(route)],
    ...requestBody(route, shape),
    responses: responses(route, shape),
  }
}

function pathParameters({ path }: Route): readonly Json[] {
  const names = [...path.matchAll(/:(\w+)/g)].map(([, name]) => name).concat(path.endsWith('*') ? ['rest'] : [])
  return names.map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } }))
}

function queryParameters({ query }: Shape): readonly Json[] {
  if (!query) return []
  const { properties = {}, required = [] } = schemaOf(query) as { readonly properties?: Json; readonly required?: readonly string[] }
  return Object.entries(properties).map(([name, schema]) => ({ name, in: 'query', required: required.includes(name), schema }))
}

function headerParameters({ creates }: Route): readonly Json[] {
  return creates ? [{ name: wireHeaders.idempotency, in: 'header', required: false, schema: { type: 'string', maxLength: 200 } }] : []
}

function requestBody({ takes }: Route, { body }: Shape): Json {
  if (takes === 'bytes' || takes === 'tar') return { requestBody: { content: { [takes === 'tar' ? media.tar : media.bytes]: { schema: {} } } } }
  if (!body) return {}
  return { requestBody: { content: { [media.json]: { schema: schemaOf(body) } } } }
}

function responses(route: Route, shape: Shape): Json {
  const [status, content] = success(route, shape)
  return { [status]: { description: route.does, ...(content && { content }) }, default: { $ref: '#/components/responses/Error' } }
}

function success({ reply, creates }: Route, shape: Shape): readonly [number, Json | undefined] {
  const value = shape.reply && { [media.json]: { schema: schemaOf(shape.reply) } }
  const event = shape.event && { schema: schemaOf(shape.event) }
  const stream = { [media.sse]: event ?? {}, [media.ndjson]: event ?? {}, [media.frames]: {} }
  switch (reply) {
    case 'json':
      return [creates ? 201 : 200, value]
    case 'result':
      return [200, { ...value, ...stream }]
    case 'events':
      return [200, stream]
    case 'bytes':
      return [200, { [media.bytes]: {} }]
    case 'text':
      return [200, { 'text/plain': {} }]
    case 'raw':
      return [200, undefined]
    case 'upgrade':
      return [101, undefined]
    case 'none':
      return [204, undefined]
  }
}

/** As it is written by whoever asks. What only code can say is left open. */
function schemaOf(schema: z.ZodType): Json {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any', target: 'draft-2020-12', reused: 'inline' })
  return rest
}
