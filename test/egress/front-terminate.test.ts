import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { connect as connectHttp2, type IncomingHttpHeaders } from 'node:http2'
import { connect } from 'node:net'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { inspect } from 'node:util'
import { expect, test } from 'vitest'
import type { NetworkInput } from '../../src/contract/network.js'
import { exchange, type OpenFront, openFront, statusOf } from './front-harness.js'
import { http2Server, httpServer, httpsServer, type OtherSide, scratch, testAuthority } from './front-servers.js'

const hosts = { 'api.test': '127.0.0.1', 'other.test': '127.0.0.1' }
const authority = testAuthority()

type Wish = Exclude<NetworkInput, false>

async function openTo(
  server: OtherSide,
  network: Wish = { terminate: true },
  options: { trusted?: string[]; env?: Record<string, string> } = {},
): Promise<OpenFront> {
  return await openFront({ network: { allow: [`api.test:${server.port}`], ...network }, hosts, trusted: [authority.certificate], ...options })
}

/** Through CONNECT, trusting nobody but the authority of the front. */
async function inside(
  front: OpenFront,
  { port, servername = 'api.test', protocols = ['http/1.1'] }: { port: number; servername?: string; protocols?: string[] },
): Promise<TLSSocket> {
  const socket = connect(front.port, '127.0.0.1')
  socket.on('error', () => undefined)
  socket.write(`CONNECT api.test:${port} HTTP/1.1\r\nHost: api.test:${port}\r\n\r\n`)
  await once(socket, 'data')
  const secure = connectTls({ socket, servername, ca: front.certificate, ALPNProtocols: protocols })
  secure.on('error', () => undefined)
  await once(secure, 'secureConnect')
  return secure
}

async function ask(secure: TLSSocket, request: string, until = /\r\n\r\n[^]*\S/): Promise<string> {
  let text = ''
  const over = new Promise<void>((resolve) => {
    secure.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1')
      if (until.test(text)) resolve()
    })
    secure.once('close', () => resolve())
  })
  secure.write(request)
  await over
  secure.removeAllListeners('data')
  return text
}

const get = (path: string, { host = 'api.test', port = 0, more = '' }: { host?: string; port?: number; more?: string } = {}): string =>
  `GET ${path} HTTP/1.1\r\nHost: ${port ? `${host}:${port}` : host}\r\n${more}\r\n`

test('terminated TLS is served with a certificate of ours, and the other side is verified', async () => {
  await using server = await httpsServer({ authority, host: 'api.test' })
  await using front = await openTo(server)

  const secure = await inside(front, server)
  const answer = await ask(secure, get('/a?b=c', server))
  secure.destroy()

  expect(secure.authorized).toBe(true)
  expect(answer).toContain('seen GET /a?b=c 0')
  await expect.poll(() => front.records).toMatchObject([{ scheme: 'https', method: 'GET', path: '/a', status: 200, verdict: 'allowed' }])
})

test.each([
  { name: 'of another host', host: 'other.test', trusted: [authority.certificate] },
  { name: 'of an authority that nobody trusts', host: 'api.test', trusted: [] },
])('another side with a certificate $name gets no request', async ({ host, trusted }) => {
  await using server = await httpsServer({ authority, host })
  await using front = await openTo(server, { terminate: true }, { trusted })

  const answer = await ask(await inside(front, server), get('/', server))

  expect(statusOf(answer)).toBe('HTTP/1.1 502 Bad Gateway')
  expect(answer).toMatch(/glovebox: TLS to api.test: [A-Z_]+/)
  expect(server.seen).toEqual([])
})

test('only the methods and paths that a rule names', async () => {
  await using server = await httpsServer({ authority, host: 'api.test' })
  await using front = await openTo(server, { allow: [{ host: 'api.test', ports: [server.port], methods: ['GET'], paths: ['/v1/*'] }] })
  const secure = await inside(front, server)

  expect(statusOf(await ask(secure, get('/v1/x', server)))).toBe('HTTP/1.1 200 OK')
  expect(statusOf(await ask(secure, get('/v2/x', server)))).toBe('HTTP/1.1 403 Forbidden')
  expect(statusOf(await ask(secure, get('/v1/../v2', server)))).toBe('HTTP/1.1 403 Forbidden')
  expect(statusOf(await ask(secure, get('/v1/x', server).replace('GET', 'DELETE')))).toBe('HTTP/1.1 403 Forbidden')
  expect(statusOf(await ask(secure, get('/v1/y', server)))).toBe('HTTP/1.1 200 OK')
  secure.destroy()

  expect(server.seen.map(({ url }) => url)).toEqual(['/v1/x', '/v1/y'])
  expect(server.connections()).toBe(1)
})

test('the Host inside must be that of the connection', async () => {
  await using server = await httpsServer({ authority, host: 'api.test' })
  await using front = await openTo(server, { terminate: true, allow: [`api.test:${server.port}`, `other.test:${server.port}`] })

  const answer = await ask(await inside(front, server), get('/', { host: 'other.test', port: server.port }))

  expect(statusOf(answer)).toBe('HTTP/1.1 403 Forbidden')
  expect(answer).toContain('the Host header is not api.test')
  expect(server.connections()).toBe(0)
})

test('another name in TLS than that of the connection is refused', async () => {
  await using server = await httpsServer({ authority, host: 'api.test' })
  await using front = await openTo(server)

  await expect(inside(front, { port: server.port, servername: 'other.test' })).rejects.toThrow('alert')
  await expect.poll(() => front.records).toMatchObject([{ verdict: 'denied', reason: expect.stringContaining('SNI') }])
})

test('where requests are looked at, nothing but TLS and HTTP goes through', async () => {
  await using server = await httpServer()
  await using front = await openTo(server)
  const socket = connect(front.port, '127.0.0.1')
  socket.write(`CONNECT api.test:${server.port} HTTP/1.1\r\nHost: api.test\r\n\r\nSSH-2.0-x\r\n`)
  let text = ''
  for await (const chunk of socket) text += String(chunk)

  expect(text).toBe('HTTP/1.1 200 Connection established\r\n\r\n')
  expect(server.connections()).toBe(0)
})

interface Got {
  headers: IncomingHttpHeaders
  trailers: IncomingHttpHeaders | undefined
  body: string
}

async function askHttp2(secure: TLSSocket, headers: Record<string, string>, body?: string): Promise<Got> {
  const session = connectHttp2('https://api.test', { createConnection: () => secure })
  try {
    return await askSession(session, headers, body)
  } finally {
    session.destroy()
  }
}

async function askSession(session: ReturnType<typeof connectHttp2>, headers: Record<string, string>, body?: string): Promise<Got> {
  const stream = session.request(headers)
  stream.end(body)
  const got: Got = { headers: {}, trailers: undefined, body: '' }
  stream.on('response', (given) => {
    got.headers = given
  })
  stream.on('trailers', (given) => {
    got.trailers = given
  })
  for await (const chunk of stream) got.body += String(chunk)
  return got
}

test.each([
  { name: 'that speaks it, too', open: http2Server, version: '2.0' },
  { name: 'that speaks HTTP/1.1 only', open: httpsServer, version: '1.1' },
])('HTTP/2 to another side $name', async ({ open, version }) => {
  await using server = await open({ authority, host: 'api.test' })
  await using front = await openTo(server)
  const authorityText = `api.test:${server.port}`

  const secure = await inside(front, { port: server.port, protocols: ['h2'] })
  const got = await askHttp2(secure, { ':method': 'POST', ':path': '/p', ':authority': authorityText, cookie: 'a=b', 'x-mine': '1' }, 'body')

  expect(got).toMatchObject({ body: 'seen POST /p 4', headers: { ':status': 200, 'x-served-by': 'test' } })
  expect(server.seen).toMatchObject([{ method: 'POST', version, body: 'body', headers: { cookie: 'a=b', 'x-mine': '1' } }])
  await expect.poll(() => front.records).toMatchObject([{ method: 'POST', path: '/p', status: 200, scheme: 'https' }])
})

test('many requests of HTTP/2 at once share one connection, and each is judged', async () => {
  await using server = await http2Server({ authority, host: 'api.test' })
  await using front = await openTo(server, { allow: [{ host: 'api.test', ports: [server.port], paths: ['/yes/*'] }] })
  const secure = await inside(front, { port: server.port, protocols: ['h2'] })
  const session = connectHttp2('https://api.test', { createConnection: () => secure })
  const paths = Array.from({ length: 40 }, (_, index) => (index % 4 === 3 ? `/no/${index}` : `/yes/${index}`))

  const answers = await Promise.all(paths.map((path) => askSession(session, { ':path': path, ':authority': `api.test:${server.port}` })))
  session.destroy()

  expect(answers.map(({ headers }) => headers[':status'])).toEqual(paths.map((path) => (path.startsWith('/yes') ? 200 : 403)))
  expect(server.seen.filter(({ url }) => url.startsWith('/no'))).toEqual([])
  expect(server.connections()).toBe(1)
})

test('what follows the body of HTTP/2 is passed on', async () => {
  await using server = await http2Server({
    authority,
    host: 'api.test',
    answer: (_request, response) => {
      response.setHeader('content-type', 'application/grpc')
      response.write('message')
      response.addTrailers({ 'grpc-status': '0' })
      response.end()
    },
  })
  await using front = await openTo(server)

  const got = await askHttp2(await inside(front, { port: server.port, protocols: ['h2'] }), {
    ':path': '/',
    ':authority': `api.test:${server.port}`,
    te: 'trailers',
  })

  expect(got).toMatchObject({ body: 'message', trailers: { 'grpc-status': '0' } })
})

test.each([
  { name: 'another :authority', headers: { ':path': '/', ':authority': 'other.test' }, status: 403 },
  { name: 'another Host', headers: { ':path': '/', host: 'other.test' }, status: 403 },
  { name: 'CONNECT', headers: { ':method': 'CONNECT', ':authority': 'other.test:443' }, status: 403 },
  { name: 'TRACE', headers: { ':method': 'TRACE', ':path': '/' }, status: 400 },
  { name: 'another scheme', headers: { ':path': '/', ':scheme': 'http' }, status: 403 },
])('HTTP/2 with $name is refused', async ({ headers, status }) => {
  await using server = await http2Server({ authority, host: 'api.test' })
  await using front = await openTo(server)
  const usual = 'host' in headers ? {} : { ':authority': `api.test:${server.port}` }

  const got = await askHttp2(await inside(front, { port: server.port, protocols: ['h2'] }), { ...usual, ...headers } as Record<string, string>)

  expect(got.headers[':status']).toBe(status)
  expect(server.connections()).toBe(0)
})

test('more of HTTP/2 than its length says never reaches another side that speaks HTTP/1.1', async () => {
  await using server = await httpsServer({ authority, host: 'api.test' })
  await using front = await openTo(server)
  const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: other.test\r\n\r\n'
  const headers = { ':method': 'POST', ':path': '/', ':authority': `api.test:${server.port}`, 'content-length': '2' }

  await askHttp2(await inside(front, { port: server.port, protocols: ['h2'] }), headers, `ok${smuggled}`).catch(() => undefined)
  await expect.poll(() => front.records.length).toBe(1)

  expect(server.seen.filter(({ url }) => url === '/smuggled')).toEqual([])
  expect(server.seen.map(({ body }) => body).join('')).not.toContain('smuggled')
})

const secret = 'Bearer s3cr3t-0f-the-host'

test('a credential is put on the wire for its host, and is nowhere else', async () => {
  await using server = await httpsServer({ authority, host: 'api.test' })
  await using other = await httpsServer({ authority, host: 'other.test' })
  using folder = scratch()
  const file = join(folder.path, 'token')
  writeFileSync(file, `${secret}-file\n`)
  const host = `api.test:${server.port}`
  const network: Wish = {
    allow: [host, `other.test:${other.port}`],
    credentials: [
      { host, header: 'Authorization', value: secret },
      { host, header: 'X-From-Env', env: 'TOKEN' },
      { host, header: 'X-From-File', file },
    ],
  }
  await using front = await openTo(server, network, { env: { TOKEN: `${secret}-env` } })

  const secure = await inside(front, server)
  const answer = await ask(secure, get('/', { ...server, more: 'Authorization: Bearer placeholder\r\nConnection: authorization\r\n' }))
  const got = await askHttp2(await inside(front, { port: server.port, protocols: ['h2'] }), { ':path': '/2', ':authority': host, authorization: 'mine' })

  expect(server.seen.map(({ headers }) => [headers.authorization, headers['x-from-env'], headers['x-from-file']])).toEqual([
    [secret, `${secret}-env`, `${secret}-file`],
    [secret, `${secret}-env`, `${secret}-file`],
  ])
  await expect.poll(() => front.records.length).toBe(2)
  expect(inspect([answer, got, front.records, front.egress.summary(), front.egress], { depth: 20, showHidden: true })).not.toContain('s3cr3t')
})

test('a credential does not go over plain HTTP', async () => {
  await using plain = await httpServer()
  const host = `api.test:${plain.port}`
  await using front = await openTo(plain, { allow: [host], credentials: [{ host, header: 'authorization', value: secret }] })
  const request = `GET http://${host}/ HTTP/1.1\r\nHost: ${host}\r\nAuthorization: own\r\n\r\n`
  const inTunnel = `CONNECT ${host} HTTP/1.1\r\nHost: ${host}\r\n\r\n${request.replace(`http://${host}`, '')}`

  await exchange(front.port, request, { until: /seen/ })
  await exchange(front.port, inTunnel, { until: /seen/ })

  expect(plain.seen.map(({ headers }) => headers.authorization)).toEqual(['own', 'own'])
})

test('a credential that cannot be had is told by its field, and the rules before it stay', async () => {
  await using server = await httpsServer({ authority, host: 'api.test' })
  await using front = await openTo(server)
  const host = 'api.test'

  expect(() => front.update({ allow: [], credentials: [{ host, header: 'a', env: 'NOT_THERE' }] })).toThrow(
    'network.credentials[0].env: the variable NOT_THERE is not set',
  )
  expect(() => front.update({ allow: [], credentials: [{ host, header: 'a', file: '/dev/zero' }] })).toThrow(
    'network.credentials[0].file: /dev/zero is no file',
  )
  expect(() => front.update({ allow: [], credentials: [{ host, header: 'a', file: '/nowhere/at/all' }] })).toThrow('network.credentials[0].file')
  expect(statusOf(await ask(await inside(front, server), get('/', server)))).toBe('HTTP/1.1 200 OK')
})

/** As much of RFC 6455 as shows that bytes go both ways. */
function shakeHands(request: IncomingMessage, stream: Duplex): void {
  const accept = createHash('sha1').update(`${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
  stream.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\nfirst `)
  stream.pipe(stream)
}

const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'
const accept = 's3pPLMBiTxaQ9kYGzzhZRbK+xOo='

test('a WebSocket over terminated TLS goes both ways, with what was sent ahead', async () => {
  await using server = await httpsServer({ authority, host: 'api.test', onUpgrade: shakeHands })
  await using front = await openTo(server)

  const secure = await inside(front, server)
  const answer = await ask(secure, `${get('/ws', { ...server, more: upgrade })}ahead `, /first ahead /)
  const echo = await ask(secure, 'and later', /later/)
  secure.destroy()

  expect(statusOf(answer)).toBe('HTTP/1.1 101 Switching Protocols')
  expect(answer.toLowerCase()).toContain(`sec-websocket-accept: ${accept.toLowerCase()}`)
  expect(echo).toBe('and later')
  await expect.poll(() => front.records).toMatchObject([{ scheme: 'wss', path: '/ws', status: 101, verdict: 'allowed' }])
})

test('a WebSocket over plain HTTP goes both ways; to a host that is denied there is none', async () => {
  await using server = await httpServer({ onUpgrade: shakeHands })
  await using front = await openTo(server)
  const of = (host: string): string => `GET http://${host}:${server.port}/ HTTP/1.1\r\nHost: ${host}:${server.port}\r\n${upgrade}\r\n`

  expect(await exchange(front.port, of('api.test'), { until: /first/ })).toContain(accept)
  expect(statusOf(await exchange(front.port, of('other.test')))).toBe('HTTP/1.1 403 Forbidden')
  expect(server.connections()).toBe(1)
})

test('a WebSocket that the other side refuses is refused with its own words', async () => {
  await using server = await httpsServer({ authority, host: 'api.test', answer: (_request, response) => void response.writeHead(401).end('not you') })
  await using front = await openTo(server)

  const answer = await ask(await inside(front, server), get('/ws', { ...server, more: upgrade }), /not you/)

  expect(statusOf(answer)).toBe('HTTP/1.1 401 Unauthorized')
})
