/** Calls of routes: what is asked is put into a request, and what is answered is taken out of it. */
import { errorTable, type ErrorCode, SandboxError } from '../contract/errors.js'
import type { PortConnection } from '../contract/ports.js'
import { joinBytes } from '../contract/wire/frames.js'
import { media, wireHeaders } from '../contract/wire/media.js'
import { type ParamsOf, pathOf, type Route, type RouteName, routes } from '../contract/wire/routes.js'
import type { ReplyOf } from '../contract/wire/shapes.js'
import type { Transport, WireRequest, WireResponse } from '../contract/wire/transport.js'
import { EventStream } from './event-stream.js'
import { connectionOf } from './tunnel.js'
import { wireJson } from './wire-json.js'

export interface WireOrder<Name extends RouteName> {
  readonly params: ParamsOf<Name>
  readonly query?: Readonly<Record<string, QueryValue>>
  readonly body?: unknown
  readonly pieces?: AsyncIterable<Uint8Array> | Uint8Array
  readonly signal?: AbortSignal | undefined
  /** How messages call the body as a whole. */
  readonly what?: string
}

export type QueryValue = string | number | boolean | readonly string[] | undefined

interface Sent {
  readonly response: WireResponse
  /** Nothing is called off any more. */
  readonly done: () => void
}

const cancelPatienceMs = 15_000
const mostReplyBytes = 2 ** 28

export class Wire {
  readonly transport: Transport
  readonly #headers: Readonly<Record<string, string>>
  /** Streams of a sandbox that are being opened: what is asked of it later is asked when they are. */
  readonly #openings = new Map<string, Set<Promise<unknown>>>()

  constructor(transport: Transport, headers: Readonly<Record<string, string>>) {
    this.transport = transport
    this.#headers = headers
  }

  async call<Name extends RouteName>(name: Name, order: WireOrder<Name>): Promise<ReplyOf<Name>> {
    const { response, done } = await this.#send(name, order, media.json)
    try {
      const bytes = await gather(response.body)
      return (bytes.length === 0 ? undefined : JSON.parse(new TextDecoder().decode(bytes))) as ReplyOf<Name>
    } finally {
      done()
    }
  }

  /** Bytes as they come, and why they break off where they do. */
  async bytes<Name extends RouteName>(
    name: Name,
    order: WireOrder<Name>,
  ): Promise<{ readonly response: WireResponse; readonly bytes: AsyncIterable<Uint8Array> }> {
    const { response, done } = await this.#send(name, order, media.frames)
    const stream = new EventStream(response, { signal: order.signal, onOver: done })
    return { response, bytes: { [Symbol.asyncIterator]: () => piecesOf(stream) } }
  }

  /** Events as they come. What is asked of the same sandbox later is asked once this is open. */
  stream<Name extends RouteName>(name: Name, order: WireOrder<Name>): Promise<EventStream> {
    const opening = this.#send(name, order, media.frames).then(({ response, done }) => new EventStream(response, { signal: order.signal, onOver: done }))
    const { id } = order.params as { readonly id?: string }
    if (routes[name].reply === 'events' && id !== undefined) this.#order(id, opening)
    return opening
  }

  /** A connection to a port. */
  async tunnel<Name extends RouteName>(name: Name, order: WireOrder<Name>): Promise<PortConnection> {
    if (!this.transport.tunnel) throw new SandboxError('unsupported', 'ports.connect: no connection can be had here but by HTTP', { hint: 'ports.url' })
    const { signal } = order
    signal?.throwIfAborted()
    const found = await this.transport.tunnel({ ...this.#requestOf(name, order, '*/*'), ...(signal && { signal }) })
    if ('bytes' in found) return connectionOf(found.bytes)
    throw errorOf(found.response.status, await gather(found.response.body).catch(() => new Uint8Array()))
  }

  #order(id: string, opening: Promise<unknown>): void {
    const openings = this.#openings.get(id) ?? new Set()
    this.#openings.set(id, openings)
    openings.add(opening)
    const over = (): void => {
      openings.delete(opening)
      if (openings.size === 0) this.#openings.delete(id)
    }
    opening.then(over, over)
  }

  async #send<Name extends RouteName>(name: Name, order: WireOrder<Name>, accept: string): Promise<Sent> {
    const { signal } = order
    signal?.throwIfAborted()
    const request = this.#requestOf(name, order, accept)
    const { id } = order.params as { readonly id?: string }
    const openings = id === undefined ? undefined : this.#openings.get(id)
    if (openings) await Promise.allSettled(openings)
    if (!signal) return { response: await this.#answered(request), done: () => undefined }
    signal.throwIfAborted()
    const call = randomCall()
    const cut = new AbortController()
    const watch = this.#callOffWhen(signal, call, cut)
    try {
      const response = await this.#answered({ ...request, headers: { ...request.headers, [wireHeaders.call]: call }, signal: cut.signal })
      return { response, done: watch }
    } catch (error) {
      watch()
      signal.throwIfAborted()
      throw error
    }
  }

  /** What is called off is told so, and ends by itself, so that nothing of it is left when that is known; the connection is cut only when nothing comes. */
  #callOffWhen(signal: AbortSignal, call: string, cut: AbortController): () => void {
    let isOver = false
    const callOff = async (): Promise<void> => {
      const timer = setTimeout(() => cut.abort(), cancelPatienceMs)
      const { method } = routes['calls.cancel']
      for (let waitMs = 20; !isOver; waitMs = Math.min(waitMs * 2, 500)) {
        const told = this.transport.request({ method, path: pathOf('calls.cancel', { call }), headers: this.#headers })
        await told.then((response) => gather(response.body)).catch(() => cut.abort())
        await new Promise((resolve) => setTimeout(resolve, waitMs))
      }
      clearTimeout(timer)
    }
    const onAbort = (): void => void callOff()
    signal.addEventListener('abort', onAbort, { once: true })
    return () => {
      isOver = true
      signal.removeEventListener('abort', onAbort)
    }
  }

  async #answered(request: WireRequest): Promise<WireResponse> {
    const response = await this.transport.request(request)
    if (response.status < 300) return response
    throw errorOf(response.status, await gather(response.body).catch(() => new Uint8Array()))
  }

  #requestOf<Name extends RouteName>(name: Name, { params, query, body, pieces, what = 'options' }: WireOrder<Name>, accept: string): WireRequest {
    const route: Route = routes[name]
    checkParams(params)
    const path = `${pathOf(name, params)}${searchOf(query)}`
    const headers = { ...this.#headers, accept }
    if (pieces !== undefined)
      return { method: route.method, path, headers: { ...headers, 'content-type': route.takes === 'tar' ? media.tar : media.bytes }, body: pieces }
    if (body === undefined) return { method: route.method, path, headers }
    const bytes = new TextEncoder().encode(wireJson(body, what))
    return { method: route.method, path, headers: { ...headers, 'content-type': media.json }, body: bytes }
  }
}

function piecesOf(stream: EventStream): AsyncIterator<Uint8Array, undefined> {
  const done = { done: true, value: undefined } as const
  return {
    next: async () => {
      const event = await stream.next()
      if (event?.type === 'data') return { done: false, value: event.bytes as Uint8Array }
      if (event?.type === 'end') return done
      throw new SandboxError('broken', 'the answer of the server breaks off')
    },
    return: async () => {
      await stream.leave()
      return done
    },
  }
}

/** What would be another path, or none. */
function checkParams(params: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(params)) {
    if (typeof value !== 'string' || value === '' || value === '.' || value === '..' || /\p{Surrogate}/u.test(value))
      throw new SandboxError('invalid', `${name}: is no name that there can be`)
  }
}

function searchOf(query: WireOrder<RouteName>['query'] = {}): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue
    for (const each of Array.isArray(value) ? (value as readonly string[]) : [value]) search.append(name, String(each))
  }
  const text = search.toString()
  return text === '' ? '' : `?${text}`
}

async function gather(body: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const pieces: Uint8Array[] = []
  let total = 0
  try {
    for await (const piece of body) {
      pieces.push(piece)
      total += piece.length
      if (total > mostReplyBytes) throw new SandboxError('broken', `the server answered with more than ${mostReplyBytes} bytes`)
    }
  } catch (error) {
    throw brokenOff(error)
  }
  const [only] = pieces
  return pieces.length === 1 && only ? only : joinBytes(pieces)
}

export function brokenOff(cause: unknown): SandboxError {
  return cause instanceof SandboxError ? cause : new SandboxError('broken', 'the connection to the server broke off', { cause })
}

interface WireError {
  readonly code?: unknown
  readonly message?: unknown
  readonly hint?: unknown
  readonly retryAfterMs?: unknown
  readonly details?: unknown
}

/** What the server says went wrong, as what would have been thrown here. */
export function errorFrom({ code, message, hint, retryAfterMs, details }: WireError): SandboxError {
  const known = typeof code === 'string' && Object.hasOwn(errorTable, code) ? (code as ErrorCode) : 'internal'
  return new SandboxError(known, typeof message === 'string' ? message : 'the server says no more', {
    ...(typeof hint === 'string' && { hint }),
    ...(typeof retryAfterMs === 'number' && { retryAfterMs }),
    ...(typeof details === 'object' && details !== null && { details: details as Record<string, never> }),
  })
}

function errorOf(status: number, bytes: Uint8Array): SandboxError {
  try {
    return errorFrom(JSON.parse(new TextDecoder().decode(bytes)) as WireError)
  } catch {
    const code = status === 431 || status === 414 ? 'invalid' : 'broken'
    return new SandboxError(code, `the server answered ${status}, and with nothing that is understood`)
  }
}

const alphabet = 'abcdefghijklmnopqrstuvwxyz234567'

function randomCall(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(26)), (byte) => alphabet[byte & 31]).join('')
}
