/** One GET of HTTP or HTTPS, as strangers' servers need it: nothing is waited for without end, and nothing is followed that was not asked about. */
import { request as plainRequest, type IncomingMessage } from 'node:http'
import { request as secureRequest } from 'node:https'
import { SandboxError } from '../contract/errors.js'

export interface GetOptions {
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal | undefined
  /** How long nothing may come. */
  readonly idleMs: number
}

export interface GetResponse {
  readonly status: number
  readonly header: (name: string) => string | undefined
  /** To be read to its end, or left by `return`. Rejects when it is cut short, or when nothing comes any more. */
  readonly body: AsyncIterable<Uint8Array>
}

/** Rejects with SandboxError('unavailable') naming the host. */
export async function httpGet(url: URL, { headers = {}, signal, idleMs }: GetOptions): Promise<GetResponse> {
  const request = url.protocol === 'https:' ? secureRequest : plainRequest
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    let answer: IncomingMessage | undefined
    const call = request(url, { headers: { 'user-agent': 'glovebox', ...headers }, agent: false, ...(signal && { signal }) }, (received) => {
      answer = received
      resolve(received)
    })
    // Of a call that was answered only the answer still tells anybody why it ended.
    call.setTimeout(idleMs, () => (answer ?? call).destroy(silent(url, idleMs)))
    call.once('error', (error) => reject(signal?.aborted === true ? signal.reason : unreachable(url, error)))
    call.end()
  })
  return {
    status: response.statusCode ?? 0,
    header: (name) => {
      const value = response.headers[name]
      return Array.isArray(value) ? value[0] : value
    },
    body: bodyOf(response, url, signal),
  }
}

async function* bodyOf(response: IncomingMessage, url: URL, signal: AbortSignal | undefined): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    for await (const piece of response) yield piece as Uint8Array
  } catch (error) {
    throw signal?.aborted === true ? signal.reason : endedEarly(url, error)
  } finally {
    response.destroy()
  }
}

function silent(url: URL, idleMs: number): SandboxError {
  return new SandboxError('unavailable', `${url.host} said nothing for ${idleMs < 1000 ? `${idleMs} ms` : `${Math.round(idleMs / 1000)} s`}`, {
    hint: attemptOf(url),
  })
}

const words: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nobody listens there',
  ECONNRESET: 'it ended the connection',
  ENOTFOUND: 'there is no such name',
  EAI_AGAIN: 'its name cannot be resolved now',
  ETIMEDOUT: 'it does not answer',
  EPROTO: 'it does not speak TLS',
}

function unreachable(url: URL, error: unknown): unknown {
  if (error instanceof SandboxError) return error
  const { code, message } = error as NodeJS.ErrnoException
  return new SandboxError('unavailable', `${url.host} cannot be reached: ${words[code ?? ''] ?? code ?? message}`, { hint: attemptOf(url), cause: error })
}

function endedEarly(url: URL, error: unknown): unknown {
  if ((error as NodeJS.ErrnoException).code !== 'ECONNRESET') return unreachable(url, error)
  return new SandboxError('unavailable', `${url.host} ended the connection before all of its answer had come`, { hint: attemptOf(url), cause: error })
}

/** Without what a path may hold of secrets. */
function attemptOf({ origin }: URL): string {
  return `curl -v ${origin}/v2/`
}
