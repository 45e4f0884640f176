/** What handlers answer with, and how it is sent: never faster than it is read. */
import type { ServerResponse } from 'node:http'
import type { OutputEvent } from '../contract/run.js'
import { encodeFrame, encodeGap, frameTypes } from '../contract/wire/frames.js'
import { media } from '../contract/wire/media.js'
import { asSandboxError, errorInJson, statusOf } from './http-error.js'
import { leaving } from './leaving.js'

export type WireEvent = OutputEvent | { readonly [key: string]: unknown }

export type Answer =
  | { readonly kind: 'json'; readonly value: unknown; readonly status?: number }
  | { readonly kind: 'none' }
  | { readonly kind: 'events'; readonly events: AsyncIterable<WireEvent> }
  | { readonly kind: 'bytes'; readonly bytes: AsyncIterable<Uint8Array>; readonly headers: Readonly<Record<string, string>>; readonly status?: number }
  | { readonly kind: 'text'; readonly text: string; readonly type: string }
  /** The handler has answered, or will. */
  | { readonly kind: 'taken' }

export type StreamType = typeof media.frames | typeof media.ndjson | typeof media.sse

export const json = (value: unknown, status?: number): Answer => ({ kind: 'json', value, ...(status !== undefined && { status }) })
export const none: Answer = { kind: 'none' }
export const events = (source: AsyncIterable<WireEvent>): Answer => ({ kind: 'events', events: source })

const safe = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' } as const

function sendJson(response: ServerResponse, value: unknown, status = 200): void {
  const text = JSON.stringify(value)
  response.writeHead(status, { ...safe, 'content-type': media.json, 'content-length': Buffer.byteLength(text) }).end(text)
}

export function sendError(response: ServerResponse, error: unknown): void {
  const known = asSandboxError(error)
  if (response.headersSent || response.destroyed) {
    response.destroy()
    return
  }
  if (known.retryAfterMs !== undefined) response.setHeader('retry-after', Math.ceil(known.retryAfterMs / 1000))
  if (known.code === 'unauthorized') response.setHeader('www-authenticate', 'Bearer')
  sendJson(response, errorInJson(known), statusOf(known))
}

/** `stream`: what it is sent as, where it is one that comes piece by piece. Resolves when all of it is sent, or nobody is there. */
export async function sendAnswer(
  response: ServerResponse,
  answer: Answer,
  { stream, gone }: { readonly stream: StreamType | undefined; readonly gone: AbortSignal },
): Promise<void> {
  switch (answer.kind) {
    case 'json':
      sendJson(response, answer.value, answer.status)
      return
    case 'none':
      response.writeHead(204, { 'cache-control': 'no-store' }).end()
      return
    case 'text':
      response.writeHead(200, { ...safe, 'content-type': answer.type }).end(answer.text)
      return
    case 'events':
      return sendEvents(response, answer.events, { type: stream ?? media.ndjson, gone })
    case 'bytes':
      response.writeHead(answer.status ?? 200, { ...safe, ...answer.headers, ...(stream && { 'content-type': stream }) })
      response.flushHeaders()
      return stream ? sendFramed(response, answer.bytes, gone) : sendBytes(response, answer.bytes, gone)
    case 'taken':
      return
  }
}

const heartbeatMs = 15_000

/** The type that a stream is sent as; undefined when none of ours is accepted by name. */
export function acceptedStream(accept: string | undefined): StreamType | undefined {
  const wanted = (accept ?? '').split(',').map((part) => part.split(';')[0]?.trim().toLowerCase())
  return ([media.frames, media.ndjson, media.sse] as const).find((type) => wanted.includes(type))
}

/** Ends when the events do, or when nobody is to read any more, which `gone` tells; then the source is left, and whoever is still there is told why. */
async function sendEvents(response: ServerResponse, source: AsyncIterable<WireEvent>, { type, gone }: Sending): Promise<void> {
  const { encode, heartbeat } = encodings[type]
  response.writeHead(200, { ...safe, 'content-type': type })
  response.flushHeaders()
  const timer = setInterval(() => {
    if (!response.writableNeedDrain) response.write(heartbeat)
  }, heartbeatMs)
  timer.unref()
  try {
    for await (const event of leaving(source, gone)) {
      response.write(encode(event))
      if (response.writableNeedDrain) await drained(response)
    }
    if (!response.destroyed) gone.throwIfAborted()
    response.end()
  } catch (error) {
    if (!response.destroyed) response.end(encode({ type: 'error', error: errorInJson(asSandboxError(error)) }))
    if (asSandboxError(error) !== error) throw error
  } finally {
    clearInterval(timer)
  }
}

interface Sending {
  readonly type: StreamType
  readonly gone: AbortSignal
}

/** In frames, so that what breaks off is told why. */
async function sendFramed(response: ServerResponse, source: AsyncIterable<Uint8Array>, gone: AbortSignal): Promise<void> {
  try {
    for await (const piece of leaving(source, gone)) {
      response.write(encodeFrame(frameTypes.data, piece))
      if (response.writableNeedDrain) await drained(response)
    }
    if (!response.destroyed) gone.throwIfAborted()
    response.end(encodeFrame(frameTypes.end, new Uint8Array()))
  } catch (error) {
    if (!response.destroyed) response.end(inFrame({ type: 'error', error: errorInJson(asSandboxError(error)) }))
    if (asSandboxError(error) !== error) throw error
  }
}

/** Never faster than it is read. */
async function sendBytes(response: ServerResponse, source: AsyncIterable<Uint8Array>, gone: AbortSignal): Promise<void> {
  for await (const piece of leaving(source, gone)) {
    response.write(piece)
    if (response.writableNeedDrain) await drained(response)
  }
  if (!response.destroyed) gone.throwIfAborted()
  response.end()
}

/** Resolves also when the other side is gone. */
function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const over = (): void => {
      response.off('drain', over).off('close', over)
      resolve()
    }
    if (response.destroyed) resolve()
    else response.on('drain', over).on('close', over)
  })
}

interface Encoding {
  readonly encode: (event: WireEvent) => string | Uint8Array
  readonly heartbeat: string | Uint8Array
}

const utf8 = new TextEncoder()

function isOutput(event: WireEvent): event is OutputEvent {
  return event.bytes instanceof Uint8Array
}

function inJson(event: WireEvent): string {
  if (!isOutput(event)) return JSON.stringify(event)
  const { type, bytes, dropped } = event
  const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64')
  return JSON.stringify({ type, data, ...(dropped !== undefined && { dropped }) })
}

function inFrame(event: WireEvent): Uint8Array {
  if (!isOutput(event)) return encodeFrame(frameTypes.json, utf8.encode(JSON.stringify(event)))
  const { type, bytes, dropped } = event
  if (dropped !== undefined) return encodeFrame(frameTypes[`${type}Dropped`], encodeGap(dropped, bytes))
  return encodeFrame(frameTypes[type], bytes)
}

const encodings: Readonly<Record<StreamType, Encoding>> = {
  [media.frames]: { encode: inFrame, heartbeat: encodeFrame(frameTypes.json, new Uint8Array()) },
  [media.ndjson]: { encode: (event) => `${inJson(event)}\n`, heartbeat: '\n' },
  [media.sse]: { encode: (event) => `${cursorOf(event)}${nameOf(event)}data: ${inJson(event)}\n\n`, heartbeat: ': \n\n' },
}

function nameOf({ type }: WireEvent): string {
  return typeof type === 'string' && /^[a-z-]{1,40}$/.test(type) ? `event: ${type}\n` : ''
}

/** By which a reader that comes back says how far it was. */
function cursorOf(event: WireEvent): string {
  return 'cursor' in event && typeof event.cursor === 'string' && /^[0-9a-f.-]{1,40}$/.test(event.cursor) ? `id: ${event.cursor}\n` : ''
}
