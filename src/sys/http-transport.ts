/** Requests of a client on Node: over TCP, TLS or a socket of this machine, on connections that are kept. */
import { Agent, request as httpRequest, type ClientRequest, type IncomingMessage, type RequestOptions } from 'node:http'
import { Agent as TlsAgent, request as httpsRequest } from 'node:https'
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { SandboxError } from '../contract/errors.js'
import { tunnelProtocol } from '../contract/wire/media.js'
import { type Transport, type TunnelBytes, unreachable, type WireRequest, type WireResponse } from '../contract/wire/transport.js'
import { listenOnLoopback } from './loopback-listener.js'

export interface TransportOptions {
  /** `http://…` or `https://…`; or a socket of this machine. */
  readonly place: { readonly url: string } | { readonly socket: string }
  /** Authorities, as PEM, that the server's certificate may be of, instead of those that Node trusts. */
  readonly ca?: string | readonly string[]
  /** Shown to a server that asks for one, as PEM. */
  readonly cert?: string
  readonly key?: string
  /** Whether connections are kept for the next request; true unless given. */
  readonly keepAlive?: boolean
}

/** Longer than any burst; the rest waits for its turn. */
const mostSockets = 4096

export function nodeTransport(options: TransportOptions): Transport {
  const door = new Door(options)
  return {
    request: (request) => door.request(request),
    tunnel: (request) => door.tunnel(request),
    listen: (order) => listenOnLoopback(order),
    close: () => {
      door.close()
      return Promise.resolve()
    },
  }
}

class Door {
  readonly #base: RequestOptions
  readonly #prefix: string
  readonly #place: string
  readonly #isTls: boolean
  readonly #agent: Agent

  constructor({ place, ca, cert, key, keepAlive = true }: TransportOptions) {
    const url = new URL('socket' in place ? 'http://localhost' : place.url)
    const kept = { keepAlive, maxSockets: mostSockets, scheduling: 'lifo', noDelay: true } as const
    const secrets = { ...(ca !== undefined && { ca: ca as string }), ...(cert !== undefined && { cert }), ...(key !== undefined && { key }) }
    this.#isTls = url.protocol === 'https:'
    this.#agent = this.#isTls ? new TlsAgent({ ...kept, ...secrets }) : new Agent(kept)
    this.#base =
      'socket' in place ? { socketPath: place.socket } : { hostname: url.hostname.replace(/^\[|\]$/g, ''), ...(url.port !== '' && { port: url.port }) }
    this.#prefix = url.pathname.replace(/\/+$/, '')
    this.#place = 'socket' in place ? place.socket : url.origin
  }

  close(): void {
    this.#agent.destroy()
  }

  async request({ method, path, headers, body, signal }: WireRequest): Promise<WireResponse> {
    const length = body instanceof Uint8Array ? { 'content-length': String(body.length) } : {}
    const outgoing = this.#begin({ method, path, headers: { ...headers, ...length }, ...(signal && { signal }) })
    const answered = this.#answer(outgoing)
    if (body === undefined || body instanceof Uint8Array) outgoing.end(body)
    else void pipeline(Readable.from(body, { objectMode: false }), outgoing).catch((error: unknown) => outgoing.destroy(error as Error))
    return responseOf(await answered)
  }

  async tunnel({ method, path, headers, signal }: Omit<WireRequest, 'body'>): Promise<{ readonly bytes: TunnelBytes } | { readonly response: WireResponse }> {
    // What becomes a tunnel is never one of those that are kept.
    const outgoing = this.#begin({ method, path, headers: { ...headers, connection: 'upgrade', upgrade: tunnelProtocol }, ...(signal && { signal }) })
    const upgraded = new Promise<{ readonly bytes: TunnelBytes }>((resolve) => {
      outgoing.once('upgrade', (_, socket, head) => resolve({ bytes: bytesOf(socket, head) }))
    })
    const answered = this.#answer(outgoing)
    answered.catch(() => undefined)
    outgoing.end()
    return Promise.race([upgraded, answered.then((message) => ({ response: responseOf(message) }))])
  }

  #begin(options: RequestOptions): ClientRequest {
    const all = { ...this.#base, ...options, path: `${this.#prefix}${options.path}`, agent: this.#agent }
    return this.#isTls ? httpsRequest(all) : httpRequest(all)
  }

  #answer(outgoing: ClientRequest): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      outgoing.once('response', resolve)
      // Once there is an answer, what breaks off is told to whoever reads it.
      outgoing.on('error', (error) => reject(error instanceof SandboxError ? error : unreachable(this.#place, error)))
    })
  }
}

function responseOf(message: IncomingMessage): WireResponse {
  const { socket } = message
  message.on('error', () => undefined)
  return {
    status: message.statusCode ?? 0,
    header: (name) => {
      const value = message.headers[name]
      return Array.isArray(value) ? value.join(', ') : value
    },
    body: {
      [Symbol.asyncIterator]: () => {
        const pieces = message[Symbol.asyncIterator]() as AsyncIterator<Uint8Array, undefined>
        return {
          next: () => pieces.next(),
          return: () => {
            if (!message.complete) message.destroy()
            return Promise.resolve({ done: true, value: undefined })
          },
        }
      },
    },
    ref: () => socket.ref(),
    unref: () => socket.unref(),
  }
}

function bytesOf(socket: Socket, head: Uint8Array): TunnelBytes {
  socket.on('error', () => undefined)
  if (head.length > 0) socket.unshift(head)
  return {
    input: { [Symbol.asyncIterator]: () => socket.iterator({ destroyOnReturn: false }) as AsyncIterator<Uint8Array> },
    write: (bytes) => new Promise((resolve, reject) => socket.write(bytes, (error) => (error ? reject(error) : resolve()))),
    destroy: () => socket.destroy(),
  }
}
