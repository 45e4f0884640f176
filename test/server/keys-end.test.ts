/** What hangs on a key, or on a connection, ends with it. */
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createClient } from '../../src/client/index.js'
import type { Scope } from '../../src/contract/tenants.js'
import { localActor } from '../../src/ledger.js'
import { nodeTransport } from '../../src/sys/http-transport.js'
import { type OwnServer, ownServer, plain } from './own-server.js'

let own: OwnServer
beforeAll(async () => {
  own = await ownServer()
})
afterAll(() => own[Symbol.asyncDispose]())

const newKey = (scopes: readonly Scope[] = ['run']) => own.ledger.keys.create({ tenant: 'red', scopes: [...scopes] }, localActor)

describe('a key that is revoked', () => {
  test('takes what it signed with it, and nothing of what another signed', async () => {
    const [gone, stays] = [await newKey(), await newKey()]
    const { id } = await own.client(stays.secret).create(plain)
    const signed = async (secret: string) => {
      const client = own.client(secret)
      await client.start(id, { command: ['sh', '-c', 'echo signed > a.txt'] }).then(({ ended }) => ended)
      const file = new URL((await client.files.of(id).url?.('a.txt')) ?? '')
      const port = new URL((await client.ports.url?.(id, 9)) ?? '')
      const { ticket } = (await own.ask('/v1/tickets', { key: secret, body: {} })).json()
      return async () => [
        (await own.ask(file.pathname)).status,
        // Nothing listens there: who may go is told that.
        (await own.ask('/', { headers: { host: port.host } })).status,
        await upgraded(id, `ticket.${String(ticket)}`),
      ]
    }
    const [ofGone, ofStays, again] = [await signed(gone.secret), await signed(stays.secret), await signed(stays.secret)]
    expect(await ofStays()).toEqual([200, 404, 101])
    expect(await own.ledger.keys.revoke(gone.id, localActor)).toBe(true)
    expect(await ofGone()).toEqual([401, 401, 401])
    expect(await again()).toEqual([200, 404, 101])
  })
})

/** The status with which a terminal is opened by this ticket. */
function upgraded(id: string, ticket: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = connect(own.port, '127.0.0.1')
    socket.on('error', reject)
    socket.once('data', (bytes) => {
      resolve(Number(bytes.toString().split(' ')[1]))
      socket.destroy()
    })
    const upgrade = 'connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA=='
    socket.write(`GET /v1/sandboxes/${id}/terminal HTTP/1.1\r\nhost: localhost\r\n${upgrade}\r\nsec-websocket-protocol: glovebox.v1, ${ticket}\r\n\r\n`)
  })
}

describe('a scope', () => {
  test.each([
    ['read', [200, 403, 403]],
    ['run', [200, 201, 403]],
    ['admin', [200, 201, 200]],
  ] as const)('%s includes those before it, at the door and before each act, and nothing more', async (scope, statuses) => {
    const { secret: key } = await newKey([scope])
    const asked = [await own.ask('/v1/sandboxes', { key }), await own.ask('/v1/sandboxes', { key, body: plain }), await own.ask('/v1/keys', { key })]
    expect(asked.map(({ status }) => status)).toEqual(statuses)
  })
})

describe('a sandbox that is held', () => {
  const liveOf = async (key: string) => ((await own.ask('/v1/sandboxes', { key })).json().items as { id: string }[]).map(({ id }) => id)

  test('ends with the connection that holds it; others of the same caller stay', async () => {
    const { secret } = await newKey()
    const transport = nodeTransport({ place: { url: own.url } })
    const client = createClient({ key: secret, transport, closesOwn: true })
    const { id: kept } = await own.client(secret).create(plain)
    const { id } = await client.create(plain)
    expect(await liveOf(secret)).toEqual(expect.arrayContaining([id, kept]))
    // As a process that is killed leaves it: nothing more is said.
    await transport.close()
    await expect.poll(() => liveOf(secret)).not.toContain(id)
    expect(await liveOf(secret)).toContain(kept)
  })

  test('is held by nobody who may only look', async () => {
    const { id } = await own.client((await newKey()).secret).create(plain)
    expect((await own.ask(`/v1/sandboxes/${id}/events?hold=true`, { key: (await newKey(['read'])).secret })).status).toBe(403)
  })
})

test('a caller that leaves while a port is connected to is no defect of the server', async () => {
  const { secret: key } = await newKey()
  const { id } = await own.client(key).create(plain)
  for (let count = 0; count < 20; count += 1) {
    const socket = connect(own.port, '127.0.0.1')
    socket.on('error', () => undefined)
    socket.write(
      `GET /v1/sandboxes/${id}/ports/9 HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${key}\r\nconnection: upgrade\r\nupgrade: glovebox-tunnel\r\n\r\n`,
    )
    await new Promise((resolve) => setTimeout(resolve, count))
    socket.destroy()
    const wait = new AbortController()
    const waited = own.client(key).ports.waitFor(id, 9, { timeout: 5000, signal: wait.signal })
    setTimeout(() => wait.abort(new Error('left')), count)
    await expect(waited).rejects.toThrow('left')
  }
  expect((await own.ask('/v1/health')).status).toBe(200)
  expect(own.lines.filter(({ error, defect }) => error === 'internal' || defect !== undefined)).toEqual([])
})
