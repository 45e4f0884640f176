/** A connection to a port in a sandbox, carried as frames, so that the end of one direction is told whatever stands between. */
import type { Duplex } from 'node:stream'
import type { PortConnection } from '../contract/ports.js'
import { encodeFrame, FrameReader, frameTypes } from '../contract/wire/frames.js'

/** Resolves when both directions have ended; what breaks off on one side breaks off on the other. */
export async function carry(socket: Duplex, head: Uint8Array, connection: PortConnection): Promise<void> {
  const broken = connection.closed.catch(() => socket.destroy())
  try {
    await Promise.all([inwards(socket, head, connection), outwards(socket, connection)])
    socket.end()
    await broken
  } catch {
    socket.destroy()
  } finally {
    await connection.destroy().catch(() => undefined)
  }
}

async function inwards(socket: Duplex, head: Uint8Array, connection: PortConnection): Promise<void> {
  const reader = new FrameReader()
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
