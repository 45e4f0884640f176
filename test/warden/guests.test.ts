import { describe, expect } from 'vitest'
import { testUnless } from '../unless.js'
import { hasBwrap, isRoot, ManyIdCell, manyIdCapabilities, singleIdCell } from './cells.js'
import { filterOf, type Frame, type Peer, type Start, TYPE, u32 } from './frames.js'

const [wide, narrow] = [262_144, 32_768]
const linerId = 65_531
const lacking = hasBwrap ? false : 'no bwrap here'
const arguments_ = ['--egress', '3128', '--direct']
const capabilities = ['NET_ADMIN', 'NET_BIND_SERVICE']

interface WiredCell extends AsyncDisposable {
  readonly peer: Peer
}

async function openSingle(): Promise<WiredCell> {
  const peer = singleIdCell([...arguments_, '--cradle', '1000', '1000'], capabilities)
  await peer.takeType(TYPE.HELLO)
  peer.send({ type: TYPE.CONFIGURE, payload: filterOf([]) })
  return { peer, [Symbol.asyncDispose]: () => peer[Symbol.asyncDispose]() }
}

async function openMany(): Promise<WiredCell> {
  const cell = await ManyIdCell.open([...manyIdCapabilities, ...capabilities], [...arguments_, '--cradle', `${linerId}`, `${linerId}`])
  await cell.peer.takeType(TYPE.HELLO)
  cell.peer.send({ type: TYPE.CONFIGURE, payload: filterOf([]) })
  return cell
}

const kinds = [
  ['a cell of one id', openSingle, lacking],
  ['a cell of many ids', openMany, lacking || (isRoot ? false : 'only root maps many ids')],
] as const

/** Where a connection was meant to go. */
const placeOf = ({ payload }: Frame) => ({
  door: payload[0],
  family: payload[1],
  port: payload.readUInt16LE(2),
  address: [...payload.subarray(4, payload[1] === 4 ? 8 : 20)].join('.'),
})

const python = (script: string): Start => ({ argv: ['/usr/bin/python3', '-c', `import os, socket, sys, time\n${script}`], uid: 1000, gid: 1000 })
const lined = (script: string): Start => ({ ...python(script), liner: { bytes: 1_048_576n, inodes: 64n } })
const ports = (...numbers: number[]): Buffer => Buffer.concat(numbers.map((port) => Buffer.from([port & 255, port >> 8])))
const accepted = (peer: Peer): Promise<Frame> => peer.take(({ type }) => type === TYPE.ACCEPTED)
const errnoOf = (address: string, port: number): string =>
  `\ntry: socket.create_connection(('${address}', ${port}), 5); print('connected')\nexcept OSError as error: print(error.errno)`

/** Says it back, once all was said. */
async function echo(peer: Peer, run: number): Promise<void> {
  for (;;) {
    const { payload } = await peer.take((frame) => frame.type === TYPE.OUTPUT && frame.run === run)
    peer.send({ type: TYPE.STDIN, run, payload })
    if (payload.length === 0) return
  }
}

const talk = (address: string, port: number): string =>
  `s = socket.create_connection(('${address}', ${port}), 5); s.sendall(b'hello'); s.shutdown(1); print(s.recv(9).decode()); s.recv(1)`

describe.for(kinds)('in %s', ([, open, why]) => {
  testUnless(why)('a connection is told with where it was meant to go, and carries bytes both ways, in the cell and in a liner', async () => {
    await using cell = await open()
    cell.peer.send({ type: TYPE.LISTEN, payload: ports(443) })
    let run = 1
    for (const program of [lined, python]) {
      cell.peer.start(run, program(`${talk('203.0.113.9', 443)}\n${talk('127.0.0.1', 3128)}\n${talk('::1', 3128)}`))
      const places = []
      for (let each = 0; each < 3; each += 1) {
        const frame = await accepted(cell.peer)
        places.push(placeOf(frame))
        await echo(cell.peer, frame.run)
        expect((await cell.peer.takeType(TYPE.CLOSED, frame.run)).payload).toEqual(u32(0))
      }
      expect(places).toEqual([
        { door: 2, family: 4, port: 443, address: '203.0.113.9' },
        { door: 1, family: 4, port: 3128, address: '127.0.0.1' },
        { door: 1, family: 6, port: 3128, address: '0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.1' },
      ])
      const said = await cell.peer.collect(run)
      expect([said.stderr.toString(), said.stdout.toString()]).toEqual(['', 'hello\n'.repeat(3)])
      run += 1
    }
  })

  testUnless(why)('a question is answered from the address that was asked, and only to whoever asked', async () => {
    await using cell = await open()
    let run = 1
    for (const program of [lined, python]) {
      const ask =
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(('198.51.100.53', 53)); s.settimeout(5); s.send(b'who'); print(s.recv(99).decode())"
      cell.peer.start(run, program(ask))
      const query = await cell.peer.take(({ type }) => type === TYPE.QUERY)
      expect(query.payload.toString()).toBe('who')
      cell.peer.send({ type: TYPE.ANSWER, run: query.run, payload: Buffer.from('you') })
      cell.peer.send({ type: TYPE.ANSWER, run: query.run, payload: Buffer.from('again: ignored') })
      expect((await cell.peer.collect(run)).stdout.toString()).toBe('you\n')
      run += 1
    }
  })

  testUnless(why)('a liner listens at the ports that were last said, and its doors close with it', async () => {
    await using cell = await open()
    cell.peer.send({ type: TYPE.LISTEN, payload: ports(8443) })
    const one = await cell.peer.run(1, lined(`${errnoOf('192.0.2.1', 8443)}${errnoOf('192.0.2.1', 443)}`))
    expect(one.stdout.toString()).toBe('connected\n111\n')
    cell.peer.send({ type: TYPE.LISTEN, payload: ports(443) })
    const other = await cell.peer.run(2, lined(`${errnoOf('192.0.2.1', 8443)}${errnoOf('192.0.2.1', 443)}`))
    expect(other.stdout.toString()).toBe('111\nconnected\n')
  })

  testUnless(why)('what guests open never keeps a run from starting, and whoever waits comes in when another is gone', async () => {
    await using cell = await open()
    cell.peer.start(1, python("all = [socket.create_connection(('127.0.0.1', 3128), 60) for _ in range(300)]\nprint('all', flush=True); time.sleep(60)"))
    const frames: Frame[] = []
    while (frames.length < 256) frames.push(await accepted(cell.peer))
    expect(frames.map(({ payload }) => payload.readUInt32LE(20))).toEqual(frames.map((_, index) => (index < 32 ? wide : narrow)))
    const taken = frames.map(({ run }) => run)
    expect((await cell.peer.run(2, python("print('runs')"))).stdout.toString()).toBe('runs\n')
    expect(cell.peer.frames.filter(({ type }) => type === TYPE.ACCEPTED)).toEqual([])
    for (const run of taken.slice(0, 44)) cell.peer.send({ type: TYPE.KILL, run })
    for (let more = 0; more < 44; more += 1) {
      const { run, payload } = await accepted(cell.peer)
      taken.push(run)
      expect(payload.readUInt32LE(20)).toBe(more < 32 ? wide : narrow)
    }
    expect(taken).toEqual(taken.map((_, index) => 0x80000000 + index))
    cell.peer.send({ type: TYPE.KILL, run: 1 })
    await cell.peer.takeType(TYPE.GONE, 1)
  })

  testUnless(why)('neither side holds more of a connection than its window', async () => {
    await using cell = await open()
    const stuff =
      "s = socket.create_connection(('127.0.0.1', 3128), 5); s.setblocking(False)\ntry:\n  while True: s.send(b'x' * 65536)\nexcept BlockingIOError: time.sleep(1)"
    cell.peer.start(1, python(`${stuff}\nprint('held', flush=True); time.sleep(60)`))
    const { run } = await accepted(cell.peer)
    expect((await cell.peer.take((frame) => frame.type === TYPE.OUTPUT && frame.run === 1)).payload.toString()).toBe('held\n')
    const said = cell.peer.frames.filter((frame) => frame.run === run && frame.type === TYPE.OUTPUT).reduce((sum, { payload }) => sum + payload.length, 0)
    expect(said).toBe(wide)
    for (let more = 0; more < 256; more += 1) cell.peer.send({ type: TYPE.STDIN, run, payload: Buffer.alloc(wide) })
    expect((await cell.peer.takeType(TYPE.FATAL)).payload.toString()).toBe('input beyond its credit')
  })

  testUnless(why)('a guest that resets, floods and leaves does nothing to the warden', async () => {
    await using cell = await open()
    const flood = `
import struct
for each in range(2000):
    s = socket.socket(); s.setblocking(False)
    if each % 3: s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    try: s.connect(('127.0.0.1', 3128) if each % 2 else ('192.0.2.1', 53))
    except BlockingIOError: pass
    if each % 5: s.close()
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for each in range(5000):
    try: u.sendto(bytes(each % 6000), ('192.0.2.53', 53))
    except OSError: pass
print('done')`
    cell.peer.start(1, python(flood))
    expect((await cell.peer.collect(1)).stdout.toString()).toBe('done\n')
    const own = () => cell.peer.frames.filter(({ type }) => type === TYPE.QUERY || type === TYPE.ACCEPTED)
    expect(own().filter(({ type }) => type === TYPE.QUERY)).toHaveLength(64)
    for (const { type, run } of own()) cell.peer.send(type === TYPE.QUERY ? { type: TYPE.ANSWER, run } : { type: TYPE.KILL, run })
    expect((await cell.peer.run(2, python("print('lives')"))).stdout.toString()).toBe('lives\n')
  })
})

const failureOf = ({ payload }: Frame) => ({ stage: payload.readUInt32LE(0), errno: payload.readUInt32LE(4), text: payload.subarray(8).toString() })

describe.for([110, 120, 130, 140])('with %d descriptors', (files) => {
  testUnless(lacking)('a liner has its doors or is not started, and the next has them when there is room', async () => {
    await using peer = singleIdCell([...arguments_, '--cradle', '1000', '1000'], capabilities, ['prlimit', `--nofile=${files}:${files}`])
    await peer.takeType(TYPE.HELLO)
    peer.send({ type: TYPE.CONFIGURE, payload: filterOf([]) })
    peer.send({ type: TYPE.LISTEN, payload: ports(...Array.from({ length: 24 }, (_, each) => 9000 + each)) })
    const program = lined(`${errnoOf('127.0.0.1', 3128)}\nsys.stdout.flush(); time.sleep(60)`)
    const start = async (run: number): Promise<string | ReturnType<typeof failureOf>> => {
      peer.start(run, program)
      const frame = await peer.take((each) => each.run === run && (each.type === TYPE.FAILED || each.type === TYPE.OUTPUT))
      return frame.type === TYPE.FAILED ? failureOf(frame) : frame.payload.toString()
    }
    const ways = []
    for (let run = 1; run <= 5; run += 1) ways.push(await start(run))
    const refused = ways.filter((way) => typeof way !== 'string')
    expect(ways.slice(0, ways.length - refused.length)).toEqual(Array(ways.length - refused.length).fill('connected\n'))
    expect(refused.length).toBeGreaterThan(0)
    expect(refused[0]).toEqual({ stage: 3, errno: 24, text: 'hand over the doors of a liner' })
    peer.send({ type: TYPE.KILL, run: 1 })
    await peer.takeType(TYPE.GONE, 1)
    expect(await start(9)).toBe('connected\n')
  })
})

testUnless(lacking)('without the capability the doors cannot be had, and the cell does not open', async () => {
  await using peer = singleIdCell(arguments_)
  expect(await peer.exited).not.toBe(0)
  expect(peer.stderr).toBe('warden: open the routes to itself: Operation not permitted\n')
})
