/** What comes in with a request: bounded, and given up when nothing comes any more. */
import type { IncomingMessage } from 'node:http'
import { SandboxError } from '../contract/errors.js'
import { media } from '../contract/wire/media.js'
import type { Route } from '../contract/wire/routes.js'
import { HttpError } from './http-error.js'
import { parseJsonBody } from './json-body.js'

export interface BodyBounds {
  readonly mostJsonBytes: number
  readonly mostBytes: number
  /** Of JSON that one tenant sends at once, in however many requests. */
  readonly mostTenantBytes: number
  /** Nothing came for so long. */
  readonly idleMs: number
  /** All of a JSON body comes within this, however steadily it dribbles. */
  readonly jsonMs: number
}

const types = { bytes: media.bytes, tar: media.tar } as const

/** Strict: a form or a plain text is what a page of anyone's could send without being asked. */
export function checkContentType(request: IncomingMessage, route: Route): void {
  if (route.takes === 'raw') return
  const expected = route.takes === undefined ? media.json : types[route.takes]
  const given = (request.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
  if (!hasBody(request) && given === '') return
  if (given !== expected) throw new HttpError(415, `content-type: expected ${expected}`)
  if (request.headers['content-encoding'] !== undefined) throw new HttpError(415, 'content-encoding: none is understood')
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] !== undefined && headers['content-length'] !== '0')
}

/** Of bodies that are gathered: each tenant has so much at once, so that none takes the memory of the others. */
export class BodyRoom {
  readonly #taken = new Map<string, number>()

  /** Until what this returns is called. */
  open(tenant: string, mostBytes: number): { take(bytes: number): void; close(): void } {
    let own = 0
    const add = (bytes: number): void => {
      own += bytes
      const taken = (this.#taken.get(tenant) ?? 0) + bytes
      if (taken === 0) this.#taken.delete(tenant)
      else this.#taken.set(tenant, taken)
    }
    return {
      take: (bytes) => {
        if ((this.#taken.get(tenant) ?? 0) + bytes > mostBytes)
          throw new SandboxError('busy', `body: ${mostBytes} bytes of bodies are being read for this tenant`, { retryAfterMs: 1000 })
        add(bytes)
      },
      close: () => add(-own),
    }
  }
}

export interface Reading {
  readonly bounds: BodyBounds
  readonly room: BodyRoom
  readonly tenant: string
}

/** An empty object where there is none. */
export async function readJson(request: IncomingMessage, { bounds, room, tenant }: Reading): Promise<unknown> {
  if (!hasBody(request)) return {}
  if (request.complete) return parsed(wholeBody(request, bounds.mostJsonBytes))
  const place = room.open(tenant, bounds.mostTenantBytes)
  try {
    return parsed(await gatheredBody(request, bounds, (bytes) => place.take(bytes)))
  } finally {
    place.close()
  }
}

function parsed(bytes: Uint8Array): unknown {
  return bytes.length === 0 ? {} : parseJsonBody(bytes)
}

/** It has come with its head, as a short one does. */
function wholeBody(request: IncomingMessage, mostBytes: number): Uint8Array {
  const bytes = (request.read() as Uint8Array | null) ?? new Uint8Array()
  if (bytes.length > mostBytes) throw tooLarge(mostBytes)
  return bytes
}

async function gatheredBody(request: IncomingMessage, bounds: BodyBounds, take: (bytes: number) => void): Promise<Uint8Array> {
  const pieces: Uint8Array[] = []
  const until = performance.now() + bounds.jsonMs
  for await (const piece of bodyPieces(request, { mostBytes: bounds.mostJsonBytes, idleMs: bounds.idleMs })) {
    if (performance.now() > until) throw new HttpError(408, `body: did not end within ${bounds.jsonMs} ms`)
    take(piece.length)
    pieces.push(piece)
  }
  return Buffer.concat(pieces)
}

function tooLarge(mostBytes: number): HttpError {
  return new HttpError(413, `body: has more than ${mostBytes} bytes`)
}

/** As it comes; not reading it holds the other side back. */
export async function* bodyPieces(
  request: IncomingMessage,
  { mostBytes, idleMs }: Pick<BodyBounds, 'mostBytes' | 'idleMs'>,
): AsyncGenerator<Uint8Array, void, undefined> {
  if (Number(request.headers['content-length'] ?? 0) > mostBytes) throw tooLarge(mostBytes)
  let total = 0
  const pieces = request[Symbol.asyncIterator]() as AsyncIterator<Uint8Array, undefined>
  try {
    for (;;) {
      const result = await inTime(pieces.next(), idleMs)
      if (result.done) return
      total += result.value.length
      if (total > mostBytes) throw tooLarge(mostBytes)
      yield result.value
    }
  } catch (error) {
    if (error instanceof HttpError) throw error
    throw new HttpError(400, 'body: broke off before its end', { cause: error })
  }
}

async function inTime<Value>(pending: Promise<Value>, idleMs: number): Promise<Value> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new HttpError(408, `body: nothing came for ${idleMs} ms`)), idleMs)
  })
  try {
    return await Promise.race([pending, late])
  } finally {
    clearTimeout(timer)
  }
}
