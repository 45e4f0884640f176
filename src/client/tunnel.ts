import { SandboxError } from '../contract/errors.js'
import type { PortConnection } from '../contract/ports.js'
import { encodeFrame, FrameReader, frameTypes } from '../contract/wire/frames.js'
import type { TunnelBytes } from '../contract/wire/transport.js'
import { errorFrom } from './wire.js'

const mostPiece = 2 ** 20

/** One to a port, over frames. */
export function connectionOf(tunnel: TunnelBytes): PortConnection {
  let isDestroyed = false
  const ends = { out: deferredEnd(), in: deferredEnd() }
  const closed = Promise.all([ends.out.over, ends.in.over]).then(() => tunnel.destroy())
  closed.catch(() => undefined)
  return {
    output: outputOf(tunnel.input, { end: ends.in, isDestroyed: () => isDestroyed }),
    closed,
    write: async (bytes) => {
      for (let at = 0; at < bytes.length; at += mostPiece) await tunnel.write(encodeFrame(frameTypes.data, bytes.subarray(at, at + mostPiece)))
    },
    end: async () => {
      await tunnel.write(encodeFrame(frameTypes.end, new Uint8Array()))
      ends.out.resolve()
    },
    destroy: () => {
      isDestroyed = true
      tunnel.destroy()
      ends.in.resolve()
      ends.out.resolve()
      return Promise.resolve()
    },
  }
}

interface End {
  readonly over: Promise<void>
  resolve(): void
  reject(error: unknown): void
}

function deferredEnd(): End {
  let settle: Pick<End, 'resolve' | 'reject'> = { resolve: () => undefined, reject: () => undefined }
  const over = new Promise<void>((resolve, reject) => {
    settle = { resolve, reject }
  })
  over.catch(() => undefined)
  return { over, ...settle }
}

async function* outputOf(
  input: AsyncIterable<Uint8Array>,
  { end, isDestroyed }: { readonly end: End; readonly isDestroyed: () => boolean },
): AsyncGenerator<Uint8Array, void, undefined> {
  const reader = new FrameReader()
  try {
    for await (const piece of input) {
      for (const { type, payload } of reader.push(piece)) {
        if (type === frameTypes.end) {
          end.resolve()
          return
        }
        if (type === frameTypes.data) yield payload
        if (type === frameTypes.json) throw errorFrom(JSON.parse(new TextDecoder().decode(payload)) as object)
      }
    }
    throw new SandboxError('conflict', 'the connection broke off')
  } catch (error) {
    end.reject(error)
    if (!isDestroyed()) throw error instanceof SandboxError ? error : new SandboxError('conflict', 'the connection broke off', { cause: error })
  }
}
