import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type OwnServer, ownServer } from './own-server.js'

/** How long a connection lasted that is given a byte at a time, and what it was told. */
function dribble(port: number, text: string, everyMs: number): Promise<{ readonly ms: number; readonly heard: string }> {
  const begunAt = performance.now()
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    let [sent, heard] = [0, '']
    const timer = setInterval(() => {
      if (sent < text.length) socket.write(text.charAt(sent++))
    }, everyMs)
    socket.on('data', (piece) => {
      heard += piece.toString('latin1')
    })
    socket.on('error', () => undefined)
    socket.on('close', () => {
      clearInterval(timer)
      resolve({ ms: performance.now() - begunAt, heard })
    })
  })
}

describe('whoever is slow on purpose', () => {
  let own: OwnServer
  let key: string
  beforeAll(async () => {
    own = await ownServer({ bounds: { idleMs: 400, jsonMs: 1500 } })
    key = await own.key('red')
  })
  afterAll(() => own[Symbol.asyncDispose]())

  const headOf = (length: number, secret = key): string =>
    `POST /v1/sandboxes HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${secret}\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n`

  test('with headers, or with nothing at all, is let go after ten seconds, and keeps nobody else waiting', { timeout: 60_000 }, async () => {
    const endless = `GET /v1/health HTTP/1.1\r\nhost: localhost\r\nx-slow: ${'a'.repeat(100_000)}`
    const slow = Array.from({ length: 100 }, (_, index) => dribble(own.port, index % 2 === 0 ? endless : '', 50))
    let longest = 0
    const isOver = Promise.all(slow).then(() => true)
    for (;;) {
      const begunAt = performance.now()
      expect((await own.ask('/v1/health')).status).toBe(200)
      longest = Math.max(longest, performance.now() - begunAt)
      if (await Promise.race([isOver, sleep(200, false)])) break
    }
    const lasted = await Promise.all(slow)
    expect(Math.max(...lasted.map(({ ms }) => ms))).toBeLessThan(20_000)
    expect(Math.min(...lasted.map(({ ms }) => ms))).toBeGreaterThan(5000)
    expect(longest).toBeLessThan(2000)
    expect(lasted.every(({ heard }) => heard === '' || heard.startsWith('HTTP/1.1 408 '))).toBe(true)
  })

  test('with a body is told so once it has taken too long, although something comes all the time', async () => {
    const { ms, heard } = await dribble(own.port, headOf(100_000) + ' '.repeat(100_000), 5)
    expect(heard).toMatch(/^HTTP\/1\.1 408 /)
    expect(ms).toBeLessThan(10_000)
  })

  test('without a key is told before a byte of the body is read', async () => {
    const begunAt = performance.now()
    const socket = connect(own.port, '127.0.0.1')
    socket.write(headOf(1 << 30, 'gbx_wrong'))
    const heard = await new Promise<string>((resolve) => socket.once('data', (piece) => resolve(piece.toString())))
    await new Promise((resolve) => socket.once('close', resolve))
    expect(heard).toMatch(/^HTTP\/1\.1 401 [^]*connection: close/i)
    expect(performance.now() - begunAt).toBeLessThan(3000)
  })
})

test('a tenant that sends more bodies at once than it has room for is told so, and keeps nobody else waiting', async () => {
  await using own = await ownServer({ bounds: { mostTenantBytes: 300_000 } })
  const [red, blue] = [await own.key('red'), await own.key('blue')]
  const begin = (secret: string) => {
    const socket = connect(own.port, '127.0.0.1')
    let heard = ''
    socket.on('data', (piece) => {
      heard += piece.toString('latin1')
    })
    socket.on('error', () => undefined)
    const head = `POST /v1/sandboxes HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${secret}\r\ncontent-type: application/json\r\ncontent-length: 210000\r\n\r\n`
    socket.write(head + ' '.repeat(200_000))
    return { socket, heard: () => heard }
  }
  const first = begin(red)
  await sleep(200)
  const [second, other] = [begin(red), begin(blue)]
  await expect.poll(second.heard).toMatch(/^HTTP\/1\.1 429 [^]*retry-after: 1\r\n[^]*"code":"busy"/i)
  expect([first.heard(), other.heard()]).toEqual(['', ''])
  first.socket.destroy()
  await sleep(200)
  const third = begin(red)
  await sleep(300)
  expect(third.heard()).toBe('')
  for (const { socket } of [second, other, third]) socket.destroy()
})
