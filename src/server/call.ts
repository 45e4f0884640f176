/** One request, once it is known who asks for what. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { parseWith } from '../contract/refusal.js'
import type { Platform } from '../contract/platform.js'
import type { Actor } from '../contract/tenants.js'
import type { ParamsOf, RouteName } from '../contract/wire/routes.js'
import { type ParsedBody, type QueryOf, shapes } from '../contract/wire/shapes.js'
import type { Shape } from '../contract/wire/pieces.js'
import type { Answer, StreamType } from './answers.js'
import { HttpError } from './http-error.js'

export interface Call<Name extends RouteName = RouteName> {
  readonly name: Name
  readonly params: ParamsOf<Name>
  readonly query: QueryOf<Name>
  readonly body: ParsedBody<Name>
  readonly actor: Actor
  /** As this actor has it. */
  readonly platform: Platform
  /** Aborts when the other side is gone or calls it off. */
  readonly signal: AbortSignal
  /** Aborts only when the other side is gone: what is called off is told to the end. */
  readonly gone: AbortSignal
  /** It is also the business of this one, by whose key it ends. */
  readonly onBehalfOf: (actor: Actor) => void
  /** What the answer is sent as, where it is a stream; undefined where the caller wants one value. */
  readonly stream: StreamType | undefined
  /** The body as it comes, of a route that takes bytes. */
  readonly pieces: AsyncIterable<Uint8Array>
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** Known to the log. */
  readonly requestId: string
}

export type Handler<Name extends RouteName> = (call: Call<Name>) => Promise<Answer>
export type Handlers<Names extends RouteName = RouteName> = { readonly [Name in Names]: Handler<Name> }

/** What follows the `?`, by the shape of the route. What stands twice is refused, but for what is a list. */
export function parseQuery(name: RouteName, search: string): unknown {
  const shape: Shape = shapes[name]
  const given = new URLSearchParams(search)
  const lists = ['metadata']
  const values: Record<string, unknown> = {}
  for (const key of new Set(given.keys())) {
    const all = given.getAll(key)
    if (all.length > 1 && !lists.includes(key)) throw new HttpError(400, `${key.slice(0, 60)}: stands twice in the query`)
    if (key === '__proto__') throw new HttpError(400, 'query: has a name that is not possible')
    values[key] = lists.includes(key) ? all : all[0]
  }
  if (shape.query) return parseWith(shape.query, values, 'query')
  if (Object.keys(values).length > 0) throw new HttpError(400, `${Object.keys(values)[0]?.slice(0, 60)}: is not a known field`)
  return undefined
}

/** A body that the platform parses itself is handed on as it is: it has to be an object, and that is all. */
export function parseBody(name: RouteName, value: unknown): unknown {
  const { body, judged }: Shape = shapes[name]
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new HttpError(400, 'body: expected a plain object')
  if (!body) {
    if (Object.keys(value).length > 0) throw new HttpError(400, 'body: nothing is expected here')
    return undefined
  }
  return judged ? value : parseWith(body, value, 'body')
}
