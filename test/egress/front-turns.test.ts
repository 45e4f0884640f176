import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { expect, test } from 'vitest'
import type { GuestConnection } from '../../src/contract/egress.js'
import { openFront } from './front-harness.js'

/** The first bytes of a client of TLS. */
async function helloFor(servername: string): Promise<Buffer> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connectTls({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', servername })
  client.on('error', () => undefined)
  const [socket] = (await once(server, 'connection')) as [Socket]
  const [hello] = (await once(socket, 'data')) as [Buffer]
  client.destroy()
  server.close()
  return hello
}

/** All that it has to say is there at once, and then nothing more; it notes what it is told. */
function saying(parts: readonly Buffer[], told: (bytes: Buffer) => void): GuestConnection {
  let end = (): void => undefined
  const closed = new Promise<void>((resolve) => {
    end = resolve
  })
  return {
    door: 'proxy',
    address: '127.0.0.1',
    port: 0,
    output: (async function* () {
      yield* parts
      await closed
    })(),
    write: async (bytes) => told(Buffer.from(bytes)),
    end: async () => undefined,
    closed,
    destroy: async () => end(),
  }
}

test('however many connections of one sandbox ask for TLS at once, the process has its turn between any two', async () => {
  const count = 40
  await using front = await openFront({ network: { allow: ['*.api.test'], terminate: true } })
  const hello = await helloFor('h00.api.test')
  let turns = 0
  let isOver = false
  const turn = (): void => {
    turns += 1
    if (!isOver) setImmediate(turn)
  }
  setImmediate(turn)
  await Promise.all(
    Array.from({ length: count }, (_, index) => {
      const host = `h${String(index).padStart(2, '0')}`
      const asked = Buffer.from(`CONNECT ${host}.api.test:443 HTTP/1.1\r\n\r\n`)
      const own = Buffer.from(hello.toString('latin1').replace('h00', host), 'latin1')
      return new Promise<void>((resolve) => front.egress.accept(saying([asked, own], (bytes) => bytes[0] === 0x16 && resolve())))
    }),
  )
  isOver = true
  // To be looked at, and for the handshake.
  expect(turns).toBeGreaterThanOrEqual(2 * count - 1)
})
