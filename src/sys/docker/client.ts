/**
 * The HTTP API of a container engine, over its socket or TCP. One connection a call: engines close idle ones when it suits them, and a call that dies of that could
 * not be told from one that was carried out.
 */
import { Agent as HttpAgent, type ClientRequest, type IncomingMessage, request as httpRequest, type RequestOptions } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { SandboxError } from '../../contract/errors.js'
import { parseJson } from '../../contract/json-text.js'
import { describeAddress, type EngineAddress } from './address.js'

export interface EngineCall {
  readonly query?: Readonly<Record<string, string>>
  /** Sent as JSON. */
  readonly body?: unknown
  /** Sent as it is, instead of JSON: an archive. One that is not there whole is sent as it comes, and the call fails when it does. */
  readonly archive?: Buffer | Readable
  /** How long the answer may take; 0: as long as it takes, and nothing is kept alive by waiting for it. */
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

export interface Connection {
  readonly socket: Socket
  /** What came with the answer. */
  readonly head: Buffer
}

export interface EngineClient {
  readonly address: EngineAddress
  /** The version of the API that is spoken. */
  version(): Promise<string>
  /** The answer, parsed; undefined when it is empty. Throws EngineError for what the engine refuses, SandboxError for one that does not answer. */
  call(method: string, path: string, order?: EngineCall): Promise<unknown>
  /** A connection that the engine has given up to the streams of a container. */
  hijack(path: string, order?: EngineCall): Promise<Connection>
}

/** The engine answered, and it was no. */
export class EngineError extends SandboxError {
  readonly status: number

  constructor(status: number, message: string) {
    super(status >= 500 ? 'unavailable' : 'broken', message, { hint: 'glovebox doctor' })
    this.status = status
  }
}

/** The oldest that has all that is asked for (Docker 19.03, Podman 3), and the newest whose answers are known. */
const oldest = [1, 40] as const
const newest = [1, 43] as const
const usualMs = 30_000
const mostBytes = 16 * 2 ** 20
const mostWords = 400

export function createEngineClient(address: EngineAddress): EngineClient {
  let asked: Promise<string> | undefined
  const version = (): Promise<string> => {
    asked ??= negotiate(address)
    asked.catch(() => (asked = undefined))
    return asked
  }
  return {
    address,
    version,
    call: async (method, path, order = {}) => {
      const response = await answer({ address, method, path: `/v${await version()}${path}`, order })
      return bodyOf(response, `${method} ${path}`)
    },
    hijack: async (path, order = {}) => hijack({ address, method: 'POST', path: `/v${await version()}${path}`, order }),
  }
}

async function negotiate(address: EngineAddress): Promise<string> {
  const response = await answer({ address, method: 'GET', path: '/_ping', order: { timeoutMs: 10_000 } })
  const told = response.headers['api-version']
  if (told === undefined) throw await noEngine(response, address)
  response.resume()
  const [major = 0, minor = 0] = String(told).split('.').map(Number)
  if (major !== oldest[0] || minor < oldest[1]) {
    throw new SandboxError('unavailable', `${describeAddress(address)} speaks version ${major}.${minor} of the Engine API; ${oldest.join('.')} is needed`, {
      hint: 'docker version',
    })
  }
  return `${major}.${Math.min(minor, newest[1])}`
}

async function noEngine(response: IncomingMessage, address: EngineAddress): Promise<SandboxError> {
  const where = describeAddress(address)
  const words = (await readAll(response, 'GET /_ping')).toString('utf8')
  if (response.statusCode === 400 && words.includes('HTTPS server')) {
    return new SandboxError('unavailable', `the container engine at ${where} is asked without TLS, and wants it`, {
      hint: 'export DOCKER_TLS_VERIFY=1 DOCKER_CERT_PATH=~/.docker',
    })
  }
  return new SandboxError('unavailable', `${where} does not say which version of the Engine API it speaks: it is no container engine`, {
    hint: 'docker version',
  })
}

interface Order {
  readonly address: EngineAddress
  readonly method: string
  readonly path: string
  readonly order: EngineCall
}

function begin({ address, method, path, order }: Order, headers: Record<string, string>): ClientRequest {
  const stream = order.archive instanceof Readable ? order.archive : undefined
  const whole = order.archive instanceof Readable ? undefined : order.archive
  const body = whole ?? (order.body === undefined ? undefined : Buffer.from(JSON.stringify(order.body)))
  const type = order.archive ? 'application/x-tar' : 'application/json'
  const query = new URLSearchParams(order.query).toString()
  const options: RequestOptions = {
    method,
    path: query === '' ? path : `${path}?${query}`,
    headers: {
      ...(address.kind === 'socket' && { Host: 'docker' }),
      ...((body ?? stream) && { 'Content-Type': type }),
      ...(body && { 'Content-Length': String(body.length) }),
      ...headers,
    },
    ...(order.signal && { signal: order.signal }),
  }
  const request = connectTo(address, options)
  if (stream) stream.on('error', (error) => request.destroy(error)).pipe(request)
  else request.end(body)
  return request
}

function connectTo(address: EngineAddress, options: RequestOptions): ClientRequest {
  if (address.kind === 'socket') return httpRequest({ ...options, socketPath: address.path, agent: new HttpAgent({ keepAlive: false }) })
  const { host, port, tls } = address
  if (tls === undefined) return httpRequest({ ...options, host, port, agent: new HttpAgent({ keepAlive: false }) })
  return httpsRequest({ ...options, host, port, ...tls, agent: new HttpsAgent({ keepAlive: false }) })
}

/** The answer to a call, when its status and headers are there. */
async function answer(order: Order): Promise<IncomingMessage> {
  const request = begin(order, {})
  const timeoutMs = order.order.timeoutMs ?? usualMs
  if (timeoutMs === 0) request.on('socket', (socket) => socket.unref())
  const { promise, stop } = settled<IncomingMessage>(request, { ...order, timeoutMs })
  request.once('response', (response: IncomingMessage) => {
    // The clock goes on until all of it was read.
    response.once('close', stop)
    promise.resolve(response)
  })
  return promise.promise
}

async function hijack(order: Order): Promise<Connection> {
  const request = begin(order, { Connection: 'Upgrade', Upgrade: 'tcp' })
  const { promise, stop } = settled<Connection>(request, { ...order, timeoutMs: order.order.timeoutMs ?? usualMs })
  request.once('upgrade', (_response: IncomingMessage, socket: Socket, head: Buffer) => {
    stop()
    promise.resolve({ socket, head })
  })
  request.once('response', (response: IncomingMessage) => {
    response.once('close', stop)
    bodyOf(response, `POST ${order.path}`).then(
      () => promise.reject(new EngineError(response.statusCode ?? 0, `${describeAddress(order.address)} does not hand over the streams of a container`)),
      promise.reject,
    )
  })
  return promise.promise
}

interface Settling<T> {
  readonly promise: { readonly promise: Promise<T>; readonly resolve: (value: T) => void; readonly reject: (why: unknown) => void }
  readonly stop: () => void
}

function settled<T>(request: ClientRequest, { address, method, path, order, timeoutMs }: Order & { readonly timeoutMs: number }): Settling<T> {
  let resolve: (value: T) => void = () => undefined
  let reject: (why: unknown) => void = () => undefined
  const promise = new Promise<T>((onValue, onFailure) => {
    resolve = onValue
    reject = onFailure
  })
  const late = (): void => {
    const error = new SandboxError('unavailable', `${describeAddress(address)} gave no answer to ${method} ${path} within ${timeoutMs} ms`, {
      hint: 'docker version',
    })
    reject(error)
    request.destroy(error)
  }
  const timer = timeoutMs === 0 ? undefined : setTimeout(late, timeoutMs)
  const stop = (): void => clearTimeout(timer)
  request.once('close', stop)
  request.on('error', (error: NodeJS.ErrnoException) => {
    stop()
    reject(order.signal?.aborted ? order.signal.reason : unreachable(address, error))
  })
  return { promise: { promise, resolve, reject }, stop }
}

async function bodyOf(response: IncomingMessage, what: string): Promise<unknown> {
  const { socket } = response
  const bytes = await readAll(response, what)
  // It is for this answer alone, and the other side may take its time to close it.
  socket.destroy()
  const status = response.statusCode ?? 0
  const text = bytes.toString('utf8')
  if (status >= 400) throw new EngineError(status, `the container engine refuses ${what}: ${messageIn(text)}`)
  if (!(response.headers['content-type'] ?? '').includes('json') || text.trim() === '') return undefined
  // Progress is told by one object a line; the last is what it came to.
  const lines = text.trim().split('\n')
  return parseJson(lines.length > 1 ? (lines.at(-1) as string) : text, `the answer to ${what}`)
}

async function readAll(response: IncomingMessage, what: string): Promise<Buffer> {
  const pieces: Buffer[] = []
  let bytes = 0
  // Counted as it comes: an answer in pieces does not tell its length ahead. Whoever stops reading destroys it.
  for await (const piece of response as AsyncIterable<Buffer>) {
    bytes += piece.length
    if (bytes > mostBytes) throw new SandboxError('broken', `the answer to ${what} is larger than ${mostBytes} bytes`)
    pieces.push(piece)
  }
  return Buffer.concat(pieces)
}

function messageIn(text: string): string {
  try {
    const { message } = JSON.parse(text) as { readonly message?: unknown }
    if (typeof message === 'string') return message.slice(0, mostWords)
  } catch {
    // Not every refusal is JSON.
  }
  return text.trim().slice(0, mostWords) || 'without a word'
}

function unreachable(address: EngineAddress, error: NodeJS.ErrnoException): SandboxError {
  if (error instanceof SandboxError) return error
  const where = describeAddress(address)
  const path = address.kind === 'socket' ? address.path : ''
  const known: Readonly<Record<string, { readonly why: string; readonly hint: string }>> = {
    ENOENT: { why: 'there is no such socket: no container engine runs, or DOCKER_HOST names another', hint: 'systemctl start docker' },
    ECONNREFUSED: { why: 'nobody listens there', hint: 'systemctl start docker' },
    EACCES: { why: 'this user may not connect to it', hint: `ls -l ${path}; usermod -aG docker "$USER"` },
  }
  const { why, hint } = known[error.code ?? ''] ?? distrust(address, error.code ?? '') ?? { why: error.message, hint: 'docker version' }
  return new SandboxError('unavailable', `the container engine at ${where} cannot be reached: ${why}`, { hint, cause: error })
}

const lookAtCertificates = 'ls -l "${DOCKER_CERT_PATH:-$HOME/.docker}"'

/** By the names that OpenSSL and Node give to it; those of alerts differ from version to version. */
function distrust(address: EngineAddress, code: string): { readonly why: string; readonly hint: string } | undefined {
  if (address.kind !== 'tcp' || !address.tls) return undefined
  const words: readonly (readonly [RegExp, string])[] = [
    [/^UNABLE_TO_|SELF_SIGNED|^CERT_(SIGNATURE_FAILURE|UNTRUSTED)$/, 'its certificate is not vouched for by ca.pem'],
    [/^CERT_HAS_EXPIRED$/, 'its certificate has expired'],
    [/ALTNAME_INVALID$/, `its certificate is for another name than ${address.host}`],
    [/ALERT_(BAD_CERTIFICATE|UNKNOWN_CA|CERTIFICATE_\w+|ACCESS_DENIED)$/, 'it does not accept cert.pem'],
    [/WRONG_VERSION_NUMBER$/, 'it does not speak TLS, and DOCKER_TLS_VERIFY asks for it'],
  ]
  const why = words.find(([pattern]) => pattern.test(code))?.[1]
  return why === undefined ? undefined : { why, hint: lookAtCertificates }
}
