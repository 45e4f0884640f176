import { expect, test } from 'vitest'
import { exchange, type OpenFront, openFront, statusOf } from './front-harness.js'
import { httpServer, type OtherSide } from './front-servers.js'

const hosts = { 'api.test': '127.0.0.1', 'evil.test': '127.0.0.1' }

interface Case {
  readonly name: string
  readonly bytes: string
  readonly status: string
}

/** P stands for the port of the server; each is followed by what must never be taken for a request of its own. */
const hidden = 'GET http://evil.test:P/hidden HTTP/1.1\r\nHost: evil.test:P\r\n\r\n'
const post = 'POST http://api.test:P/ HTTP/1.1\r\nHost: api.test:P\r\n'
const get = 'GET http://api.test:P/ HTTP/1.1\r\n'

const bad = 'HTTP/1.1 400 Bad Request'
const refused: readonly Case[] = [
  { name: 'a length and chunks', bytes: `${post}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, status: bad },
  { name: 'chunks and a length', bytes: `${post}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n`, status: bad },
  { name: 'two equal lengths', bytes: `${post}Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello`, status: bad },
  { name: 'two lengths', bytes: `${post}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello`, status: bad },
  { name: 'a list of lengths', bytes: `${post}Content-Length: 5, 5\r\n\r\nhello`, status: bad },
  { name: 'a length with a sign', bytes: `${post}Content-Length: +5\r\n\r\nhello`, status: bad },
  { name: 'a length in hex', bytes: `${post}Content-Length: 0x5\r\n\r\nhello`, status: bad },
  { name: 'an empty length', bytes: `${post}Content-Length: \r\n\r\nhello`, status: bad },
  { name: 'a length that overflows', bytes: `${post}Content-Length: 18446744073709551617\r\n\r\nx`, status: bad },
  { name: 'an unknown encoding', bytes: `${post}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`, status: bad },
  { name: 'an encoding before chunked', bytes: `${post}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`, status: bad },
  { name: 'identity', bytes: `${post}Transfer-Encoding: identity\r\n\r\n0\r\n\r\n`, status: bad },
  { name: 'two encodings', bytes: `${post}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, status: bad },
  { name: 'a space before the colon', bytes: `${post}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n`, status: bad },
  { name: 'chunks in HTTP/1.0', bytes: `${post.replace('1.1', '1.0')}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, status: bad },
  { name: 'a folded encoding', bytes: `${post}Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n`, status: bad },
  { name: 'a folded line', bytes: `${get}Host: api.test:P\r\nX: a\r\n b\r\n\r\n`, status: bad },
  { name: 'a first line that is folded', bytes: `${get} Host: api.test:P\r\n\r\n`, status: bad },
  { name: 'bare line feeds', bytes: `GET http://api.test:P/ HTTP/1.1\nHost: api.test:P\n\n`, status: bad },
  { name: 'one bare line feed', bytes: `${get}Host: api.test:P\nX: y\r\n\r\n`, status: bad },
  { name: 'a bare line feed at the end', bytes: `${get}Host: api.test:P\r\n\n`, status: bad },
  { name: 'a bare carriage return', bytes: `${get}Host: api.test:P\rX: y\r\n\r\n`, status: bad },
  { name: 'a NUL', bytes: `${get}Host: api.test:P\r\nX: a\0b\r\n\r\n`, status: bad },
  { name: 'a header without a colon', bytes: `${get}Host: api.test:P\r\nXY\r\n\r\n`, status: bad },
  { name: 'a header without a name', bytes: `${get}Host: api.test:P\r\n: x\r\n\r\n`, status: bad },
  { name: 'two hosts', bytes: `${get}Host: api.test:P\r\nHost: evil.test:P\r\n\r\n`, status: bad },
  { name: 'two equal hosts', bytes: `${get}Host: api.test:P\r\nHost: api.test:P\r\n\r\n`, status: bad },
  { name: 'another host than that of the URL', bytes: `${get}Host: evil.test:P\r\n\r\n`, status: bad },
  { name: 'another port than that of the URL', bytes: `${get}Host: api.test:1\r\n\r\n`, status: bad },
  { name: 'no version', bytes: `GET http://api.test:P/\r\n\r\n`, status: bad },
  { name: 'version 2.0', bytes: `GET http://api.test:P/ HTTP/2.0\r\nHost: api.test:P\r\n\r\n`, status: bad },
  { name: 'a method nobody knows', bytes: `FOO http://api.test:P/ HTTP/1.1\r\nHost: api.test:P\r\n\r\n`, status: bad },
  { name: 'TRACE', bytes: `TRACE http://api.test:P/ HTTP/1.1\r\nHost: api.test:P\r\n\r\n`, status: bad },
  { name: 'a fragment', bytes: `GET http://api.test:P/#@evil.test HTTP/1.1\r\nHost: api.test:P\r\n\r\n`, status: bad },
  { name: 'a fragment in the host', bytes: `GET http://api.test#@evil.test:P/ HTTP/1.1\r\n\r\n`, status: bad },
  { name: 'a user', bytes: `GET http://api.test:P@evil.test:P/ HTTP/1.1\r\n\r\n`, status: bad },
  { name: 'a user and a password', bytes: `GET http://a:b@api.test:P/ HTTP/1.1\r\n\r\n`, status: bad },
  { name: 'a backslash', bytes: `GET http://evil.test\\@api.test:P/ HTTP/1.1\r\n\r\n`, status: bad },
  { name: 'no host', bytes: `GET http:///x HTTP/1.1\r\n\r\n`, status: bad },
  { name: 'port 0', bytes: `GET http://api.test:0/ HTTP/1.1\r\n\r\n`, status: bad },
  { name: 'a port with leading zeros', bytes: `GET http://api.test:0P/ HTTP/1.1\r\n\r\n`, status: bad },
  { name: 'a path alone', bytes: `GET / HTTP/1.1\r\nHost: api.test:P\r\n\r\n`, status: bad },
  { name: 'an asterisk', bytes: `OPTIONS * HTTP/1.1\r\nHost: api.test:P\r\n\r\n`, status: bad },
  { name: 'https without CONNECT', bytes: `GET https://api.test:P/ HTTP/1.1\r\nHost: api.test:P\r\n\r\n`, status: bad },
  { name: 'another scheme', bytes: `GET ftp://api.test:P/ HTTP/1.1\r\nHost: api.test:P\r\n\r\n`, status: bad },
  { name: 'HTTP/2 without asking', bytes: 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', status: bad },
  {
    name: 'an upgrade to HTTP/2',
    bytes: `${get}Host: api.test:P\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n\r\n`,
    status: 'HTTP/1.1 403 Forbidden',
  },
  {
    name: 'an upgrade with a body',
    bytes: `${get}Host: api.test:P\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 5\r\n\r\nhello`,
    status: 'HTTP/1.1 403 Forbidden',
  },
  { name: 'an upgrade to two', bytes: `${get}Host: api.test:P\r\nConnection: Upgrade\r\nUpgrade: websocket, h2c\r\n\r\n`, status: 'HTTP/1.1 403 Forbidden' },
  { name: 'CONNECT with a body', bytes: `CONNECT api.test:P HTTP/1.1\r\nHost: api.test:P\r\nContent-Length: 5\r\n\r\nhello`, status: bad },
  { name: 'CONNECT without a port', bytes: `CONNECT api.test HTTP/1.1\r\nHost: api.test\r\n\r\n`, status: bad },
  { name: 'CONNECT with a user', bytes: `CONNECT api.test@evil.test:P HTTP/1.1\r\nHost: api.test\r\n\r\n`, status: bad },
  { name: 'CONNECT with another host', bytes: `CONNECT api.test:P HTTP/1.1\r\nHost: evil.test:P\r\n\r\n`, status: bad },
  { name: 'a head of 40 kB', bytes: `${get}Host: api.test:P\r\nX: ${'x'.repeat(40_000)}\r\n\r\n`, status: 'HTTP/1.1 431 Request Header Fields Too Large' },
  { name: 'thousands of headers', bytes: `${get}Host: api.test:P\r\n${'X: y\r\n'.repeat(8000)}\r\n`, status: bad },
]

async function withFront(run: (parts: { front: OpenFront; server: OtherSide; fill: (text: string) => string }) => Promise<void>): Promise<void> {
  await using server = await httpServer()
  await using front = await openFront({ network: { allow: [`api.test:${server.port}`] }, hosts })
  await run({ front, server, fill: (text) => text.replace(/(?<=[:0])P(?![a-z])/gi, String(server.port)) })
}

test('the plain request beside which the others stand is served', async () => {
  await withFront(async ({ front, server, fill }) => {
    expect(statusOf(await exchange(front.port, fill(`${get}Host: api.test:P\r\n\r\n`), { until: /seen/ }))).toBe('HTTP/1.1 200 OK')
    expect(server.seen).toHaveLength(1)
  })
})

test.each(refused)('$name: refused, the connection ends, nothing arrives', async ({ bytes, status }) => {
  await withFront(async ({ front, server, fill }) => {
    const answer = await exchange(front.port, fill(bytes + hidden))

    expect(statusOf(answer)).toBe(status)
    expect(answer.match(/HTTP\/1\.1 \d/g)).toHaveLength(1)
    expect(server.connections()).toBe(0)
    await expect.poll(() => front.records.map(({ verdict }) => verdict)).toEqual(['denied'])
  })
})

/** These begin well, and show what they are only later: nothing of what follows is a request. */
test.each([
  { name: 'chunks that end in bare line feeds', body: '1\nx\n0\n\n' },
  { name: 'a chunk of another length than it says', body: '1\r\nxyz\r\n0\r\n\r\n' },
  { name: 'a negative chunk', body: '-1\r\nx\r\n0\r\n\r\n' },
  { name: 'a chunk whose length overflows', body: 'fffffffffffffffff\r\nx\r\n0\r\n\r\n' },
  { name: 'a length of a chunk as 0x', body: '0x1\r\nx\r\n0\r\n\r\n' },
  { name: 'an extension that ends in a bare line feed', body: '1;a\nx\r\n0\r\n\r\n' },
  { name: 'an extension of 100 kB', body: `1;${'a'.repeat(100_000)}\r\nx\r\n0\r\n\r\n` },
])('$name: broken off, and nothing after it is served', async ({ body }) => {
  await withFront(async ({ front, server, fill }) => {
    const answer = await exchange(front.port, fill(`${post}Transfer-Encoding: chunked\r\n\r\n${body}${hidden}`))

    expect(answer).not.toContain(' 200 ')
    expect(server.seen.filter(({ url }) => url !== '/')).toEqual([])
    expect(server.seen.map((seen) => seen.body).join('').length).toBeLessThan(2)
  })
})

test.each(['chunked', 'CHUNKED', 'Chunked'])('%s is understood, and goes on as chunked', async (encoding) => {
  await withFront(async ({ front, server, fill }) => {
    const answer = await exchange(front.port, fill(`${post}Transfer-Encoding: ${encoding}\r\n\r\n3;ext=1\r\nabc\r\n0\r\nX-Trailer: 1\r\n\r\n`), {
      until: /seen/,
    })

    expect(statusOf(answer)).toBe('HTTP/1.1 200 OK')
    expect(server.seen).toMatchObject([{ body: 'abc', headers: { 'transfer-encoding': 'chunked' } }])
  })
})

test.each([
  '2130706433',
  '0x7f000001',
  '017700000001',
  '127.1',
  '0177.0.0.1',
  '127.0.0.1',
  '[::1]',
  '[::ffff:127.0.0.1]',
  'localhost',
  'localhost.',
  '169.254.169.254',
])('%s is reached neither by URL nor by CONNECT', async (host) => {
  await withFront(async ({ front, server, fill }) => {
    const byUrl = await exchange(front.port, fill(`GET http://${host}:P/ HTTP/1.1\r\nHost: ${host}:P\r\n\r\n`), { until: /glovebox: / })
    const byConnect = await exchange(front.port, fill(`CONNECT ${host}:P HTTP/1.1\r\nHost: ${host}:P\r\n\r\n`))

    expect(statusOf(byUrl)).toMatch(/ 40[03] /)
    expect(statusOf(byConnect)).toMatch(/ 40[03] /)
    expect(server.connections()).toBe(0)
  })
})
