/**
 * Connections to the other side that carry requests: one after another with HTTP/1.1, many at once with HTTP/2. Each belongs to one connection of a guest
 * and to one host, so that nothing of one program, or of one host, can reach another over it.
 */
import { Agent, type IncomingMessage, request as sendHttp1 } from 'node:http'
import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2, type IncomingHttpHeaders } from 'node:http2'
import { type Duplex, PassThrough, type Readable, type Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { EgressError } from './egress-error.js'
import type { Header } from './front-words.js'
import type { Upstream } from './gate-types.js'
import { endToEnd, type Framing, pairsOf, valuesOf } from './http-head.js'
import { onDeaf } from './http2-deaf.js'

export interface Outgoing {
  readonly method: string
  readonly path: string
  readonly scheme: 'http' | 'https'
  /** As Host and :authority. */
  readonly authority: string
  /** End to end. */
  readonly headers: readonly Header[]
  readonly framing: Framing
  readonly body: Readable
  /** Of a WebSocket: what asks for it. */
  readonly upgrade?: readonly Header[]
  readonly signal: AbortSignal
}

export interface Answer {
  readonly status: number
  readonly statusText: string
  /** End to end, and its length when it was said. */
  readonly headers: readonly Header[]
  readonly body: Readable
  /** Once the body is over. */
  readonly trailers: () => readonly Header[]
  /** What was carried for it alone, where a connection is shared. */
  readonly counted?: () => { readonly bytesUp: number; readonly bytesDown: number }
  /** Of 101: what goes on both ways. */
  readonly upgraded?: Duplex
}

export interface Carrier {
  readonly upstream: Upstream
  /** Whether it takes another request while one is under way. */
  readonly isShared: boolean
  readonly isUsable: boolean
  /** Whether a request is under way. */
  readonly isBusy: boolean
  /** Throws EgressError, or the signal's reason. */
  send(outgoing: Outgoing): Promise<Answer>
  close(): void
}

/** With one connection, and never another. */
class OneAgent extends Agent {
  #stream: Duplex | undefined

  constructor(stream: Duplex) {
    super({ keepAlive: true, maxSockets: 1 })
    this.#stream = stream
  }

  // Typed for sockets of the network; any stream will do.
  override createConnection(): Duplex {
    const stream = this.#stream
    this.#stream = undefined
    if (stream === undefined) throw new EgressError('broken', 'the other side ended the connection')
    return stream
  }
}

export class Http1Carrier implements Carrier {
  readonly isShared = false
  readonly #agent: OneAgent
  readonly #stream: Duplex
  #isBusy = false

  constructor(
    readonly upstream: Upstream,
    stream: Duplex,
  ) {
    this.#stream = stream
    this.#agent = new OneAgent(stream)
    stream.on('error', () => undefined)
  }

  get isBusy(): boolean {
    return this.#isBusy
  }

  get isUsable(): boolean {
    return !this.#isBusy && this.upstream.isOpen && !this.#stream.destroyed && this.#stream.writable
  }

  async send(outgoing: Outgoing): Promise<Answer> {
    this.#isBusy = true
    const { method, path, signal, body } = outgoing
    signal.throwIfAborted()
    const sent = sendHttp1({ agent: this.#agent, method, path, setHost: false, headers: linesOf(outgoing) as never, signal, ...strictness })
    // Headers beyond a number would be left out in silence; their size is bounded.
    sent.maxHeadersCount = 0
    const answer = new Promise<Answer>((resolve, reject) => {
      sent.once('response', (response) => {
        const problem = problemOf(response)
        if (problem === undefined) resolve(this.#answerOf(response, { isSent: () => sent.writableFinished }))
        else reject(new EgressError('broken', problem))
      })
      sent.once('upgrade', (response, stream, head) => {
        if (!outgoing.upgrade || response.headers.upgrade?.toLowerCase() !== 'websocket') {
          reject(new EgressError('broken', unasked))
          return
        }
        if (head.length > 0) stream.unshift(head)
        resolve({ ...this.#answerOf(response, { isSent: () => false }), upgraded: stream })
      })
      sent.on('error', (error) => reject(reasonOf(error, signal)))
    })
    upload(body, sent)
    return await answer
  }

  #answerOf(response: IncomingMessage, { isSent }: { isSent: () => boolean }): Answer {
    response.once('end', () => {
      this.#isBusy = !(isSent() && response.complete)
    })
    const headers = pairsOf(response.rawHeaders)
    return {
      status: response.statusCode ?? 502,
      statusText: response.statusMessage?.replace(/[^\x20-\x7e]/g, '?') ?? '',
      headers: [...endToEnd(headers), ...headers.filter(([name]) => name.toLowerCase() === 'content-length')],
      body: response,
      trailers: () => endToEnd(pairsOf(response.rawTrailers)),
    }
  }

  close(): void {
    this.#agent.destroy()
    this.#stream.destroy()
    this.upstream.stream.destroy()
  }
}

/** Whatever the host's own settings of Node say. */
const strictness = { insecureHTTPParser: false, maxHeaderSize: 32 * 1024 } as const

const unasked = 'the other side changed to a protocol that nobody asked for'

/** What is encoded in another way than in chunks would go on without a word of it. */
function problemOf({ statusCode, rawHeaders }: IncomingMessage): string | undefined {
  if (statusCode === 101) return unasked
  const isKnown = valuesOf(pairsOf(rawHeaders), 'transfer-encoding').every((encoding) => encoding.toLowerCase() === 'chunked')
  return isKnown ? undefined : 'the other side encodes its answer in an unknown way'
}

/** The source outlives a target that takes no more: the program is still to be answered, and what it goes on sending is then for nobody. */
function upload(body: Readable, target: Writable): void {
  target.once('close', () => {
    body.unpipe(target)
    body.resume()
  })
  body.pipe(target)
}

function linesOf({ authority, headers, framing, upgrade, method }: Outgoing): string[] {
  const length: Header[] = framing === 'none' && ['POST', 'PUT', 'PATCH'].includes(method) ? [['Content-Length', '0']] : framingHeader(framing)
  return [['Host', authority] as const, ...headers, ...length, ...(upgrade ?? [])].flat()
}

function framingHeader(framing: Framing): Header[] {
  if (framing === 'none') return []
  return framing === 'chunked' ? [['Transfer-Encoding', 'chunked']] : [['Content-Length', String(framing)]]
}

function reasonOf(error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason
  return error instanceof EgressError ? error : new EgressError('broken', 'the other side broke off, or spoke no HTTP')
}

export class Http2Carrier implements Carrier {
  readonly isShared = true
  readonly #session: ClientHttp2Session
  #underWay = 0

  constructor(
    readonly upstream: Upstream,
    stream: Duplex,
  ) {
    // HTTP/2 has no half of a connection: whoever ends its own has ended all of it, and nobody waits for what cannot come.
    stream.allowHalfOpen = false
    this.#session = connectHttp2('https://upstream.invalid', { createConnection: () => stream, settings: { enablePush: false }, maxSessionMemory: 8 })
    this.#session.on('error', () => undefined)
    this.#session.on('goaway', () => this.#session.close())
    onDeaf(upstream.stream, () => this.#session.destroy(new EgressError('broken', 'the other side broke the rules of HTTP/2')))
  }

  get isBusy(): boolean {
    return this.#underWay > 0
  }

  get isUsable(): boolean {
    return this.upstream.isOpen && !this.#session.closed && !this.#session.destroyed
  }

  async send(outgoing: Outgoing): Promise<Answer> {
    const { method, path, scheme, authority, headers, framing, body, signal } = outgoing
    signal.throwIfAborted()
    const pseudo = { ':method': method, ':path': path, ':scheme': scheme, ':authority': authority }
    const length = typeof framing === 'number' ? { 'content-length': String(framing) } : {}
    const stream = this.#session.request({ ...pseudo, ...grouped(headers), ...length, te: 'trailers' }, { endStream: framing === 'none', signal })
    this.#underWay += 1
    stream.once('close', () => {
      this.#underWay -= 1
    })
    const isWhole = watchEnd(stream)
    let trailers: readonly Header[] = []
    let [bytesUp, bytesDown] = [0, 0]
    stream.on('trailers', (_headers: IncomingHttpHeaders, _flags: number, raw?: string[]) => {
      trailers = pairsOf(raw ?? [])
    })
    const answer = new Promise<Answer>((resolve, reject) => {
      stream.once('response', (given, _flags: number, ...[raw]: unknown[]) => {
        const pairs = pairsOf((raw as string[] | undefined) ?? []).filter(([name]) => !name.startsWith(':'))
        const said = pairs.filter(([name]) => name === 'content-length')
        // A stream that is readable alone: what is piped onwards must not end the other direction.
        const content = new PassThrough()
        content.on('data', (chunk: Buffer) => {
          bytesDown += chunk.length
        })
        content.pause()
        pipeline(stream, content, { end: false }).then(
          () => (isWhole() ? content.end() : content.destroy(new EgressError('broken', 'the other side broke off its answer'))),
          (error: unknown) => content.destroy(error as Error),
        )
        const counted = () => ({ bytesUp, bytesDown })
        resolve({ status: Number(given[':status']), statusText: '', headers: [...endToEnd(pairs), ...said], body: content, trailers: () => trailers, counted })
      })
      stream.on('error', (error: Error) => reject(reasonOf(error, signal)))
      stream.once('close', () => reject(new EgressError('broken', 'the other side ended the request without an answer')))
    })
    if (framing !== 'none') {
      body.on('data', (chunk: Buffer) => {
        bytesUp += chunk.length
      })
      upload(body, stream)
    }
    return await answer
  }

  close(): void {
    this.#session.destroy()
    this.upstream.stream.destroy()
  }
}

/** Whether the other side has said that this was all. Node tells one that was reset without an error like that, too: but then it has closed the stream before. */
function watchEnd(stream: ClientHttp2Stream): () => boolean {
  const push = stream.push.bind(stream)
  let isWhole = false
  stream.push = (chunk: unknown, encoding?: BufferEncoding): boolean => {
    if (chunk === null) isWhole ||= !stream.closed
    return push(chunk, encoding)
  }
  return () => isWhole
}

/** As Node wants them: those that are there more than once as a list. */
export function grouped(headers: readonly Header[]): Record<string, string | string[]> {
  const groups: Record<string, string | string[]> = Object.create(null) as Record<string, string | string[]>
  for (const [name, value] of headers) {
    const key = name.toLowerCase()
    const known = groups[key]
    groups[key] = known === undefined ? value : [...(Array.isArray(known) ? known : [known]), value]
  }
  return groups
}
