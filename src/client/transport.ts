/** Only what browsers have is used here; on Node another is handed in. */
import { type Transport, unreachable } from '../contract/wire/transport.js'

/** By `fetch`. */
export function webTransport(url: string): Transport {
  const base = url.replace(/\/+$/, '')
  return {
    request: async ({ method, path, headers, body, signal }) => {
      const stream = body === undefined || body instanceof Uint8Array ? body : streamOf(body)
      const options = { method, headers, redirect: 'error', credentials: 'omit', cache: 'no-store', ...(signal && { signal }) } as const
      const sent = stream === undefined ? options : { ...options, body: stream as ReadableStream, duplex: 'half' as const }
      const response = await fetch(`${base}${path}`, sent).catch((error: unknown) => {
        throw unreachable(base, error)
      })
      return { status: response.status, header: (name) => response.headers.get(name) ?? undefined, body: piecesOf(response.body) }
    },
    close: () => Promise.resolve(),
  }
}

function streamOf(pieces: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
  const iterator = pieces[Symbol.asyncIterator]()
  return new ReadableStream({
    async pull(controller) {
      const result = await iterator.next()
      if (result.done) controller.close()
      else controller.enqueue(result.value)
    },
    async cancel() {
      await iterator.return?.()
    },
  })
}

/** By its reader: not every stream of the web is an async iterable. */
function piecesOf(stream: ReadableStream<Uint8Array> | null): AsyncIterable<Uint8Array> {
  return {
    [Symbol.asyncIterator]() {
      const reader = stream?.getReader()
      return {
        next: async () => {
          const result = await reader?.read()
          return !result || result.done ? { done: true, value: undefined } : { done: false, value: result.value }
        },
        return: async () => {
          await reader?.cancel().catch(() => undefined)
          return { done: true, value: undefined }
        },
      }
    },
  }
}
