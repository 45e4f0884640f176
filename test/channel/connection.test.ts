import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import type { Warden, WardenConnection } from '../../src/channel/index.js'
import { encodeNumberFrame, windowBytes } from '../../src/channel/frames.js'
import { openWarden } from './native-warden.js'
import { connected, numbers, type ScriptedWarden, settle } from './scripted-warden.js'

async function listen(serve: (socket: Socket) => void): Promise<AsyncDisposable & { readonly port: number }> {
  const sockets = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    serve(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

async function textOf(connection: WardenConnection): Promise<string> {
  const parts: Uint8Array[] = []
  for await (const bytes of connection.output) parts.push(bytes)
  return Buffer.concat(parts).toString()
}

/** A connection with id 1 that the scripted warden says is made. */
async function open(): Promise<{ peer: ScriptedWarden; warden: Warden; connection: WardenConnection }> {
  const { peer, warden } = await connected()
  const connecting = warden.connect(8080)
  const { run } = await peer.hear('connect')
  peer.send('connected', { run })
  return { peer, warden, connection: await connecting }
}

const closed = (peer: ScriptedWarden, errno = 0): void => peer.sendRaw(encodeNumberFrame('closed', { run: 1 }, errno))

describe('a connection through the real warden', () => {
  it('carries bytes exactly, both ways at once, and ends in order', async () => {
    await using native = await openWarden()
    await using echo = await listen((socket) => void socket.pipe(socket))
    const connection = await native.warden.connect(echo.port)
    const noise = randomBytes(8 << 20)
    const got = createHash('sha256')
    const writing = connection.write(noise).then(() => connection.end())
    for await (const bytes of connection.output) got.update(bytes)
    await Promise.all([writing, connection.closed])
    expect(got.digest('hex')).toBe(createHash('sha256').update(noise).digest('hex'))
  })

  it('is refused where nobody listens, and the channel goes on', async () => {
    await using native = await openWarden()
    const gone = await listen(() => {})
    await gone[Symbol.asyncDispose]()
    await expect(native.warden.connect(gone.port)).rejects.toMatchObject({ code: 'not-found', message: `nothing listens on port ${gone.port} in the cell` })
    expect((await native.start(['true'])).pid).toBeGreaterThan(0)
  })

  it('that is reset fails whoever reads, writes or waits for its end', async () => {
    await using native = await openWarden()
    await using rude = await listen((socket) => void socket.on('data', () => socket.resetAndDestroy()))
    const connection = await native.warden.connect(rude.port)
    const reading = textOf(connection)
    const writing = connection.write(Buffer.alloc(windowBytes * 4))
    const verdicts = await Promise.allSettled([reading, writing, connection.closed])
    expect(verdicts.map((each) => (each.status === 'rejected' ? (each.reason as { code: string }).code : each.status))).toEqual(new Array(3).fill('conflict'))
    await expect(connection.write(Buffer.from('x'))).rejects.toMatchObject({ code: 'conflict' })
    await connection.destroy()
  })

  it('is destroyed at once, whatever waits', async () => {
    await using native = await openWarden()
    await using deaf = await listen((socket) => void socket.pause())
    const connection = await native.warden.connect(deaf.port)
    const writing = connection.write(Buffer.alloc(64 << 20))
    await connection.destroy()
    await Promise.all([writing, connection.closed, connection.destroy()])
    expect(await textOf(connection)).toBe('')
  })

  it('keeps two hundred apart', async () => {
    await using native = await openWarden()
    await using echo = await listen((socket) => void socket.pipe(socket))
    const texts = await Promise.all(
      Array.from({ length: 200 }, async (_, index) => {
        const connection = await native.warden.connect(echo.port)
        await connection.write(Buffer.from(`${index}`))
        await connection.end()
        return await textOf(connection)
      }),
    )
    expect(texts).toEqual(Array.from({ length: 200 }, (_, index) => `${index}`))
  })
})

describe('a connection', () => {
  it.each([0, 65_536, 1.5, -1, Number.NaN])('to port %s is refused before anything is sent', async (port) => {
    const { peer, warden } = await connected()
    await expect(warden.connect(port)).rejects.toMatchObject({ code: 'invalid' })
    await settle()
    expect(peer.heard('connect')).toEqual([])
  })

  it.each([
    ['refuses', 111, 'not-found'],
    ['takes nobody in', 110, 'busy'],
    ['cannot be had', 24, 'busy'],
  ] as const)('that %s is told by its code', async (_, errno, code) => {
    const { peer, warden } = await connected()
    const connecting = warden.connect(8080)
    const { run, payload } = await peer.hear('connect')
    expect(payload.readUInt16LE()).toBe(8080)
    peer.send('failed', { run }, Buffer.concat([numbers(4, errno), Buffer.from('connect to port 8080')]))
    await expect(connecting).rejects.toMatchObject({ code })
  })

  it('gives credit back only for what was read', async () => {
    const { peer, connection } = await open()
    peer.output(1, Buffer.alloc(windowBytes))
    await settle()
    expect(peer.heard('credit')).toEqual([])
    const iterator = connection.output[Symbol.asyncIterator]()
    for (let taken = 0; taken < windowBytes / 2; ) taken += ((await iterator.next()).value as Uint8Array).length
    expect((await peer.hear('credit')).payload.readUInt32LE()).toBeGreaterThanOrEqual(windowBytes / 2)
  })

  it('alone has a quarter of the pool on its way, and goes on with what is given back', async () => {
    const { peer, connection } = await open()
    const sent = (): number => peer.heard('stdin').reduce((sum, { payload }) => sum + payload.length, 0)
    void connection.write(Buffer.alloc(windowBytes + 1))
    await settle()
    expect(sent()).toBe(4096 + windowBytes / 4)
    peer.sendRaw(encodeNumberFrame('credit', { run: 1 }, 300_000))
    await settle()
    expect(sent()).toBe(4096 + windowBytes / 4 + 300_000)
  })

  it('may end each direction by itself', async () => {
    const { peer, connection } = await open()
    peer.output(1, Buffer.from('answer'))
    peer.send('output', { run: 1, stream: 1 })
    expect(await textOf(connection)).toBe('answer')
    await connection.write(Buffer.from('more'))
    await connection.end()
    closed(peer)
    await connection.closed
    await connection.destroy()
    await settle()
    expect(peer.heard('kill'), 'nothing is left to be killed').toEqual([])
  })

  it('that broke off after an answer still hands the answer over', async () => {
    const { peer, connection } = await open()
    peer.output(1, Buffer.from('answer'))
    closed(peer, 104)
    const iterator = connection.output[Symbol.asyncIterator]()
    expect(Buffer.from((await iterator.next()).value as Uint8Array).toString()).toBe('answer')
    await expect(iterator.next()).rejects.toMatchObject({ code: 'conflict' })
    await expect(connection.closed).rejects.toMatchObject({ code: 'conflict', message: 'the connection to port 8080 in the cell broke off (errno 104)' })
  })

  it('of a channel that ends fails with it', async () => {
    const { peer, warden, connection } = await open()
    const connecting = warden.connect(1)
    const pending = Promise.allSettled([connecting, connection.closed, textOf(connection), connection.write(Buffer.alloc(windowBytes + 1))])
    await settle()
    peer.vanish()
    expect((await pending).map((each) => (each.status === 'rejected' ? (each.reason as { code: string }).code : each.status))).toEqual(
      new Array(4).fill('broken'),
    )
    await expect(connection.destroy()).rejects.toMatchObject({ code: 'broken' })
  })
})

describe('a warden that breaks a rule of connections ends the channel', () => {
  it.each<[string, (peer: ScriptedWarden) => void]>([
    ['CONNECTED twice', (peer) => peer.send('connected', { run: 1 })],
    ['FAILED after CONNECTED', (peer) => peer.send('failed', { run: 1 }, numbers(4, 111))],
    ['STARTED for a connection', (peer) => peer.started(1)],
    ['EXITED for a connection', (peer) => peer.exited(1)],
    ['GATED for a connection', (peer) => peer.gated(1)],
    ['a second stream', (peer) => peer.output(1, Buffer.from('x'), 2)],
    ['the end of a second stream', (peer) => peer.send('output', { run: 1, stream: 2 })],
    ['output beyond its credit', (peer) => peer.output(1, Buffer.alloc(windowBytes + 1))],
    ['credit beyond the window', (peer) => peer.sendRaw(encodeNumberFrame('credit', { run: 1 }, 1))],
    ['CLOSED in order before any end', (peer) => closed(peer)],
    [
      'CLOSED in order before our end',
      (peer) => {
        peer.send('output', { run: 1, stream: 1 })
        closed(peer)
      },
    ],
    ['CLOSED with an impossible errno', (peer) => closed(peer, 4096)],
    [
      'CLOSED twice',
      (peer) => {
        closed(peer, 104)
        closed(peer, 104)
      },
    ],
    [
      'output after CLOSED',
      (peer) => {
        closed(peer, 104)
        peer.output(1, Buffer.from('x'))
      },
    ],
    [
      'output after its end',
      (peer) => {
        peer.send('output', { run: 1, stream: 1 })
        peer.output(1, Buffer.from('x'))
      },
    ],
    ['GONE without KILL', (peer) => peer.send('gone', { run: 1 })],
  ])('%s', async (_, breach) => {
    const { peer, warden } = await open()
    breach(peer)
    expect(await warden.ended).toMatchObject({ code: 'broken' })
    expect(peer.channel.destroyed).toBe(true)
  })

  it.each<[string, (peer: ScriptedWarden) => void]>([
    ['CLOSED', (peer) => closed(peer, 104)],
    ['output', (peer) => peer.output(1, Buffer.from('x'))],
    ['credit', (peer) => peer.sendRaw(encodeNumberFrame('credit', { run: 1 }, 0))],
    ['STARTED', (peer) => peer.started(1)],
    ['FAILED of a program', (peer) => peer.send('failed', { run: 1 }, numbers(2, 2))],
    ['GONE', (peer) => peer.send('gone', { run: 1 })],
  ])('%s before CONNECTED', async (_, breach) => {
    const { peer, warden } = await connected()
    const connecting = warden.connect(8080)
    await peer.hear('connect')
    breach(peer)
    await expect(connecting).rejects.toMatchObject({ code: 'broken' })
    expect(await warden.ended).toMatchObject({ code: 'broken' })
  })

  it('GONE before CLOSED', async () => {
    const { peer, warden, connection } = await open()
    const gone = connection.destroy()
    await peer.hear('kill')
    peer.send('gone', { run: 1 })
    await expect(gone).rejects.toMatchObject({ code: 'broken' })
    expect(await warden.ended).toMatchObject({ code: 'broken' })
  })

  it('CONNECTED for a run', async () => {
    const { peer, warden } = await connected()
    void warden.start({ argv: ['true'], env: {}, cwd: '/', uid: 1, gid: 1, capabilities: 0n, rlimits: [], stdin: false }).catch(() => {})
    const { run } = await peer.hear('start')
    peer.send('connected', { run })
    expect(await warden.ended).toMatchObject({ code: 'broken' })
  })
})
