import { once } from 'node:events'
import type { TLSSocket } from 'node:tls'
import { expect, test } from 'vitest'
import { block, bomb, flags, frame, number32, preface, request, setting } from './frames.js'
import { openFront } from './front-harness.js'
import { http2Server, httpsServer, testAuthority } from './front-servers.js'
import { askHttp2, secureInside } from './hostile-guest.js'

const hosts = { 'api.test': '127.0.0.1' }
const authority = testAuthority()
const settings = frame('settings')

type Header = readonly [string, string]

/** Of `GET /attack`; `more` instead of or beside what it has. */
function heading(port: number, more: readonly Header[] = []): Header[] {
  const own: Header[] = [
    [':method', 'GET'],
    [':scheme', 'https'],
    [':path', '/attack'],
    [':authority', `api.test:${port}`],
  ]
  const instead = new Map(more.filter(([name]) => own.some(([known]) => known === name)))
  return [...own.map(([name, value]): Header => [name, instead.get(name) ?? value]), ...more.filter(([name]) => !instead.has(name))]
}

const manyTimes = (count: number, each: (index: number) => Buffer): Buffer => Buffer.concat(Array.from({ length: count }, (_, index) => each(index)))
const of =
  (...more: Header[]) =>
  (port: number): Buffer =>
    request(1, heading(port, more))

/** None of these is a request that goes on, whatever the other side speaks. */
const attacks: Readonly<Record<string, (port: number) => Buffer>> = {
  'begun and reset 5,000 times': (port) =>
    manyTimes(5000, (i) => Buffer.concat([request(1 + 2 * i, heading(port)), frame('reset', { stream: 1 + 2 * i, payload: number32(8) })])),
  'headers without an end': (port) =>
    Buffer.concat([
      frame('headers', { stream: 1, payload: block(heading(port)) }),
      manyTimes(5000, (i) => frame('continuation', { stream: 1, payload: block([[`a${i}`, 'x'.repeat(100)]]) })),
    ]),
  'headers that unpack to 40 MB': (port) =>
    frame('headers', { stream: 1, flag: 5, payload: Buffer.concat([block(heading(port)), bomb('x', 'y'.repeat(4000), 10_000)]) }),
  '2,000 headers': of(...Array.from({ length: 2000 }, (): Header => ['a', 'b'])),
  '50,000 settings': () => manyTimes(50_000, (i) => frame('settings', { payload: setting(4, 100 + i) })),
  '50,000 pings': () => manyTimes(50_000, () => frame('ping', { payload: Buffer.alloc(8) })),
  '50,000 parts of nothing': (port) => Buffer.concat([request(1, heading(port), { isOver: false }), manyTimes(50_000, () => frame('data', { stream: 1 }))]),
  'priorities in a circle': () =>
    manyTimes(5000, (i) => frame('priority', { stream: 1 + 2 * i, payload: Buffer.concat([number32(1 + 2 * ((i + 1) % 5000)), Buffer.of(1)]) })),
  'a stream that depends on itself': (port) =>
    frame('headers', {
      stream: 1,
      flag: flags.endHeaders | flags.endStream | flags.priority,
      payload: Buffer.concat([number32(1), Buffer.of(1), block(heading(port))]),
    }),
  'a window beyond all': () => frame('settings', { payload: setting(4, 0xffffffff) }),
  'a promise of its own': (port) => frame('push', { stream: 1, flag: 4, payload: Buffer.concat([number32(2), block(heading(port))]) }),
  'a number that is not its own': (port) => request(2, heading(port)),
  'no HTTP/2 at all': () => Buffer.alloc(50_000, 0xfe),
  'a path that is none': of([':path', 'attack']),
  'a URL as path': of([':path', 'http://other.test/']),
  'a path with a second request': of([':path', '/ HTTP/1.1\r\nHost: other.test\r\n\r\nGET /attack']),
  'a second path': of(['x', 'y'], [':path2', '/']),
  'the scheme of files': of([':scheme', 'file']),
  'a method with a request': of([':method', 'GET / HTTP/1.1\r\nX: y']),
  'another Host': of(['host', 'other.test']),
  'a user': (port) => request(1, heading(port, [[':authority', `x@api.test:${port}`]])),
  'another port': of([':authority', 'api.test:1']),
  CONNECT: (port) =>
    request(
      1,
      [
        [':method', 'CONNECT'],
        [':authority', `api.test:${port}`],
      ],
      { isOver: false },
    ),
  'CONNECT for UDP': of([':method', 'CONNECT'], [':protocol', 'connect-udp']),
  'a header with a capital': of(['X-Y', 'a']),
  'chunks of HTTP/1.1': of(['transfer-encoding', 'chunked']),
  'an upgrade': of(['upgrade', 'websocket']),
  'two lengths': of(['content-length', '0'], ['content-length', '0']),
  'a length and no body': of(['content-length', '50']),
  'a negative length': of(['content-length', '-1']),
}

/** Until it is ended, or for a moment: what arrives by then would have. */
async function send(secure: TLSSocket, bytes: Buffer): Promise<void> {
  secure.resume()
  secure.write(Buffer.concat([preface, settings, bytes]))
  await Promise.race([once(secure, 'close'), new Promise((resolve) => setTimeout(resolve, 150))])
}

test.each(Object.entries(attacks))('%s: from a program, by HTTP/2', async (_name, bytes) => {
  await using server = await httpsServer({ authority, host: 'api.test' })
  await using front = await openFront({ network: { allow: [`api.test:${server.port}`], terminate: true }, hosts, trusted: [authority.certificate] })
  const secure = await secureInside(front, server)

  await send(secure, bytes(server.port))

  expect(await askHttp2(front, server, { ':path': '/good' })).toMatchObject({ status: 200 })
  expect(server.seen.map(({ url }) => url)).toEqual(['/good'])
  secure.destroy()
  // It is told apart from what was allowed, and many of them are no burden.
  expect(front.egress.summary().byVerdict.allowed).toBeLessThanOrEqual(1)
})

test.each([
  { name: 'that speaks it', open: http2Server },
  { name: 'that speaks HTTP/1.1 only', open: httpsServer },
])('what splits headers is left out on the way to another side $name', async ({ open }) => {
  await using server = await open({ authority, host: 'api.test' })
  await using front = await openFront({ network: { allow: [`api.test:${server.port}`], terminate: true }, hosts, trusted: [authority.certificate] })
  const secure = await secureInside(front, server)
  const odd: Header[] = [
    ['a', 'x\r\nstolen: y'],
    ['b', 'x\0y'],
    ['c\r\nstolen', 'z'],
    ['d: y\r\nstolen', 'z'],
    ['', 'z'],
    ['kept', 'yes'],
  ]

  await send(secure, request(1, heading(server.port, odd)))

  await expect.poll(() => server.seen).toMatchObject([{ url: '/attack', headers: { kept: 'yes' } }])
  expect(Object.keys(server.seen[0]?.headers ?? {}).filter((name) => /stolen|^[abcd]$|^$/.test(name))).toEqual([])
  secure.destroy()
})

test('who takes no answers has only so many connections, as whoever says nothing', async () => {
  await using server = await httpsServer({ authority, host: 'api.test' })
  await using front = await openFront({
    network: { allow: [`api.test:${server.port}`], terminate: true, maxConnections: 1 },
    hosts,
    trusted: [authority.certificate],
  })
  const held: TLSSocket[] = []
  let refused = 0
  for (let count = 0; count < 300 && refused === 0; count++) {
    const secure = await secureInside(front, server).catch(() => undefined)
    if (secure === undefined) refused++
    else {
      held.push(secure)
      secure.resume()
      // Denied, and the words of it cannot be sent: it has no window for them.
      secure.write(Buffer.concat([preface, frame('settings', { payload: setting(4, 0) }), request(1, heading(server.port, [[':authority', 'other.test']]))]))
    }
  }
  for (const secure of held) secure.destroy()

  expect(refused).toBe(1)
  expect(server.connections()).toBe(0)
  await expect.poll(async () => (await askHttp2(front, server).catch(() => undefined))?.status).toBe(200)
})

test('a program of HTTP/2 that ends its connection ends what it asked for, and gives its place back', async () => {
  let ended = 0
  await using server = await http2Server({ authority, host: 'api.test', answer: (asked) => void asked.on('close', () => (ended += 1)) })
  await using front = await openFront({
    network: { allow: [`api.test:${server.port}`], terminate: true, maxConnections: 1, requestTimeout: '40s' },
    hosts,
    trusted: [authority.certificate],
  })
  const secure = await secureInside(front, server)
  secure.write(Buffer.concat([preface, settings, request(1, heading(server.port))]))
  await expect.poll(() => server.seen.length).toBe(1)

  secure.end()

  await expect.poll(() => ended).toBe(1)
  await expect.poll(() => front.records).toMatchObject([{ verdict: 'failed', reason: 'the program went away' }])
})
