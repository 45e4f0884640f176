import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { expect, test } from 'vitest'
import { testUnless } from '../unless.js'
import { closed, exchange, openFront, statusOf } from './front-harness.js'
import { httpServer, httpsServer, testAuthority } from './front-servers.js'

const hosts = { 'api.test': '127.0.0.1', 'other.test': '127.0.0.1', 'low.test': '127.66.0.1' }
const notRoot = process.getuid?.() !== 0 && 'ports below 1024 need root'

async function connected(port: number, target: string): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`)
  const [answer] = (await once(socket, 'data')) as [Buffer]
  expect(statusOf(answer.toString())).toBe('HTTP/1.1 200 Connection established')
  return socket
}

async function secured(socket: Socket, options: { servername?: string; ca: string }): Promise<TLSSocket> {
  const secure = connectTls({ socket, checkServerIdentity: () => undefined, ...options })
  await once(secure, 'secureConnect')
  return secure
}

async function echoServer({ greeting = '' } = {}) {
  const received: string[] = []
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    if (greeting) socket.write(greeting)
    socket.on('data', (chunk: Buffer) => {
      received.push(chunk.toString('latin1'))
      socket.write(chunk)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { port: (server.address() as AddressInfo).port, received, [Symbol.asyncDispose]: async () => void server.close() }
}

test('CONNECT carries TLS to the host that it names, unread', async () => {
  const authority = testAuthority()
  await using server = await httpsServer({ authority, host: 'api.test' })
  await using front = await openFront({ network: { allow: [`api.test:${server.port}`] }, hosts })

  const secure = await secured(await connected(front.port, `api.test:${server.port}`), { servername: 'api.test', ca: authority.certificate })
  secure.write('GET /x HTTP/1.1\r\nHost: anything\r\nConnection: close\r\n\r\n')
  const [answer] = (await once(secure, 'data')) as [Buffer]
  secure.destroy()

  expect(statusOf(answer.toString())).toBe('HTTP/1.1 200 OK')
  await expect.poll(() => front.records).toMatchObject([{ host: 'api.test', verdict: 'allowed', rule: `allow api.test:${server.port}` }])
})

test.each([
  ['other.test', 'names another server'],
  ['', 'does not name its server'],
])("TLS for '%s' does not go over a connection to another host", async (servername, reason) => {
  const authority = testAuthority()
  await using server = await httpsServer({ authority, host: 'api.test' })
  await using front = await openFront({ network: { allow: [`api.test:${server.port}`] }, hosts })

  const socket = await connected(front.port, `api.test:${server.port}`)
  await expect(secured(socket, { servername, ca: authority.certificate })).rejects.toThrow()

  expect(server.seen).toEqual([])
  await expect.poll(() => front.records).toMatchObject([{ verdict: 'denied', reason: expect.stringContaining(reason), bytesUp: 0 }])
})

test("with sni: 'any' the name of TLS is its own affair", async () => {
  const authority = testAuthority()
  await using server = await httpsServer({ authority, host: 'api.test' })
  await using front = await openFront({ network: { allow: [`api.test:${server.port}`], sni: 'any' }, hosts })

  const secure = await secured(await connected(front.port, `api.test:${server.port}`), { servername: 'other.test', ca: authority.certificate })

  expect(secure.authorized).toBe(true)
  secure.destroy()
})

test('a denied CONNECT is told why, and nothing is resolved', async () => {
  await using front = await openFront({ network: { allow: ['api.test'] }, hosts })

  const answer = await exchange(front.port, 'CONNECT other.test:443 HTTP/1.1\r\nHost: other.test:443\r\n\r\n')

  expect(statusOf(answer)).toBe('HTTP/1.1 403 Forbidden')
  expect(answer).toContain("network.allow: ['other.test'] would allow it")
  expect(front.resolved).toEqual([])
})

test('a port that no rule names is denied', async () => {
  await using front = await openFront({ network: { allow: ['api.test'] }, hosts })

  expect(statusOf(await exchange(front.port, 'CONNECT api.test:22 HTTP/1.1\r\nHost: api.test:22\r\n\r\n'))).toBe('HTTP/1.1 403 Forbidden')
})

test('a side that speaks first is heard first', async () => {
  await using server = await echoServer({ greeting: 'hello ' })
  await using front = await openFront({ network: { allow: [`api.test:${server.port}`] }, hosts })

  const heard = await exchange(front.port, `CONNECT api.test:${server.port} HTTP/1.1\r\nHost: api.test\r\n\r\n`, { until: /hello/ })

  expect(heard).toBe('HTTP/1.1 200 Connection established\r\n\r\nhello ')
})

test('what is sent right behind CONNECT is carried too', async () => {
  await using server = await echoServer()
  await using front = await openFront({ network: { allow: [`api.test:${server.port}`] }, hosts })

  const answer = await exchange(front.port, `CONNECT api.test:${server.port} HTTP/1.1\r\nHost: api.test\r\n\r\nat once`, { until: /at once/ })

  expect(answer).toBe('HTTP/1.1 200 Connection established\r\n\r\nat once')
})

test('the end of one direction leaves the other open', async () => {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.resume()
    socket.on('end', () => socket.end('after the end'))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await using front = await openFront({ network: { allow: [`api.test:${port}`] }, hosts })

  const socket = await connected(front.port, `api.test:${port}`)
  socket.end('all of it')
  let text = ''
  for await (const chunk of socket) text += String(chunk)
  server.close()

  expect(text).toBe('after the end')
})

test('a beginning of TLS in dribs and drabs is no way around its name', async () => {
  await using server = await echoServer()
  await using front = await openFront({ network: { allow: [`api.test:${server.port}`] }, hosts })
  const socket = await connected(front.port, `api.test:${server.port}`)
  socket.setNoDelay(true)
  socket.resume()
  const ended = closed(socket)
  for (const byte of [0x16, 3, 1, 0x3f, 0xff, 1, 0, 0x3f, 0xfb, ...Array.from({ length: 1000 }, () => 0)]) {
    if (socket.destroyed) break
    socket.write(Buffer.of(byte))
    await new Promise((resolve) => setImmediate(resolve))
  }
  socket.end('what is not looked at any more')
  await ended

  expect(server.received).toEqual([])
  await expect.poll(() => front.records).toMatchObject([{ bytesUp: 0 }])
})

test('what was sent before the end reaches whoever reads slowly', async () => {
  const size = 8_000_000
  const server = createServer((socket) => socket.end(Buffer.alloc(size, 'x')))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await using front = await openFront({ network: { allow: [`api.test:${port}`] }, hosts })
  const socket = connect({ port: front.port, host: '127.0.0.1', allowHalfOpen: true })
  socket.end(`CONNECT api.test:${port} HTTP/1.1\r\nHost: api.test\r\n\r\n`)
  let length = 0
  for await (const chunk of socket) {
    length += (chunk as Buffer).length
    if (length < 500_000) await new Promise((resolve) => setTimeout(resolve, 5))
  }
  server.close()

  expect(length - 'HTTP/1.1 200 Connection established\r\n\r\n'.length).toBe(size)
})

test('whoever is denied after saying what it wants gives its place back', async () => {
  const authority = testAuthority()
  await using server = await httpsServer({ authority, host: 'api.test' })
  await using front = await openFront({ network: { allow: [`api.test:${server.port}`], maxConnections: 1 }, hosts })
  const wrong = { servername: 'other.test', ca: authority.certificate }
  for (let index = 0; index < 3; index += 1) {
    const socket = await connected(front.port, `api.test:${server.port}`)
    await expect(secured(socket, wrong)).rejects.toThrow()
  }

  const secure = await secured(await connected(front.port, `api.test:${server.port}`), { servername: 'api.test', ca: authority.certificate })
  expect(secure.authorized).toBe(true)
  secure.destroy()
})

testUnless(notRoot)('at port 443 nothing but TLS goes through', async () => {
  const server = createServer()
  const received: Buffer[] = []
  server.on('connection', (socket) => socket.on('data', (chunk: Buffer) => received.push(chunk)))
  server.listen(443, '127.66.0.1')
  await once(server, 'listening')
  await using front = await openFront({ network: { allow: ['low.test'] }, hosts })

  const answer = await exchange(front.port, 'CONNECT low.test:443 HTTP/1.1\r\nHost: low.test\r\n\r\nSSH-2.0-x\r\n')
  server.close()

  expect(statusOf(answer)).toBe('HTTP/1.1 200 Connection established')
  expect(received).toEqual([])
  await expect.poll(() => front.records).toMatchObject([{ verdict: 'denied', scheme: 'tls', reason: expect.stringContaining('is not TLS') }])
})

testUnless(notRoot)('at port 80 each request inside is judged, and its Host must be that of CONNECT', async () => {
  await using server = await httpServer({ port: 80, address: '127.66.0.1' })
  await using front = await openFront({ network: { allow: ['low.test'] }, hosts })
  const inside = (host: string, rest = ''): string => `CONNECT low.test:80 HTTP/1.1\r\nHost: low.test\r\n\r\nGET /${rest} HTTP/1.1\r\nHost: ${host}\r\n\r\n`

  expect(await exchange(front.port, inside('low.test', 'yes'), { until: /seen/ })).toContain('seen GET /yes')
  expect(await exchange(front.port, inside('other.test'))).toContain('the Host header is not low.test')
  expect(await exchange(front.port, 'CONNECT low.test:80 HTTP/1.1\r\nHost: low.test\r\n\r\n\0\0\0')).not.toContain('seen')
  expect(server.seen.map(({ url }) => url)).toEqual(['/yes'])
})

const greeting = Buffer.of(5, 1, 0)
function socksConnect(name: string | Buffer, port: number, { command = 1 } = {}): Buffer {
  const bytes = Buffer.from(name)
  return Buffer.concat([greeting, Buffer.of(5, command, 0, 3, bytes.length), bytes, Buffer.of(port >> 8, port & 0xff)])
}
const accepted = '\x05\x00'
const replyOf = (answer: string): string => Buffer.from(answer.slice(2, 4), 'latin1').toString('hex')

test('SOCKS5 carries what it carries to an allowed host', async () => {
  await using server = await echoServer()
  await using front = await openFront({ network: { allow: [`api.test:${server.port}`] }, hosts })

  const answer = await exchange(front.port, Buffer.concat([socksConnect('api.test', server.port), Buffer.from('over socks')]), { until: /over socks/ })

  expect(answer).toBe(`${accepted}\x05\x00\x00\x01\0\0\0\0\0\0over socks`)
})

test.each([
  { name: 'a host that no rule names', bytes: socksConnect('other.test', 443), reply: '0502' },
  { name: 'a name with a NUL', bytes: socksConnect('api.test\0.other.test', 443), reply: '0502' },
  { name: 'a name of 255 bytes', bytes: socksConnect('a'.repeat(255), 443), reply: '0502' },
  { name: 'an empty name', bytes: socksConnect('', 443), reply: '0502' },
  { name: 'a name that is no UTF-8', bytes: socksConnect(Buffer.of(0xff, 0xfe), 443), reply: '0502' },
  { name: 'an address as a name', bytes: socksConnect('127.0.0.1', 443), reply: '0502' },
  { name: 'an address of IPv4', bytes: Buffer.concat([greeting, Buffer.of(5, 1, 0, 1, 127, 0, 0, 1, 1, 187)]), reply: '0502' },
  { name: 'an address of IPv6', bytes: Buffer.concat([greeting, Buffer.of(5, 1, 0, 4), Buffer.alloc(15), Buffer.of(1, 1, 187)]), reply: '0502' },
  { name: 'BIND', bytes: socksConnect('api.test', 443, { command: 2 }), reply: '0507' },
  { name: 'UDP ASSOCIATE', bytes: socksConnect('api.test', 443, { command: 3 }), reply: '0507' },
  { name: 'an unknown type of address', bytes: Buffer.concat([greeting, Buffer.of(5, 1, 0, 9, 1, 1, 1)]), reply: '0508' },
  { name: 'port 0', bytes: socksConnect('api.test', 0), reply: '0501' },
  { name: 'another version in the request', bytes: Buffer.concat([greeting, Buffer.of(4, 1, 0, 1, 1, 1, 1, 1, 1, 1)]), reply: '0501' },
])('SOCKS5 with $name: $reply', async ({ bytes, reply }) => {
  await using front = await openFront({ network: { allow: ['api.test'] }, hosts })

  const answer = await exchange(front.port, bytes)

  expect(replyOf(answer)).toBe(reply)
  expect(front.resolved).toEqual([])
  await expect.poll(() => front.records).toMatchObject([{ verdict: 'denied' }])
})

test('SOCKS5 with only a password, and SOCKS4, are refused', async () => {
  await using front = await openFront({ network: { allow: ['api.test'] }, hosts })

  expect(await exchange(front.port, Buffer.of(5, 1, 2))).toBe('\x05\xff')
  expect(await exchange(front.port, Buffer.from([4, 1, 1, 187, 0, 0, 0, 1, 0, ...Buffer.from('api.test\0')]))).toBe('\0\x5b\0\0\0\0\0\0')
})

test('a SOCKS5 host that cannot be reached is told as that', async () => {
  await using front = await openFront({ network: { allow: ['api.test:9'] }, hosts })

  expect(replyOf(await exchange(front.port, socksConnect('api.test', 9)))).toBe('0504')
})

test('a direct connection to an address is judged as that address', async () => {
  await using server = await echoServer()
  await using front = await openFront({ network: { allow: [`127.0.0.1:${server.port}`] }, hosts })

  expect(await exchange(await front.direct('127.0.0.1', server.port), 'hello', { until: /hello/ })).toBe('hello')
  expect(await exchange(await front.direct('127.0.0.2', server.port), 'GET / HTTP/1.1\r\n\r\n')).toContain('x-glovebox-denied: 127.0.0.2')
  expect(Buffer.from(await exchange(await front.direct('127.0.0.2', server.port), Buffer.of(0x16, 3, 1)), 'latin1').toString('hex')).toBe('15030300020231')
})

test('rules that are replaced end what they no longer allow', async () => {
  await using server = await echoServer()
  await using front = await openFront({ network: { allow: [`api.test:${server.port}`] }, hosts })
  const socket = await connected(front.port, `api.test:${server.port}`)
  socket.write('x')
  await once(socket, 'data')

  front.update({ allow: [] })

  socket.resume()
  await closed(socket)
  await expect.poll(() => front.records).toMatchObject([{ host: 'api.test', verdict: 'denied' }])
})
