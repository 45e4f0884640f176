/**
 * HTTP/1.1 towards a program: as a proxy, or as the one host that a connection leads to. Requests are served one after another, and each is asked for anew,
 * whatever the connection was used for before.
 */
import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { parseHost } from '../policy/network-host.js'
import { Carriers, type GuestRequest } from './forward.js'
import { isOfOrigin, refuse, type Setting, Waiting } from './front-setting.js'
import { endWith } from './front-stream.js'
import { denialWord, wordBytes } from './front-words.js'
import { type Head, readAbsolute, readHead } from './http-head.js'
import { Http1Reply } from './http1-reply.js'
import { readUpgrade } from './websocket.js'

/** A CONNECT, with the connection as it is after it. */
export interface Connect {
  readonly request: IncomingMessage
  readonly stream: Duplex
}

export interface Http1Setting extends Setting {
  /** Undefined where there is no such thing. */
  readonly onConnect?: (connect: Connect) => void
}

type Place = Pick<GuestRequest, 'target' | 'host' | 'path'>

const mostHeaderBytes = 32 * 1024
/** Sent ahead without waiting for answers. */
const mostAhead = 16

export function serveHttp1(stream: Duplex, setting: Http1Setting): void {
  new Http1Door(stream, setting).open()
}

class Http1Door {
  readonly #stream: Duplex
  readonly #setting: Http1Setting
  readonly #carriers: Carriers
  readonly #waiting: Waiting
  readonly #server: Server
  /** Served, or waiting to be. */
  #ahead = 0
  /** Nothing more is read. */
  #isOver = false
  #last: Promise<void> = Promise.resolve()

  constructor(stream: Duplex, setting: Http1Setting) {
    this.#stream = stream
    this.#setting = setting
    this.#carriers = new Carriers(setting.parts, { protocols: ['http/1.1'] })
    this.#waiting = new Waiting(setting, () => stream.destroy())
    // Time is the gate's to keep.
    this.#server = createServer({ maxHeaderSize: mostHeaderBytes, insecureHTTPParser: false, requireHostHeader: false, keepAliveTimeout: 0 })
    this.#server.timeout = 0
    // Headers beyond a number would be left out in silence; their size is bounded.
    this.#server.maxHeadersCount = 0
  }

  open(): void {
    const server = this.#server
    server.on('request', (request, response) => this.#receive(request, new Http1Reply(response, this.#waiting)))
    server.on('checkContinue', (request, response) => this.#receive(request, new Http1Reply(response, this.#waiting, { awaitsGo: true })))
    server.on('upgrade', (request, stream, head) => this.#enqueue(request, () => this.#serveUpgrade(request, { stream, head })))
    server.on('connect', (request, stream, head) => this.#enqueue(request, () => this.#connect(request, { stream, head })))
    server.on('clientError', (error: NodeJS.ErrnoException) => this.#refuseBytes(error))
    this.#stream.once('close', () => {
      this.#waiting.leave()
      this.#carriers.close()
    })
    server.emit('connection', this.#stream)
  }

  /** Read at once, served in turn: what follows a request that is refused is not looked at any more. */
  #receive(request: IncomingMessage, reply: Http1Reply): void {
    if (this.#isOver) return
    const read = this.#read(request)
    if ('refused' in read) this.#isOver = true
    const serve = async (): Promise<void> => {
      if ('refused' in read) reply.sayLast(denialWord(read.refused))
      else await this.#carriers.forward({ ...read.wanted, gone: reply.gone }, reply)
      await reply.over
    }
    this.#enqueue(request, serve)
  }

  #enqueue(request: IncomingMessage, serve: () => Promise<void>): void {
    this.#waiting.leave()
    request.on('error', () => undefined)
    if (this.#isOver && this.#ahead > 0) return
    this.#ahead += 1
    if (this.#ahead > mostAhead) {
      refuse(this.#setting, { reason: `more than ${mostAhead} requests were sent ahead` })
      this.#isOver = true
      this.#stream.destroy()
      return
    }
    const served = this.#ahead === 1 ? serve() : this.#last.then(serve)
    this.#last = served.then(
      () => {
        this.#ahead -= 1
      },
      () => {
        this.#stream.destroy()
      },
    )
  }

  async #serveUpgrade(request: IncomingMessage, { stream, head }: { stream: Duplex; head: Buffer }): Promise<void> {
    if (head.length > 0) stream.unshift(head)
    const upgrade = readUpgrade(request)
    const read = this.#read(request)
    if ('refused' in read || typeof upgrade === 'string') {
      const refused = 'refused' in read ? read.refused : refuse(this.#setting, { reason: String(upgrade), status: 403 })
      endWith(stream, wordBytes(denialWord(refused)))
      return
    }
    const response = new ServerResponse(request)
    response.assignSocket(stream as never)
    response.shouldKeepAlive = false
    const reply = new Http1Reply(response, this.#waiting, { upgrade: stream })
    const scheme = read.wanted.scheme === 'https' ? 'wss' : 'ws'
    await this.#carriers.forward({ ...read.wanted, scheme, upgrade, gone: reply.gone }, reply)
    await reply.over
    endWith(stream)
  }

  // eslint-disable-next-line @typescript-eslint/require-await -- one of those that are served in turn
  async #connect(request: IncomingMessage, { stream, head }: { stream: Duplex; head: Buffer }): Promise<void> {
    if (head.length > 0) stream.unshift(head)
    const read = readHead(request)
    const reason = typeof read === 'string' ? read : read.framing === 'none' || read.framing === 0 ? undefined : 'CONNECT has no body'
    if (reason === undefined && this.#setting.onConnect) {
      this.#setting.onConnect({ request, stream })
      return
    }
    endWith(stream, wordBytes(denialWord(refuse(this.#setting, { reason: reason ?? 'CONNECT inside of a connection that leads to one host' }))))
  }

  #read(request: IncomingMessage): { wanted: Omit<GuestRequest, 'gone'> } | { refused: ReturnType<typeof refuse> } {
    const head = readHead(request)
    if (typeof head === 'string') return { refused: refuse(this.#setting, { reason: head }) }
    const place = this.#setting.origin ? this.#placeAtOrigin(request) : this.#placeAtProxy(request)
    if ('reason' in place) return { refused: refuse(this.#setting, place) }
    return { wanted: { ...requestOf(request, head), ...place, scheme: this.#setting.origin?.scheme ?? 'http' } }
  }

  #placeAtProxy({ url = '', headers }: IncomingMessage): Place | { reason: string } {
    const destination = readAbsolute(url, headers.host)
    if (typeof destination === 'string') return { reason: destination }
    const { host, port, path } = destination
    return { target: { door: this.#setting.door, host, port }, host: parseHost(host), path }
  }

  /** Only its own path is to be named. Who speaks to one host and means another is told so. */
  #placeAtOrigin({ url = '', headers }: IncomingMessage): Place | { reason: string; status?: number } {
    const { origin } = this.#setting
    if (!origin || !url.startsWith('/')) return { reason: 'the target of the request is no path' }
    if (headers.host === undefined) return { reason: 'there is no Host header' }
    if (!isOfOrigin(headers.host, origin)) return { reason: `the Host header is not ${origin.hostText}, where the connection leads`, status: 403 }
    return { target: origin.target, host: origin.host, path: url }
  }

  /** What is no HTTP, or too much of it. */
  #refuseBytes(error: NodeJS.ErrnoException): void {
    const isTooMuch = error.code === 'HPE_HEADER_OVERFLOW'
    const isNoise = !error.code?.startsWith('HPE_')
    if (isNoise) this.#stream.destroy()
    // It has been refused already, and told so.
    if (isNoise || this.#isOver) return
    this.#isOver = true
    const reason = isTooMuch ? `the head of the request has more than ${mostHeaderBytes} bytes` : 'the request cannot be read as HTTP without doubt'
    const denial = refuse(this.#setting, { reason, status: isTooMuch ? 431 : 400 })
    // An answer that has begun cannot be followed by another.
    if (this.#ahead > 0 || !this.#stream.writable) this.#stream.destroy()
    else endWith(this.#stream, wordBytes(denialWord(denial)))
  }
}

function requestOf(request: IncomingMessage, { headers, framing }: Head) {
  return { method: request.method ?? '', headers, framing, body: request }
}
