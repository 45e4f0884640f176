import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import type { LoopbackConnection } from '../../src/contract/ports.js'
import { listenOnLoopback } from '../../src/sys/loopback-listener.js'

/** A listener, and the first connection that came to it. */
async function connected() {
  const order = { port: undefined, mostConnections: 8, onConnection: (_: LoopbackConnection) => undefined as void }
  const first = new Promise<LoopbackConnection>((resolve) => {
    order.onConnection = resolve
  })
  const listener = await listenOnLoopback(order)
  const client = connect({ port: listener.port, host: '127.0.0.1', allowHalfOpen: true })
  client.on('error', () => undefined)
  await once(client, 'connect')
  return { listener, client, connection: await first }
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
  const [failure] = await Promise.all([once(client, 'error'), connection.destroy()])
  expect(failure[0]).toMatchObject({ code: 'ECONNRESET' })
  await listener.close()
})
