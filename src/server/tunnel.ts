/** A connection to a port in a sandbox, carried as frames, so that the end of one direction is told whatever stands between. */
import type { Duplex } from 'node:stream'
import type { PortConnection } from '../contract/ports.js'
import { asSandboxError, errorInJson } from './http-error.js'
import { encodeFrame, FrameReader, frameTypes } from '../contract/wire/frames.js'

/** Of what is carried at once; it is held until it is whole. */
const mostPieceBytes = 2 ** 20

export interface Carriage {
  /** What came of it already. */
  readonly head: Uint8Array
  /** Aborts when it must end; the reason is told. */
  readonly signal: AbortSignal
}

/** Resolves when both directions have ended; what breaks off on one side breaks off on the other. */
export async function carry(socket: Duplex, { head, signal }: Carriage, connection: PortConnection): Promise<void> {
  const cut = (): void => {
    if (socket.writable) socket.end(encodeFrame(frameTypes.json, new TextEncoder().encode(JSON.stringify(errorInJson(asSandboxError(signal.reason))))))
    void connection.destroy().catch(() => undefined)
  }
  signal.addEventListener('abort', cut, { once: true })
  const broken = connection.closed.catch(() => socket.destroy())
  try {
    await Promise.all([inwards(socket, head, connection), outwards(socket, connection)])
    socket.end()
    await broken
  } catch {
    // What is said at the end of one that was cut off is still on its way.
    if (!signal.aborted) socket.destroy()
  } finally {
    signal.removeEventListener('abort', cut)
    await connection.destroy().catch(() => undefined)
  }
}

async function inwards(socket: Duplex, head: Uint8Array, connection: PortConnection): Promise<void> {
  const reader = new FrameReader(mostPieceBytes)
  const take = async (piece: Uint8Array): Promise<boolean> => {
    for (const { type, payload } of reader.push(piece)) {
      if (type === frameTypes.end) {
        await connection.end()
        return true
      }
      if (type === frameTypes.data) await connection.write(payload)
    }
    return false
  }
  if (head.length > 0 && (await take(head))) return
  for await (const piece of socket.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>) if (await take(piece)) return
  throw new Error('the other side left without an end')
}

async function outwards(socket: Duplex, connection: PortConnection): Promise<void> {
  const write = (bytes: Uint8Array): Promise<void> =>
    new Promise((resolve, reject) => {
      socket.write(bytes, (error) => (error ? reject(error) : resolve()))
    })
  for await (const piece of connection.output) await write(encodeFrame(frameTypes.data, piece))
  await write(encodeFrame(frameTypes.end, new Uint8Array()))
}
