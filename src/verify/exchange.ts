import { connect } from 'node:net'
import { buffer } from 'node:stream/consumers'

/** Sends this to a port of the host's loopback and ends that direction; all that comes back. */
export async function exchange(port: number, bytes: Uint8Array): Promise<Uint8Array> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  socket.end(bytes)
  return new Uint8Array(await buffer(socket))
}
