/** Listens, hands requests on, and stops in order. */
import { createServer, type Server, type ServerOptions as HttpOptions } from 'node:http'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https'
import type { Socket } from 'node:net'
import { createSecureContext, type SecureContextOptions } from 'node:tls'
import { SandboxError } from '../contract/errors.js'
import { Desk } from './desk.js'
import { allHandlers } from './handlers.js'
import { type Allowance, nothingAllowed } from './remote-spec.js'
import { type RequestOptions, Requests } from './requests.js'
import type { HouseParts } from './resources/house.js'
import { Signing } from './signing.js'
import { Standing } from './standing.js'
import { Terminals } from './terminals.js'
import type { PortsParts } from './resources/ports.js'
import { Tickets } from './tickets.js'
import { Upgrades } from './upgrades.js'

export interface TlsOptions extends SecureContextOptions {
  /** Whoever connects has to show a certificate of `ca`. */
  readonly requestCert?: boolean
}

/** Throws what is wrong with them: that they do not belong together, say. */
export function checkTls(tls: TlsOptions): void {
  createSecureContext(tls)
}

export interface ServerOptions extends RequestOptions, HouseParts {
  readonly tls?: TlsOptions
  /** What callers may ask of the machine itself; nothing when not given. */
  readonly allowed?: Allowance | 'everything'
  readonly openPort?: PortsParts['openPort']
}

/** Where it listens: a port of an address, or a socket of this machine. */
export type ListenAt = { readonly host: string; readonly port: number } | { readonly socket: string }

export interface Listening {
  /** What a client connects to. */
  readonly url: string
  readonly port?: number
}

/** Connections that have nothing to do any more are looked for so often while it stops. */
const sweepMs = 50

const limits: HttpOptions = {
  maxHeaderSize: 32_768,
  headersTimeout: 10_000,
  // A large upload takes its time; one that stands still is given up where it is read.
  requestTimeout: 0,
  keepAliveTimeout: 65_000,
  connectionsCheckingInterval: 2000,
  insecureHTTPParser: false,
  requireHostHeader: true,
  noDelay: true,
}

export class GloveboxServer implements AsyncDisposable {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #requests: Requests
  readonly #isTls: boolean
  #isClosing = false

  constructor(options: ServerOptions) {
    const desk = new Desk(options.allowed ?? nothingAllowed)
    const { keys, trusted } = options
    const isAccepted = (key: string): Promise<boolean> => (key === trusted?.key ? Promise.resolve(true) : keys.isAccepted(key))
    const [tickets, signing, standing] = [new Tickets(isAccepted), new Signing(isAccepted), new Standing(isAccepted)]
    const handlers = allHandlers(desk, { ...options, signing, domain: options.door.domain }, { desk, tickets, isReady: () => !this.#isClosing })
    this.#requests = new Requests(options, { desk, handlers, signing, standing })
    const upgrades = new Upgrades({ requests: this.#requests, house: options.house, signing, standing, tickets, terminals: new Terminals() })
    this.#isTls = options.tls !== undefined
    this.#server = options.tls ? createTlsServer({ ...limits, ...options.tls, rejectUnauthorized: true }) : createServer(limits)
    this.#server.on('request', (request, response) => void this.#requests.handle(request, response))
    this.#server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
    })
    this.#server.on('upgrade', (request, socket, head) => void upgrades.handle({ request, socket, head }))
    this.#server.on('clientError', (error: NodeJS.ErrnoException, socket) => refuse(socket as Socket, statuses[error.code ?? ''] ?? '400 Bad Request'))
  }

  /** How many are open. */
  get connections(): number {
    return this.#sockets.size
  }

  /** Throws SandboxError('conflict') when somebody else listens there. */
  async listen(at: ListenAt): Promise<Listening> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', (error: NodeJS.ErrnoException) => reject(listenFailure(error)))
      this.#server.listen('socket' in at ? { path: at.socket } : { host: at.host, port: at.port }, resolve)
    })
    if ('socket' in at) return { url: `unix:${at.socket}` }
    const { port } = this.#server.address() as { readonly port: number }
    const host = at.host.includes(':') ? `[${at.host}]` : at.host
    return { url: `${this.#isTls ? 'https' : 'http'}://${host}:${port}`, port }
  }

  /** Certificates that take the place of those that hold; connections that are open keep theirs. */
  renewTls(tls: TlsOptions): void {
    ;(this.#server as Partial<TlsServer>).setSecureContext?.(tls)
  }

  /** What is under way may end within the grace; after it nothing is left. Idempotent. */
  async close({ graceMs = 0 }: { readonly graceMs?: number } = {}): Promise<void> {
    this.#isClosing = true
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    this.#requests.stop()
    const sweep = setInterval(() => this.#server.closeIdleConnections(), sweepMs)
    const timer = setTimeout(() => {
      for (const socket of this.#sockets) socket.destroy()
    }, graceMs)
    await closed
    clearTimeout(timer)
    clearInterval(sweep)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}

/** What a parser gave up has a word of its own in HTTP. */
const statuses: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
}

/** What is no HTTP is told so, and nothing more. */
function refuse(socket: Socket, status: string): void {
  if (socket.writable && socket.bytesWritten === 0) socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`)
  else socket.destroy()
}

function listenFailure(error: NodeJS.ErrnoException): SandboxError {
  if (error.code === 'EADDRINUSE') return new SandboxError('conflict', 'listen: somebody else listens there', { cause: error })
  if (error.code === 'EACCES') return new SandboxError('denied', 'listen: this user may not listen there', { cause: error })
  return new SandboxError('unavailable', `listen: nothing can listen there: ${error.message}`, { cause: error })
}
