/** What is passed through: exactly, at the rate and within the budget that is allowed, and never faster than it is read. */
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import type { NetworkInput } from '../../src/contract/network.js'
import { openFront, type OpenFront, statusOf } from './front-harness.js'

const MiB = 2 ** 20
const hosts = { 'api.test': '127.0.0.1' }

interface OtherSide extends AsyncDisposable {
  readonly port: number
  readonly sockets: readonly Socket[]
}

async function otherSide(serve: (socket: Socket) => void): Promise<OtherSide> {
  const sockets: Socket[] = []
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.push(socket)
    socket.on('error', () => undefined)
    serve(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    sockets,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

type Limits = Omit<Exclude<NetworkInput, false>, 'allow'>

const frontTo = ({ port }: OtherSide, limits: Limits = {}): Promise<OpenFront> =>
  openFront({ network: { allow: [`api.test:${port}`], maxConnections: 64, ...limits }, hosts })

async function tunnel(front: OpenFront, { port }: OtherSide): Promise<Socket> {
  const socket = connect({ port: front.port, host: '127.0.0.1', allowHalfOpen: true })
  socket.on('error', () => undefined)
  socket.write(`CONNECT api.test:${port} HTTP/1.1\r\nHost: api.test:${port}\r\n\r\n`)
  await once(socket, 'readable')
  const answer = socket.read(39) as Buffer
  expect(statusOf(answer.toString())).toBe('HTTP/1.1 200 Connection established')
  return socket
}

async function digestOf(socket: Socket): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of socket.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) hash.update(chunk)
  return hash.digest('hex')
}

async function count(socket: Socket): Promise<number> {
  let bytes = 0
  socket.on('data', (chunk: Buffer) => {
    bytes += chunk.length
  })
  await once(socket, 'close')
  return bytes
}

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

test.each(['the program', 'the other side'] as const)('when %s ends first, all of both directions arrives', async (first) => {
  const [up, down] = [randomBytes(5 * MiB + 17), randomBytes(7 * MiB + 5)]
  const arrived: Promise<string>[] = []
  await using server = await otherSide((socket) => {
    const got = digestOf(socket)
    arrived.push(got)
    if (first === 'the other side') socket.end(down)
    else void got.then(() => socket.end(down))
  })
  await using front = await frontTo(server)
  const socket = await tunnel(front, server)
  // Until it reads, what comes waits on the way, and must be the same afterwards.
  socket.pause()
  await new Promise((resolve) => setTimeout(resolve, 300))
  const got = digestOf(socket)
  if (first === 'the other side') expect(await got).toBe(sha256(down))
  socket.end(up)
  expect([await got, await arrived[0]]).toEqual([sha256(down), sha256(up)])
  await expect.poll(() => front.records).toMatchObject([{ verdict: 'allowed', bytesUp: up.length, bytesDown: down.length }])
})

test.each([
  ['exactly', 0, 'allowed'],
  ['one byte more than', 1, 'denied'],
] as const)('a budget carries exactly what it is, down: %s it', async (_, more, verdict) => {
  const bytes = 3 * MiB + 1
  await using server = await otherSide((socket) => void socket.end(Buffer.alloc(bytes + more)))
  await using front = await frontTo(server, { connectionBytes: bytes })
  const socket = await tunnel(front, server)
  socket.end()
  const got = await count(socket)
  await expect.poll(() => front.records).toMatchObject([{ verdict, bytesUp: 0, bytesDown: bytes }])
  expect(got).toBeLessThanOrEqual(bytes)
  if (verdict === 'allowed') expect(got).toBe(bytes)
})

test.each([
  ['exactly', 0, 'allowed'],
  ['one byte more than', 1, 'denied'],
] as const)('a budget carries exactly what it is, up: %s it', async (_, more, verdict) => {
  const bytes = 2 * MiB + 3
  let arrived = 0
  await using server = await otherSide((socket) => void socket.on('data', (chunk: Buffer) => (arrived += chunk.length)).on('end', () => socket.end()))
  await using front = await frontTo(server, { connectionBytes: bytes })
  const socket = await tunnel(front, server)
  socket.resume()
  socket.end(Buffer.alloc(bytes + more))
  await once(socket, 'close')
  await expect.poll(() => front.records).toMatchObject([{ verdict, bytesUp: bytes, bytesDown: 0 }])
  await expect.poll(() => arrived).toBe(bytes)
})

test.each(['up', 'down'] as const)('%s, a rate holds', async (direction) => {
  const rate = 4 * MiB
  await using server = await otherSide((socket) => {
    if (direction === 'down') socket.end(Buffer.alloc(2 * MiB))
    socket.on('data', () => undefined).on('end', () => socket.end())
  })
  await using front = await frontTo(server, { connectionBandwidth: rate })
  const began = performance.now()
  const socket = await tunnel(front, server)
  socket.end(direction === 'up' ? Buffer.alloc(2 * MiB) : '')
  expect(await count(socket)).toBe(direction === 'up' ? 0 : 2 * MiB)
  // A tenth of a second's worth goes at once.
  const leastMs = ((2 * MiB - rate / 10) / rate) * 1000
  expect(performance.now() - began).toBeGreaterThanOrEqual(leastMs - 5)
  expect(performance.now() - began).toBeLessThan(leastMs + 600)
})

/** Of 32 connections: two buffers of 128 KiB each, and what this process keeps as their ends. */
const mostHeld = 32 * 0.75 * MiB

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

function memory(): number {
  collectGarbage()
  return process.memoryUsage().arrayBuffers
}

const piece = Buffer.alloc(MiB)

function pourForever(socket: Socket): void {
  const pour = (): void => {
    while (!socket.destroyed && socket.write(piece));
  }
  socket.on('drain', pour)
  pour()
}

test.each(['down', 'up'] as const)('what is not read %s is held by nobody: memory stays, and another connection goes on', async (direction) => {
  await using server = await otherSide((socket) => {
    if (server.sockets.length > 32) socket.pipe(socket)
    else if (direction === 'down') pourForever(socket)
    else socket.pause()
  })
  await using front = await frontTo(server)
  const before = memory()
  const held: Socket[] = []
  for (let unread = 0; unread < 32; unread += 1) {
    const socket = await tunnel(front, server)
    held.push(socket)
    socket.pause()
    if (direction === 'up') pourForever(socket)
  }
  await new Promise((resolve) => setTimeout(resolve, 500))
  expect(memory() - before).toBeLessThan(mostHeld)
  const socket = await tunnel(front, server)
  const sent = randomBytes(4 * MiB)
  const got = digestOf(socket)
  socket.end(sent)
  expect(await got).toBe(sha256(sent))
  for (const each of held) each.destroy()
})
