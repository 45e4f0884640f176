/** Requests that are passed on to a program in a sandbox. It is told nothing of who asks but what they say to it. */
import { type ClientRequest, request as httpRequest, type IncomingHttpHeaders, type IncomingMessage, type OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { SandboxError } from '../contract/errors.js'
import type { Platform } from '../contract/platform.js'
import { streamOf } from './port-stream.js'

export interface Passing {
  readonly platform: Platform
  readonly sandbox: string
  readonly port: number
  /** With what follows a `?`. */
  readonly path: string
  /** Whether it is shown below an address of ours, beside others, rather than under a name of its own. */
  readonly isBeside: boolean
  /** Whether what the caller says of who they are is said to us. */
  readonly isKeyOurs: boolean
  readonly signal: AbortSignal
}

/** Of one connection only, or ours. */
const ownHeaders = ['connection', 'keep-alive', 'proxy-authenticate', 'proxy-authorization', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'host', 'expect']

function requestHeaders(headers: IncomingHttpHeaders, { isBeside, isKeyOurs, port }: Passing): OutgoingHttpHeaders {
  const left = new Set([...ownHeaders, ...(isKeyOurs ? ['authorization'] : []), ...(isBeside ? ['cookie', 'origin', 'referer'] : [])])
  const named = new Set((headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase()))
  // Where its body ends is no matter of one connection: without it the body would be a request of its own.
  named.delete('content-length')
  const kept = Object.entries(headers).filter(([name]) => !left.has(name) && !named.has(name) && !name.startsWith('glovebox-'))
  const framing = headers['transfer-encoding'] === undefined ? {} : { 'transfer-encoding': 'chunked' }
  return { ...Object.fromEntries(kept), ...framing, host: `localhost:${port}` }
}

/** By which an answer would say something of all that is at our address: of what browsers keep of it, and how they reach it. */
const ofOurAddress = [
  'set-cookie',
  'access-control-allow-origin',
  'service-worker-allowed',
  'clear-site-data',
  'strict-transport-security',
  'alt-svc',
  'nel',
  'report-to',
  'reporting-endpoints',
]

/** A page of a guest's that is shown beside ours is one of nobody: it has no origin, and keeps nothing. */
function responseHeaders(headers: IncomingHttpHeaders, { isBeside }: Passing): OutgoingHttpHeaders {
  const left = new Set([...ownHeaders.filter((name) => name !== 'host'), ...(isBeside ? ofOurAddress : [])])
  const kept = Object.fromEntries(Object.entries(headers).filter(([name]) => !left.has(name) && !name.startsWith('glovebox-')))
  if (!isBeside) return kept
  const policies = [kept['content-security-policy'] ?? [], 'sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads'].flat()
  return { ...kept, 'content-security-policy': policies.join(', '), 'cross-origin-resource-policy': 'same-origin', 'x-content-type-options': 'nosniff' }
}

/** Resolves when the answer was passed back. */
export async function passRequest(request: IncomingMessage, response: ServerResponse, passing: Passing): Promise<void> {
  const { platform, sandbox, port, path, signal } = passing
  const stream = streamOf(await platform.ports.connect(sandbox, port, { signal }))
  try {
    const outgoing = httpRequest({ ...over(stream), method: request.method ?? 'GET', path, headers: requestHeaders(request.headers, passing), signal })
    const answered = answerOf(outgoing, passing)
    // What is not sent to its end is told by the answer that does not come.
    pipeline(request, outgoing).catch(() => undefined)
    await passAnswer(await answered, response, passing)
  } finally {
    stream.destroy()
  }
}

/** The connection itself becomes the program's, once it agrees; what it says instead is an answer like any other. Resolves when it is over. */
export async function passUpgrade(request: IncomingMessage, socket: Duplex, passing: Passing & { readonly head: Uint8Array }): Promise<void> {
  const { platform, sandbox, port, path, head, signal } = passing
  const stream = streamOf(await platform.ports.connect(sandbox, port, { signal }))
  try {
    const headers = { ...requestHeaders(request.headers, passing), connection: 'Upgrade', upgrade: request.headers.upgrade ?? '' }
    const outgoing = httpRequest({ ...over(stream), method: request.method ?? 'GET', path, headers, signal })
    const agreed = new Promise<Agreement>((resolve) => outgoing.once('upgrade', (answer, _, first) => resolve({ answer, first })))
    outgoing.end()
    const answer = await Promise.race([agreed, answerOf(outgoing, passing)])
    if (!('first' in answer)) {
      await refuseUpgrade(answer, { request, socket }, passing)
      return
    }
    const kept = Object.entries({ ...responseHeaders(answer.answer.headers, passing), connection: 'Upgrade', upgrade: answer.answer.headers.upgrade })
    const lines = kept.flatMap(([name, value]) => [value ?? []].flat().map((each) => `${name}: ${String(each)}\r\n`))
    socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('')}\r\n`)
    socket.write(answer.first)
    if (head.length > 0) stream.write(head)
    await Promise.all([pipeline(socket, stream, { signal }), pipeline(stream, socket, { signal })]).finally(() => socket.destroy())
  } finally {
    stream.destroy()
  }
}

interface Agreement {
  readonly answer: IncomingMessage
  /** What came right behind it. */
  readonly first: Buffer
}

function over(stream: Duplex): { readonly createConnection: () => Duplex } {
  return { createConnection: () => stream }
}

/** Throws SandboxError('broken') for what is no answer. */
async function answerOf(outgoing: ClientRequest, { port, signal }: Passing): Promise<IncomingMessage> {
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    outgoing.once('response', resolve)
    outgoing.once('error', reject)
    // One that turns into something that nobody asked for ends without a word.
    outgoing.once('close', () => reject(new Error('the connection was closed')))
  })
  const answer = await answered.catch((error: unknown) => {
    signal.throwIfAborted()
    throw new SandboxError('broken', `port: what listens on ${port} does not speak HTTP`, { cause: error })
  })
  if ((answer.statusCode ?? 0) < 200) throw new SandboxError('broken', `port: what listens on ${port} answers with a status that is none`)
  return answer
}

async function passAnswer(answer: IncomingMessage, response: ServerResponse, passing: Passing): Promise<void> {
  const { port, signal } = passing
  response.writeHead(answer.statusCode ?? 502, responseHeaders(answer.headers, passing))
  await pipeline(answer, response, { signal }).catch((error: unknown) => {
    signal.throwIfAborted()
    throw new SandboxError('broken', `port: what listens on ${port} broke off in the midst of its answer`, { cause: error })
  })
}

async function refuseUpgrade(answer: IncomingMessage, { request, socket }: { readonly request: IncomingMessage; readonly socket: Duplex }, passing: Passing) {
  const response = new ServerResponse(request)
  response.shouldKeepAlive = false
  response.assignSocket(socket as Socket)
  try {
    await passAnswer(answer, response, passing)
    socket.end()
  } catch {
    // It has begun: nothing else can be said.
    socket.destroy()
  }
}
