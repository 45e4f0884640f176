/** HTTP/2 towards a program, over TLS that was terminated for one host. Each of its streams is a request, and asked for. */
import { createServer, type IncomingHttpHeaders, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import type { Duplex } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type Answer, grouped } from './carrier.js'
import { Carriers, type GuestRequest, type Reply } from './forward.js'
import { isOfOrigin, refuse, type Setting, Waiting } from './front-setting.js'
import { onBreak } from './front-stream.js'
import { denialWord, type Header, type Word } from './front-words.js'
import type { Denial } from './gate-types.js'
import { endToEnd, type Framing, pairsOf, valuesOf } from './http-head.js'

const limits = {
  maxSessionMemory: 4,
  maxHeaderListPairs: 256,
  maxOutstandingPings: 4,
  maxSessionRejectedStreams: 20,
  maxSessionInvalidFrames: 20,
  settings: { maxConcurrentStreams: 64, maxHeaderListSize: 32 * 1024, enableConnectProtocol: false },
} as const

export function serveHttp2(stream: Duplex, setting: Setting): void {
  const server = createServer({ ...limits })
  // A program that ends its direction is gone: of HTTP/2 there is no half.
  stream.allowHalfOpen = false
  const carriers = new Carriers(setting.parts, { protocols: ['h2', 'http/1.1'] })
  const waiting = new Waiting(setting, () => stream.destroy())
  stream.once('close', () => {
    waiting.leave()
    carriers.close()
  })
  server.on('session', (session: ServerHttp2Session) => {
    let underWay = 0
    session.on('error', () => stream.destroy())
    session.on('stream', (request: ServerHttp2Stream, headers: IncomingHttpHeaders, ...[, raw]: unknown[]) => {
      waiting.leave()
      underWay += 1
      // Not when its stream is closed, which a program that takes no answer can put off for ever.
      const over = (): void => {
        underWay -= 1
        if (underWay === 0 && !stream.destroyed) waiting.begin()
      }
      serve(request, { headers, raw: pairsOf(raw as string[]), setting, carriers })
        .catch(() => request.destroy())
        .finally(over)
    })
  })
  server.on('sessionError', () => stream.destroy())
  server.emit('connection', stream)
}

interface Stream {
  readonly headers: IncomingHttpHeaders
  readonly raw: readonly Header[]
  readonly setting: Setting
  readonly carriers: Carriers
}

async function serve(stream: ServerHttp2Stream, order: Stream): Promise<void> {
  const reply = new Http2Reply(stream, { awaitsGo: order.headers.expect === '100-continue' })
  const read = readRequest(stream, order)
  if ('refused' in read) {
    reply.say(denialWord(read.refused))
    return
  }
  await order.carriers.forward({ ...read.wanted, gone: reply.gone }, reply)
}

function readRequest(stream: ServerHttp2Stream, order: Stream): { wanted: Omit<GuestRequest, 'gone'> } | { refused: Denial } {
  const { setting, raw } = order
  const { ':method': method = '', ':path': path = '' } = order.headers
  const reason = problemOf(order)
  if (reason !== undefined) return { refused: refuse(setting, reason) }
  const framing = framingOf(stream, raw)
  const { origin } = setting
  if (typeof framing === 'object' || origin === undefined) return { refused: refuse(setting, { reason: 'the length of the body cannot be read' }) }
  // Cookies may come in parts, which HTTP/1.1 has in one.
  const pairs = raw.filter(([name]) => !name.startsWith(':'))
  const cookies = valuesOf(pairs, 'cookie')
  const headers = endToEnd(pairs.filter(([name]) => name !== 'cookie'))
  if (cookies.length > 0) headers.push(['cookie', cookies.join('; ')])
  return { wanted: { target: origin.target, host: origin.host, scheme: 'https', method, path, headers, framing, body: stream } }
}

function problemOf({ headers, raw, setting: { origin } }: Stream): { reason: string; status?: number } | undefined {
  const { ':method': method = '', ':path': path = '', ':authority': authority, ':scheme': scheme, ':protocol': protocol } = headers
  if (method === 'CONNECT' || protocol !== undefined) return { reason: 'CONNECT inside of a connection that leads to one host', status: 403 }
  if (method === 'TRACE') return { reason: 'TRACE would show what the way out adds to requests' }
  if (!/^[A-Z-]{1,20}$/.test(method)) return { reason: 'the method of the request cannot be read' }
  if (!/^\/[\x21-\x7e]*$/.test(path) || path.includes('#')) return { reason: 'the target of the request is no path' }
  const named = [...(authority === undefined ? [] : [authority]), ...valuesOf(raw, 'host')]
  if (named.length === 0) return { reason: 'there is no :authority' }
  if (scheme !== 'https' || !origin || !named.every((name) => isOfOrigin(name, origin))) {
    return { reason: `:authority is not ${origin?.hostText ?? ''}, where the connection leads`, status: 403 }
  }
  return undefined
}

function framingOf(stream: ServerHttp2Stream, raw: readonly Header[]): Framing | { readonly refused: true } {
  const [length, ...others] = valuesOf(raw, 'content-length')
  if (others.length > 0 || (length !== undefined && !/^\d{1,15}$/.test(length))) return { refused: true }
  if (stream.endAfterHeaders) return 'none'
  return length === undefined ? 'chunked' : Number(length)
}

class Http2Reply implements Reply {
  readonly #stream: ServerHttp2Stream
  readonly #gone = new AbortController()
  readonly #awaitsGo: boolean
  #isWhole = false
  /** The other side broke off: that the program's stream ends with it is not its doing. */
  #isBroken = false

  constructor(stream: ServerHttp2Stream, { awaitsGo }: { readonly awaitsGo: boolean }) {
    this.#stream = stream
    this.#awaitsGo = awaitsGo
    stream.on('error', () => undefined)
    stream.once('close', () => this.#isWhole || this.#isBroken || this.#gone.abort(new Error('the program went away')))
  }

  get gone(): AbortSignal {
    return this.#gone.signal
  }

  get isBegun(): boolean {
    return this.#stream.headersSent
  }

  begin(): void {
    if (this.#awaitsGo && !this.#stream.destroyed) this.#stream.additionalHeaders({ ':status': 100 })
  }

  async pass({ status, headers, body, trailers }: Answer): Promise<void> {
    const stream = this.#stream
    stream.respond({ ':status': status, ...grouped(headers) }, { waitForTrailers: true })
    stream.once('wantTrailers', () => this.#end(trailers()))
    onBreak(body, () => (this.#isBroken ||= !stream.destroyed))
    if (!stream.writableEnded) await pipeline(body, stream)
    this.#isWhole = true
  }

  /** Asked for by the stream itself: what the other side chose and HTTP/2 has no way to write must not end this process. */
  #end(trailers: readonly Header[]): void {
    try {
      this.#stream.sendTrailers(grouped(trailers))
    } catch {
      this.breakOff()
    }
  }

  say({ status, headers, body }: Word): void {
    if (this.isBegun || this.#stream.destroyed) return
    this.#isWhole = true
    this.#stream.respond({ ':status': status, ...grouped(headers) })
    this.#stream.end(body)
  }

  breakOff(): void {
    this.#stream.destroy(new Error('the answer broke off'))
  }
}
