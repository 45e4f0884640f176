import { EventEmitter, once } from 'node:events'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import type { LoopbackConnection } from '../../src/contract/ports.js'
import { listenOnLoopback } from '../../src/sys/loopback-listener.js'

/** A listener, and the first connection that came to it. */
async function connected() {
  const arrivals = new EventEmitter<{ connection: [LoopbackConnection] }>()
  const first = once(arrivals, 'connection') as Promise<[LoopbackConnection]>
  const listener = await listenOnLoopback({ port: undefined, mostConnections: 8, onConnection: (connection) => arrivals.emit('connection', connection) })
  const client = connect({ port: listener.port, host: '127.0.0.1', allowHalfOpen: true })
  client.on('error', () => undefined)
  await once(client, 'connect')
  const [connection] = await first
  return { listener, client, connection }
}

test('a connection that is broken off in the midst of its end is closed', async () => {
  const { listener, client, connection } = await connected()
  void connection.end()
  connection.destroy()
  await connection.closed
  client.destroy()
  await listener.close()
})

test('a listener that closes in the midst of the end of a connection closes that too', async () => {
  const { listener, client, connection } = await connected()
  void connection.end()
  await listener.close()
  await connection.closed
  client.destroy()
})

test('a connection that is broken off otherwise is reset', async () => {
  const { listener, client, connection } = await connected()
  client.resume()
  const failed = once(client, 'error')
  connection.destroy()
  expect((await failed)[0]).toMatchObject({ code: 'ECONNRESET' })
  await listener.close()
})
