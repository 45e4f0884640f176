import { connect as connectSocket, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import { block, bomb, flags, frame, number32, request, setting } from './frames.js'
import { exchange, openFront, statusOf } from './front-harness.js'
import { testAuthority } from './front-servers.js'
import { askHttp2 } from './hostile-guest.js'
import { hostileSide } from './hostile-sides.js'

const hosts = { 'api.test': '127.0.0.1' }
const authority = testAuthority()
const bad = 'HTTP/1.1 502 Bad Gateway'
const fine = 'HTTP/1.1 200 OK'
const ok = 'Content-Length: 2\r\n\r\nok'

interface Answer {
  readonly name: string
  readonly bytes: string
  readonly status: string
  readonly reason?: string
}

/** What the program is told, and what is written down. */
const answers: readonly Answer[] = [
  { name: 'a plain one', bytes: `HTTP/1.1 200 OK\r\n${ok}`, status: fine, reason: '' },
  { name: 'thousands of interim ones before it', bytes: `${'HTTP/1.1 103 Early\r\nLink: x\r\n\r\n'.repeat(5000)}HTTP/1.1 200 OK\r\n${ok}`, status: fine },
  { name: 'another one behind it', bytes: `HTTP/1.1 200 OK\r\n${ok}HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison`, status: fine },
  { name: 'words that drive a terminal', bytes: `HTTP/1.1 200 \x1b[31mred\r\n${ok}`, status: 'HTTP/1.1 200 ?[31mred' },
  {
    name: 'a protocol that nobody asked for',
    bytes: 'HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nhello',
    status: bad,
    reason: 'the other side changed to a protocol that nobody asked for',
  },
  {
    name: 'a protocol without a name',
    bytes: 'HTTP/1.1 101 X\r\n\r\nhello',
    status: bad,
    reason: 'the other side changed to a protocol that nobody asked for',
  },
  {
    name: 'chunks in an encoding',
    bytes: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
    status: bad,
    reason: 'the other side encodes its answer in an unknown way',
  },
  {
    name: 'an encoding without chunks',
    bytes: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
    status: bad,
    reason: 'the other side encodes its answer in an unknown way',
  },
  { name: 'a length and chunks', bytes: 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n', status: bad },
  { name: 'two lengths', bytes: 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok', status: bad },
  { name: 'bare line feeds', bytes: 'HTTP/1.1 200 OK\nContent-Length: 2\n\nok', status: bad },
  { name: 'a header split by a carriage return', bytes: `HTTP/1.1 200 OK\r\nX: a\rSet-Cookie: b\r\n${ok}`, status: bad },
  { name: 'a NUL in a header', bytes: `HTTP/1.1 200 OK\r\nX: a\0b\r\n${ok}`, status: bad },
  { name: 'a folded header', bytes: `HTTP/1.1 200 OK\r\nX: a\r\n b\r\n${ok}`, status: bad },
  { name: 'a header of HTTP/2', bytes: `HTTP/1.1 200 OK\r\n:status: 500\r\n${ok}`, status: bad },
  { name: 'an impossible status', bytes: `HTTP/1.1 000 X\r\n${ok}`, status: bad },
  { name: 'a head without an end', bytes: `HTTP/1.1 200 OK\r\nX: ${'a'.repeat(200_000)}`, status: bad },
  { name: 'no HTTP at all', bytes: 'SSH-2.0-OpenSSH_9.2\r\n', status: bad },
  { name: 'nothing', bytes: '', status: bad },
]

const plainRequest = (port: number): string => `GET http://api.test:${port}/ HTTP/1.1\r\nHost: api.test:${port}\r\nConnection: close\r\n\r\n`

function saying(bytes: string) {
  return (socket: Socket): void => {
    socket.end(Buffer.from(bytes, 'latin1'))
  }
}

test.each(answers)('$name: as an answer of HTTP/1.1', async ({ bytes, status, reason }) => {
  await using side = await hostileSide({ act: saying(bytes) })
  await using front = await openFront({ network: { allow: [`api.test:${side.port}`] }, hosts })

  const answer = await exchange(front.port, plainRequest(side.port))

  expect(statusOf(answer)).toBe(status)
  expect(answer.match(/^HTTP\/1\.1 \d/gm)).toHaveLength(1)
  expect(answer).not.toContain('poison')
  await expect.poll(() => front.records.map(({ verdict }) => verdict)).toEqual([status === bad ? 'failed' : 'allowed'])
  if (reason !== undefined) expect(front.records[0]?.reason).toBe(reason)
})

/** It begins well. What it lacks is told to the program by the end of its connection, and the record says whose doing it was. */
test.each([
  { name: 'less than its length', bytes: 'HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nok' },
  { name: 'a chunk that overflows', bytes: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\nfffffffffffffffff\r\nok\r\n0\r\n\r\n' },
  { name: 'an extension of 300 kB', bytes: `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n2;${'a'.repeat(300_000)}\r\nok\r\n0\r\n\r\n` },
  { name: '300 kB after its end', bytes: `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: ${'a'.repeat(300_000)}\r\n\r\n` },
])('$name: broken off, which is not written down as the doing of the program', async ({ bytes }) => {
  await using side = await hostileSide({ act: saying(bytes) })
  await using front = await openFront({ network: { allow: [`api.test:${side.port}`] }, hosts })

  const answer = await exchange(front.port, plainRequest(side.port))

  expect(answer).not.toMatch(/0\r\n\r\n$/)
  await expect.poll(() => front.records).toMatchObject([{ verdict: 'failed', reason: 'the connection broke off' }])
})

test('a program that really goes away is written down as that', async () => {
  await using side = await hostileSide({ act: (socket) => void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nok') })
  await using front = await openFront({ network: { allow: [`api.test:${side.port}`] }, hosts })
  const program = connectSocket(front.port, '127.0.0.1')
  program.write(plainRequest(side.port))
  await new Promise((resolve) => program.once('data', resolve))
  program.resetAndDestroy()

  await expect.poll(() => front.records).toMatchObject([{ verdict: 'failed', reason: 'the program went away' }])
  await expect.poll(side.open).toBe(0)
})

type Header = readonly [string, string]
const good: Header = [':status', '200']
const settings = frame('settings')
const head = (headers: readonly Header[], isOver = true): Buffer => request(1, headers, { isOver })
const body = (flag: number = flags.endStream): Buffer => frame('data', { stream: 1, flag, payload: Buffer.from('ok') })
const manyTimes = (count: number, each: (index: number) => Buffer): Buffer => Buffer.concat(Array.from({ length: count }, (_, index) => each(index)))

/** By frames; `status` undefined where the program is told by the end of its stream. */
const http2Answers: Readonly<Record<string, { readonly frames: readonly Buffer[]; readonly status: number | undefined }>> = {
  'a plain one': { frames: [head([good], false), body()], status: 200 },
  'thousands of interim ones': { frames: [manyTimes(3000, () => head([[':status', '103']], false)), head([good], false), body()], status: 200 },
  'a header that splits': { frames: [head([good, ['x', 'a\r\nset-cookie: b']])], status: 200 },
  'a type said twice': { frames: [head([good, ['content-type', 'a'], ['content-type', 'b']], false), body()], status: 502 },
  'a header of one connection': { frames: [head([good, ['connection', 'close']])], status: 502 },
  'a protocol that nobody asked for': { frames: [head([[':status', '101']])], status: 502 },
  'a status that is none': { frames: [head([[':status', 'abc']])], status: 502 },
  'a status beyond all': { frames: [head([[':status', '999']])], status: 502 },
  'two statuses': { frames: [head([good, [':status', '500']])], status: 502 },
  'a status behind the body': { frames: [head([good], false), head([[':status', '200']])], status: 200 },
  'headers without an end': {
    frames: [
      frame('headers', { stream: 1, payload: block([good]) }),
      manyTimes(2000, (i) => frame('continuation', { stream: 1, payload: block([[`a${i}`, 'x'.repeat(100)]]) })),
    ],
    status: 502,
  },
  'headers that unpack to 40 MB': {
    frames: [frame('headers', { stream: 1, flag: 5, payload: Buffer.concat([block([good]), bomb('x', 'y'.repeat(4000), 10_000)]) })],
    status: 502,
  },
  'settings without an end': { frames: [manyTimes(20_000, (i) => frame('settings', { payload: setting(4, 100 + i) }))], status: 502 },
  'pings without an end': { frames: [manyTimes(20_000, () => frame('ping', { payload: Buffer.alloc(8) }))], status: 502 },
  'a window beyond all': { frames: [manyTimes(2, () => frame('window', { payload: number32(0x7fffffff) }))], status: 502 },
  'a goodbye': { frames: [frame('goaway', { payload: Buffer.alloc(8) })], status: 502 },
  'less than its length': { frames: [head([good, ['content-length', '50']], false), body()], status: 200 },
  'a broken body': { frames: [head([good], false), body(0), frame('reset', { stream: 1, payload: number32(2) })], status: 200 },
  'a body that is reset without an error': { frames: [head([good], false), body(0), frame('reset', { stream: 1, payload: number32(0) })], status: 200 },
  'a whole body, and a reset behind it': { frames: [head([good], false), body(), frame('reset', { stream: 1, payload: number32(0) })], status: 200 },
  'headers of a stream of its own': { frames: [request(2, [good])], status: 502 },
  'a window of nothing more': { frames: [frame('window', { payload: number32(0) })], status: 502 },
  'a ping of a stream': { frames: [frame('ping', { stream: 1, payload: Buffer.alloc(8) })], status: 502 },
  'a body of no stream': { frames: [frame('data', { payload: Buffer.from('ok') })], status: 502 },
  'a body of a stream that nobody began': { frames: [frame('data', { stream: 3, payload: Buffer.from('ok') })], status: 502 },
  'a body before its headers': { frames: [body()], status: 502 },
  'an answer that nobody asked for': {
    frames: [frame('settings', { flag: flags.ack }), frame('push', { stream: 1, flag: flags.endHeaders, payload: number32(2) })],
    status: 502,
  },
  'a continuation of nothing': { frames: [frame('continuation', { stream: 1, flag: flags.endHeaders, payload: block([good]) })], status: 502 },
  'settings of five bytes': { frames: [frame('settings', { payload: Buffer.alloc(5) })], status: 502 },
  'a frame of more than 16 KiB': { frames: [head([good], false), frame('data', { stream: 1, payload: Buffer.alloc(16_385) })], status: 200 },
  'headers of more than 16 KiB': { frames: [frame('headers', { stream: 1, flag: 5, payload: Buffer.alloc(16_385) })], status: 502 },
  'headers that cannot be unpacked': { frames: [frame('headers', { stream: 1, flag: 5, payload: Buffer.alloc(8, 0xff) })], status: 502 },
  'no HTTP/2 at all': { frames: [Buffer.alloc(50_000, 0xfe)], status: 502 },
}

test.each(Object.entries(http2Answers))('%s: as an answer of HTTP/2, and the next connection is served', async (name, { frames, status }) => {
  let isFirst = true
  const answer = Buffer.concat([...(name === 'no HTTP/2 at all' ? [] : [settings]), ...frames])
  const plain = Buffer.concat([settings, head([good], false), body()])
  const act = (socket: Socket): void => {
    socket.write(isFirst ? answer : plain)
    isFirst = false
  }
  await using side = await hostileSide({ secure: { authority, host: 'api.test', protocols: ['h2'] }, act })
  await using front = await openFront({ network: { allow: [`api.test:${side.port}`], terminate: true }, hosts, trusted: [authority.certificate] })

  const got = await askHttp2(front, side)

  expect(got.status).toBe(status)
  expect(got.headers['set-cookie']).toBeUndefined()
  expect(got.isCut).toBe(
    ['a status behind the body', 'less than its length', 'a broken body', 'a body that is reset without an error', 'a frame of more than 16 KiB'].includes(
      name,
    ),
  )
  expect(await askHttp2(front, side)).toMatchObject({ status: 200, body: 'ok' })
})

test('rules of HTTP/2 that are broken are written down as the doing of the other side', async () => {
  const act = (socket: Socket): void => void socket.write(Buffer.concat([settings, frame('settings', { payload: Buffer.alloc(5) })]))
  await using side = await hostileSide({ secure: { authority, host: 'api.test', protocols: ['h2'] }, act })
  await using front = await openFront({ network: { allow: [`api.test:${side.port}`], terminate: true }, hosts, trusted: [authority.certificate] })

  expect(await askHttp2(front, side)).toMatchObject({ status: 502 })

  expect(front.records).toMatchObject([{ verdict: 'failed', reason: 'the other side broke the rules of HTTP/2' }])
  await expect.poll(side.open).toBe(0)
})

test('another side of HTTP/2 that ends without a word ends what waits for it', async () => {
  await using side = await hostileSide({ secure: { authority, host: 'api.test', protocols: ['h2'] }, act: (socket) => void socket.end(settings) })
  await using front = await openFront({
    network: { allow: [`api.test:${side.port}`], terminate: true, idleTimeout: '20s' },
    hosts,
    trusted: [authority.certificate],
  })

  expect(await askHttp2(front, side)).toMatchObject({ status: 502 })

  expect(front.records).toMatchObject([{ verdict: 'failed', reason: 'the other side ended the request without an answer' }])
})
