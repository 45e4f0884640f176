import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { testUnless } from '../unless.js'
import { hasBwrap, isRoot, ManyIdCell, singleIdCell } from './cells.js'
import { type Frame, Peer, TYPE, u32, WINDOW } from './frames.js'

const ECONNREFUSED = 111
const ECONNRESET = 104
const ECONNABORTED = 103
const ETIMEDOUT = 110
const ECANCELED = 125

const failureOf = (frame: Frame) => ({ stage: frame.payload.readUInt32LE(0), errno: frame.payload.readUInt32LE(4), text: frame.payload.subarray(8).toString() })
const digest = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
const dial = (peer: Peer, run: number, port: number) => {
  const payload = Buffer.alloc(2)
  payload.writeUInt16LE(port)
  peer.send({ type: TYPE.CONNECT, run, payload })
}

interface Listener extends AsyncDisposable {
  readonly port: number
  readonly sockets: Socket[]
}

/** Something that listens, on the machine's own loopback: where a warden without a cell is. */
async function listen(serve: (socket: Socket) => void, host = '127.0.0.1'): Promise<Listener> {
  const sockets: Socket[] = []
  const server: Server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.push(socket)
    socket.on('error', () => {})
    serve(socket)
  })
  server.listen(0, host)
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    sockets,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Everything that a connection says until it is closed, crediting each byte as it comes. */
async function hear(peer: Peer, run: number): Promise<{ bytes: Buffer; ended: boolean; errno: number }> {
  const parts: Buffer[] = []
  let ended = false
  for (;;) {
    const frame = await peer.take((each) => each.run === run && [TYPE.OUTPUT, TYPE.CLOSED].some((type) => type === each.type))
    if (frame.type === TYPE.CLOSED) return { bytes: Buffer.concat(parts), ended, errno: frame.payload.readUInt32LE(0) }
    expect([frame.stream, ended]).toEqual([1, false])
    ended = frame.payload.length === 0
    parts.push(frame.payload)
    if (!ended) peer.send({ type: TYPE.CREDIT, run, stream: 1, payload: u32(frame.payload.length) })
  }
}

/** Listens with room for one, and accepts none. */
const busyListener = 'import socket,time\ns=socket.socket();s.bind(("127.0.0.1",0));s.listen(0)\nprint(s.getsockname()[1],flush=True);time.sleep(60)'

const say = (peer: Peer, run: number, bytes: Buffer) => peer.send({ type: TYPE.STDIN, run, payload: bytes })
const end = (peer: Peer, run: number) => peer.send({ type: TYPE.STDIN, run })
const descriptorsOf = (peer: Peer) => readdirSync(`/proc/${peer.child.pid}/fd`).length
const residentKiB = (peer: Peer) => Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${peer.child.pid}/status`, 'utf8'))?.[1])

/** Sends within the credit. */
async function feed(peer: Peer, run: number, bytes: Buffer): Promise<void> {
  let credit = WINDOW
  for (let at = 0; at < bytes.length; ) {
    while (credit === 0) credit += (await peer.takeType(TYPE.CREDIT, run)).payload.readUInt32LE(0)
    const piece = bytes.subarray(at, at + Math.min(credit, 65536))
    say(peer, run, piece)
    credit -= piece.length
    at += piece.length
  }
  end(peer, run)
}

test('bytes go both ways exactly, and both ends end it in order', async () => {
  await using peer = new Peer()
  await using echo = await listen((socket) => void socket.pipe(socket))
  const noise = randomBytes(4 << 20)
  dial(peer, 1, echo.port)
  await peer.takeType(TYPE.CONNECTED, 1)
  const [heard] = await Promise.all([hear(peer, 1), feed(peer, 1, noise)])
  expect([digest(heard.bytes), heard.ended, heard.errno]).toEqual([digest(noise), true, 0])
})

test('each direction ends by itself: the other side may answer after our end, and we after its own', async () => {
  await using peer = new Peer()
  await using late = await listen((socket) => {
    let asked = ''
    socket.on('data', (chunk: Buffer) => (asked += chunk.toString()))
    socket.on('end', () => socket.end(`you said ${asked}`))
  })
  dial(peer, 1, late.port)
  await peer.takeType(TYPE.CONNECTED, 1)
  say(peer, 1, Buffer.from('hello'))
  end(peer, 1)
  expect(await hear(peer, 1)).toEqual({ bytes: Buffer.from('you said hello'), ended: true, errno: 0 })

  const asked: Buffer[] = []
  await using early = await listen((socket) => {
    socket.end('goodbye')
    socket.on('data', (chunk: Buffer) => asked.push(chunk))
  })
  dial(peer, 2, early.port)
  await peer.takeType(TYPE.CONNECTED, 2)
  const hearing = hear(peer, 2)
  while (!peer.frames.every((frame) => frame.run !== 2)) await pause(5)
  await pause(50)
  say(peer, 2, Buffer.from('still here'))
  end(peer, 2)
  expect(await hearing).toEqual({ bytes: Buffer.from('goodbye'), ended: true, errno: 0 })
  expect(Buffer.concat(asked).toString()).toBe('still here')
})

test('a listener of the sixth version alone is found', async () => {
  await using peer = new Peer()
  await using six = await listen((socket) => socket.end('six'), '::1')
  dial(peer, 1, six.port)
  await peer.takeType(TYPE.CONNECTED, 1)
  end(peer, 1)
  expect((await hear(peer, 1)).bytes.toString()).toBe('six')
})

test('a port where nobody listens is refused, and nothing is left of the attempt', async () => {
  await using peer = new Peer()
  const gone = await listen(() => {})
  const { port } = gone
  await gone[Symbol.asyncDispose]()
  await peer.takeType(TYPE.HELLO)
  const before = descriptorsOf(peer)
  dial(peer, 1, port)
  expect(failureOf(await peer.takeType(TYPE.FAILED, 1))).toEqual({ stage: 4, errno: ECONNREFUSED, text: `connect to port ${port}` })
  // What may have crossed on the way is no error.
  say(peer, 1, Buffer.from('x'))
  peer.send({ type: TYPE.KILL, run: 1 })
  await peer.takeType(TYPE.GONE, 1)
  expect(descriptorsOf(peer)).toBe(before)
})

test('a port that the kernel could choose for the attempt itself is refused every time', async () => {
  await using peer = new Peer()
  const [low = 0] = readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').split(/\s+/).map(Number)
  await peer.takeType(TYPE.HELLO)
  // As many as there are to choose from.
  for (let run = 1; run <= 30_000; run += 500) {
    for (let each = 0; each < 500; each += 1) dial(peer, run + each, low + 1000)
    for (let each = 0; each < 500; each += 1) {
      const { type, payload } = await peer.take(() => true)
      expect([type, payload.readUInt32LE(4)]).toEqual([TYPE.FAILED, ECONNREFUSED])
    }
  }
}, 300_000)

test('a reset is told as one', async () => {
  await using peer = new Peer()
  await using rude = await listen((socket) => void socket.on('data', () => socket.resetAndDestroy()))
  dial(peer, 1, rude.port)
  await peer.takeType(TYPE.CONNECTED, 1)
  say(peer, 1, Buffer.from('x'))
  expect(await hear(peer, 1)).toEqual({ bytes: Buffer.alloc(0), ended: false, errno: ECONNRESET })
})

test('what was answered before a reset is still heard', async () => {
  await using peer = new Peer()
  await using brief = await listen((socket) => {
    socket.pause()
    socket.end('413 too large\n', () => setTimeout(() => socket.destroy(), 50))
  })
  dial(peer, 1, brief.port)
  await peer.takeType(TYPE.CONNECTED, 1)
  for (let sent = 0; sent < WINDOW; sent += 65536) say(peer, 1, Buffer.alloc(65536))
  const { bytes, errno } = await hear(peer, 1)
  expect(bytes.toString()).toBe('413 too large\n')
  expect(errno).not.toBe(0)
})

test('a listener that takes nobody in is given up after ten seconds', async () => {
  await using peer = new Peer()
  peer.start(1, { argv: ['/usr/bin/python3', '-c', busyListener] })
  const port = Number((await peer.take((frame) => frame.type === TYPE.OUTPUT && frame.payload.length > 0)).payload.toString())
  const begun = Date.now()
  for (let run = 2; run <= 5; run += 1) dial(peer, run, port)
  expect(failureOf(await peer.takeType(TYPE.FAILED, 5))).toEqual({ stage: 4, errno: ETIMEDOUT, text: `connect to port ${port}` })
  expect(Date.now() - begun).toBeGreaterThanOrEqual(9900)
  expect(Date.now() - begun).toBeLessThan(30_000)
})

test('a peer that does not read holds back what is said to it, and one that floods stops at the window', async () => {
  await using peer = new Peer()
  await using deaf = await listen((socket) => void socket.pause())
  dial(peer, 1, deaf.port)
  await peer.takeType(TYPE.CONNECTED, 1)
  let credit = WINDOW
  let sent = 0
  for (let idle = 0; idle < 20; ) {
    const frame = peer.frames.find((each) => each.type === TYPE.CREDIT && each.run === 1)
    if (frame) {
      peer.frames.splice(peer.frames.indexOf(frame), 1)
      credit += frame.payload.readUInt32LE(0)
    }
    idle = credit > 0 ? 0 : idle + 1
    if (credit === 0) await pause(10)
    for (; credit > 0; credit -= Math.min(credit, 65536)) {
      say(peer, 1, Buffer.alloc(Math.min(credit, 65536)))
      sent += Math.min(credit, 65536)
    }
  }
  // The rest is what the kernel's own buffers take.
  expect(sent).toBeLessThan(32 << 20)

  await using loud = await listen((socket) => {
    const flood = (): void => {
      while (socket.write(Buffer.alloc(65536)));
      socket.once('drain', flood)
    }
    flood()
  })
  dial(peer, 2, loud.port)
  const heard = () => peer.frames.filter((frame) => frame.type === TYPE.OUTPUT && frame.run === 2).reduce((sum, frame) => sum + frame.payload.length, 0)
  while (heard() < WINDOW) await pause(5)
  await pause(100)
  expect(heard()).toBe(WINDOW)
  peer.send({ type: TYPE.CREDIT, run: 2, stream: 1, payload: u32(1000) })
  while (heard() < WINDOW + 1000) await pause(5)
  await pause(50)
  expect(heard()).toBe(WINDOW + 1000)
  if (process.env.WARDEN_UNDER_TEST === undefined) expect(residentKiB(peer)).toBeLessThan(8 * 1024)
})

test('KILL ends a connection at once, whatever waits, and one that is still on its way', async () => {
  await using peer = new Peer()
  await using deaf = await listen((socket) => void socket.pause())
  dial(peer, 1, deaf.port)
  await peer.takeType(TYPE.CONNECTED, 1)
  for (let sent = 0; sent < WINDOW; sent += 65536) say(peer, 1, Buffer.alloc(65536))
  peer.send({ type: TYPE.KILL, run: 1 })
  const told = [await peer.take((frame) => frame.type === TYPE.CLOSED || frame.type === TYPE.GONE), await peer.takeType(TYPE.GONE, 1)]
  expect(told.map((frame) => frame.type)).toEqual([TYPE.CLOSED, TYPE.GONE])
  expect(told[0]?.payload.readUInt32LE(0)).toBe(ECONNABORTED)
  peer.send({ type: TYPE.KILL, run: 1 })
  await peer.takeType(TYPE.GONE, 1)

  peer.start(2, { argv: ['/usr/bin/python3', '-c', busyListener] })
  const port = Number((await peer.take((frame) => frame.type === TYPE.OUTPUT && frame.payload.length > 0)).payload.toString())
  for (let run = 3; run <= 6; run += 1) dial(peer, run, port)
  await pause(100)
  peer.send({ type: TYPE.KILL, run: 6 })
  expect(failureOf(await peer.takeType(TYPE.FAILED, 6)).errno).toBe(ECANCELED)
  await peer.takeType(TYPE.GONE, 6)
})

test.each<[string, (peer: Peer) => unknown, RegExp]>([
  ['SIGNAL', (peer) => peer.send({ type: TYPE.SIGNAL, run: 1, payload: u32(9) }), /SIGNAL for a connection/],
  ['RELEASE', (peer) => peer.send({ type: TYPE.RELEASE, run: 1 }), /not at its gate/],
  ['RESIZE', (peer) => peer.send({ type: TYPE.RESIZE, run: 1, payload: u32(0x00500018) }), /without a terminal/],
  ['credit for a second stream', (peer) => peer.send({ type: TYPE.CREDIT, run: 1, stream: 2, payload: u32(1) }), /credit beyond/],
  ['credit beyond the window', (peer) => peer.send({ type: TYPE.CREDIT, run: 1, stream: 1, payload: u32(1) }), /credit beyond/],
  ['input beyond its credit', (peer) => Array.from({ length: 200 }, () => say(peer, 1, Buffer.alloc(65536))), /beyond its credit/],
])('%s for a connection is malformed', async (_, send, says) => {
  await using peer = new Peer()
  await using deaf = await listen((socket) => void socket.pause())
  dial(peer, 1, deaf.port)
  await peer.takeType(TYPE.CONNECTED, 1)
  send(peer)
  expect((await peer.takeType(TYPE.FATAL)).payload.toString()).toMatch(says)
})

test('input for a connection that is not made is malformed', async () => {
  await using peer = new Peer()
  peer.start(1, { argv: ['/usr/bin/python3', '-c', busyListener] })
  const port = Number((await peer.take((frame) => frame.type === TYPE.OUTPUT && frame.payload.length > 0)).payload.toString())
  for (let run = 2; run <= 6; run += 1) dial(peer, run, port)
  await pause(50)
  say(peer, 6, Buffer.from('x'))
  expect((await peer.takeType(TYPE.FATAL)).payload.toString()).toMatch(/connection that is not made/)
})

test('two hundred at once do not mix, and leave no descriptor', async () => {
  await using peer = new Peer()
  await using echo = await listen((socket) => void socket.pipe(socket))
  await peer.takeType(TYPE.HELLO)
  const before = descriptorsOf(peer)
  const runs = Array.from({ length: 200 }, (_, index) => index + 1)
  for (const run of runs) dial(peer, run, echo.port)
  for (const run of runs) await peer.takeType(TYPE.CONNECTED, run)
  expect(descriptorsOf(peer)).toBe(before + 400)
  const heard = await Promise.all(
    runs.map(async (run) => {
      const hearing = hear(peer, run)
      say(peer, run, Buffer.from(`number ${run}`))
      end(peer, run)
      return (await hearing).bytes.toString()
    }),
  )
  expect(heard).toEqual(runs.map((run) => `number ${run}`))
  expect(descriptorsOf(peer)).toBe(before)
})

test('connections and runs are counted together, and one too many is refused', async () => {
  await using peer = new Peer()
  await using quiet = await listen(() => {})
  for (let run = 1; run <= 1024; run += 1) dial(peer, run, quiet.port)
  for (let run = 1; run <= 1024; run += 1) await peer.takeType(TYPE.CONNECTED, run)
  dial(peer, 1025, quiet.port)
  expect(failureOf(await peer.takeType(TYPE.FAILED, 1025))).toMatchObject({ stage: 4, errno: 11 })
  peer.start(1026, { argv: ['true'] })
  expect(failureOf(await peer.takeType(TYPE.FAILED, 1026))).toMatchObject({ stage: 3, errno: 11 })
})

const cells: readonly (readonly [name: string, able: boolean, open: () => Promise<AsyncDisposable & { peer: Peer }>])[] = [
  ['one id', hasBwrap, () => Promise.resolve(singleIdCell()).then((peer) => ({ peer, [Symbol.asyncDispose]: () => peer[Symbol.asyncDispose]() }))],
  ['ids of its own', hasBwrap && isRoot, () => ManyIdCell.open()],
]

describe.each(cells)('in a cell with %s', (_name, able, open) => {
  testUnless(!able && 'needs bwrap, and root for ids of its own')(
    'a port is the cell’s own: what listens there is reached, what listens outside is not',
    async () => {
      await using cell = await open()
      await using outside = await listen((socket) => socket.end('outside'))
      const { peer } = cell
      const serve =
        'import socket\ns=socket.socket();s.bind(("127.0.0.1",8080));s.listen()\nprint("on",flush=True)\nc,_=s.accept();c.sendall(b"inside "+c.recv(9));c.close()'
      peer.start(1, { argv: ['/usr/bin/python3', '-c', serve], uid: 1000, gid: 1000 })
      await peer.take((frame) => frame.type === TYPE.OUTPUT && frame.payload.toString() === 'on\n')
      dial(peer, 2, 8080)
      await peer.takeType(TYPE.CONNECTED, 2)
      say(peer, 2, Buffer.from('hi'))
      end(peer, 2)
      expect(await hear(peer, 2)).toEqual({ bytes: Buffer.from('inside hi'), ended: true, errno: 0 })
      dial(peer, 3, outside.port)
      expect(failureOf(await peer.takeType(TYPE.FAILED, 3)).errno).toBe(ECONNREFUSED)
      expect(outside.sockets).toEqual([])
    },
  )
})
