/** Requests that are passed on to a program in a sandbox. It is told nothing of who asks but what they say to it. */
import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage, type OutgoingHttpHeaders, type ServerResponse } from 'node:http'
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
  const kept = Object.entries(headers).filter(([name]) => !left.has(name) && !named.has(name) && !name.startsWith('glovebox-'))
  return { ...Object.fromEntries(kept), host: `localhost:${port}` }
}

/** A page of a guest's that is shown beside ours is one of nobody: it has no origin, and keeps nothing. */
function responseHeaders(headers: IncomingHttpHeaders, { isBeside }: Passing): OutgoingHttpHeaders {
  const left = new Set([
    ...ownHeaders.filter((name) => name !== 'host'),
    ...(isBeside ? ['set-cookie', 'access-control-allow-origin', 'service-worker-allowed'] : []),
  ])
  const kept = Object.fromEntries(Object.entries(headers).filter(([name]) => !left.has(name)))
  if (!isBeside) return kept
  const policies = [kept['content-security-policy'] ?? [], 'sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads'].flat()
  return { ...kept, 'content-security-policy': policies.join(', '), 'cross-origin-resource-policy': 'same-origin', 'x-content-type-options': 'nosniff' }
}

/** Resolves when the answer was passed back. */
export async function passRequest(request: IncomingMessage, response: ServerResponse, passing: Passing): Promise<void> {
  const { platform, sandbox, port, path, signal } = passing
  const stream = streamOf(await platform.ports.connect(sandbox, port, { signal }))
  try {
    const options = { createConnection: () => stream, method: request.method ?? 'GET', path, headers: requestHeaders(request.headers, passing), signal }
    const outgoing = httpRequest(options)
    const answered = new Promise<IncomingMessage>((resolve, reject) => {
      outgoing.once('response', resolve)
      outgoing.once('error', reject)
    })
    // What is not sent to its end is told by the answer that does not come.
    pipeline(request, outgoing).catch(() => undefined)
    const answer = await answered.catch((error: unknown) => {
      signal.throwIfAborted()
      throw new SandboxError('broken', `port: what listens on ${port} does not speak HTTP`, { cause: error })
    })
    response.writeHead(answer.statusCode ?? 502, responseHeaders(answer.headers, passing))
    await pipeline(answer, response, { signal }).catch((error: unknown) => {
      signal.throwIfAborted()
      throw new SandboxError('broken', `port: what listens on ${port} broke off in the midst of its answer`, { cause: error })
    })
  } finally {
    stream.destroy()
  }
}

/** The connection itself becomes the program's, once it agrees. Resolves when it is over. */
export async function passUpgrade(request: IncomingMessage, socket: Duplex, passing: Passing & { readonly head: Uint8Array }): Promise<void> {
  const { platform, sandbox, port, path, head, signal } = passing
  const stream = streamOf(await platform.ports.connect(sandbox, port, { signal }))
  const headers = { ...requestHeaders(request.headers, passing), connection: 'Upgrade', upgrade: request.headers.upgrade ?? '' }
  const lines = Object.entries(headers).flatMap(([name, value]) => [value ?? []].flat().map((each) => `${name}: ${String(each)}\r\n`))
  stream.write(`${request.method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`)
  if (head.length > 0) stream.write(head)
  try {
    await Promise.all([pipeline(socket, stream, { signal }), pipeline(stream, socket, { signal })])
  } finally {
    stream.destroy()
    socket.destroy()
  }
}
