import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { type Frame, Peer, TYPE, u32, WARDEN, WINDOW } from './frames.js'
import { testUnless } from '../unless.js'

const residentKiB = (peer: Peer) => Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${peer.child.pid}/status`, 'utf8'))?.[1])
const outputOf = (frames: readonly Frame[], run: number, stream: number) =>
  frames.filter((frame) => frame.type === TYPE.OUTPUT && frame.run === run && frame.stream === stream).reduce((sum, frame) => sum + frame.payload.length, 0)

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await pause(5)
}

test('endless output stops at the window until there is credit, and goes on by exactly that much', async () => {
  await using peer = new Peer()
  peer.start(1, { argv: ['yes'] })
  await until(() => outputOf(peer.frames, 1, 1) === WINDOW)
  await pause(100)
  expect(outputOf(peer.frames, 1, 1)).toBe(WINDOW)
  peer.send({ type: TYPE.CREDIT, run: 1, stream: 1, payload: u32(1000) })
  await until(() => outputOf(peer.frames, 1, 1) === WINDOW + 1000)
  await pause(50)
  expect(outputOf(peer.frames, 1, 1)).toBe(WINDOW + 1000)
  expect(residentKiB(peer)).toBeLessThan(8 * 1024)
})

test('one stream without credit does not hold the other one up', async () => {
  await using peer = new Peer()
  peer.start(1, { argv: ['sh', '-c', 'yes & yes >&2'] })
  await until(() => outputOf(peer.frames, 1, 1) === WINDOW && outputOf(peer.frames, 1, 2) === WINDOW)
})

test('an engine that does not read costs no memory, and nothing is lost when it reads again', async () => {
  await using peer = new Peer()
  await peer.takeType(TYPE.HELLO)
  peer.stdout.pause()
  for (let run = 1; run <= 16; run++) peer.start(run, { argv: ['sh', '-c', `head -c 200000 /dev/zero | tr '\\0' x; exit ${run}`] })
  await pause(300)
  expect(residentKiB(peer)).toBeLessThan(8 * 1024)
  peer.stdout.resume()
  const all = await Promise.all(Array.from({ length: 16 }, (_, index) => peer.collect(index + 1)))
  expect(all.map((said) => [said.stdout.length, said.ending.code])).toEqual(all.map((_, index) => [200000, index + 1]))
})

test('what a program leaves in its pipe when it exits is held back until there is credit', async () => {
  await using peer = new Peer()
  peer.start(1, { argv: ['sh', '-c', `head -c ${WINDOW + 5000} /dev/zero; sleep 60 &`] })
  await until(() => outputOf(peer.frames, 1, 1) === WINDOW)
  await pause(100)
  expect(peer.frames.some((frame) => frame.type === TYPE.EXITED)).toBe(false)
  peer.send({ type: TYPE.CREDIT, run: 1, stream: 1, payload: u32(5000) })
  expect((await peer.takeType(TYPE.EXITED, 1)).payload.readUInt32LE(4)).toBe(0)
  expect(outputOf(peer.frames, 1, 1)).toBe(WINDOW + 5000)
})

test('input to a program that never reads is held up to the window and dropped at its end', async () => {
  await using peer = new Peer()
  peer.start(1, { argv: ['sleep', '60'], stdin: true })
  for (let sent = 0; sent < WINDOW; sent += 65536) peer.send({ type: TYPE.STDIN, run: 1, payload: Buffer.alloc(65536, 'x') })
  await peer.takeType(TYPE.STARTED, 1)
  // By then the pipe took what it takes, however small it is.
  for (const run of [2, 3]) expect((await peer.run(run, { argv: ['true'] })).ending.code).toBe(0)
  const given = peer.frames.filter((frame) => frame.type === TYPE.CREDIT && frame.run === 1).reduce((sum, frame) => sum + frame.payload.readUInt32LE(0), 0)
  // What the pipe took.
  expect(given).toBeLessThanOrEqual(WINDOW / 2)
  peer.send({ type: TYPE.KILL, run: 1 })
  await peer.takeType(TYPE.GONE, 1)
  expect((await peer.collect(1)).ending).toMatchObject({ kind: 1, code: 9 })
})

test('input that nobody reads any more gives its credit back', async () => {
  await using peer = new Peer()
  peer.start(1, { argv: ['sh', '-c', 'exec <&-; sleep 60'], stdin: true })
  await peer.takeType(TYPE.STARTED, 1)
  for (let round = 0; round < 3; round++) {
    for (let sent = 0; sent < WINDOW; sent += 65536) peer.send({ type: TYPE.STDIN, run: 1, payload: Buffer.alloc(65536) })
    for (let credit = 0; credit < WINDOW; ) credit += (await peer.takeType(TYPE.CREDIT, 1)).payload.readUInt32LE(0)
  }
})

test('input to a program whose stdin is /dev/null gives its credit back', async () => {
  await using peer = new Peer()
  peer.start(1, { argv: ['sleep', '60'] })
  peer.send({ type: TYPE.STDIN, run: 1, payload: Buffer.alloc(4321) })
  expect((await peer.takeType(TYPE.CREDIT, 1)).payload).toEqual(u32(4321))
})

test('a guest that steals its own output cannot hold the end of its run back', async () => {
  await using peer = new Peer()
  peer.start(1, { argv: ['sh', '-c', `cat </proc/self/fd/1 >/dev/null & head -c 3000000 /dev/zero; exit 4`] })
  expect((await peer.collect(1)).ending.code).toBe(4)
})

const numbers = (last: number) => Array.from({ length: last }, (_, index) => `${index + 1}\n`).join('')

/** Much, then byte by byte with a page for each, then much again. */
const inPackets = `import fcntl, os, sys
try: fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, 1 << 18)
except PermissionError: pass # other pipes of this user have all the room there is
def much():
    for _ in range(20): os.write(1, b"m" * 200000)
much()
flags = fcntl.fcntl(1, fcntl.F_GETFL)
fcntl.fcntl(1, fcntl.F_SETFL, flags | os.O_DIRECT)
for index in range(5000): os.write(1, b"%d" % (index % 10))
fcntl.fcntl(1, fcntl.F_SETFL, flags)
much()`

describe('what is printed in bulk', () => {
  test('arrives whole and in order, on both streams and beside other runs', async () => {
    await using peer = new Peer()
    peer.start(1, { argv: ['sh', '-c', 'seq 1 700000 & seq 1 600000 >&2; wait'] })
    const both = peer.collect(1)
    for (let run = 2; run < 12; run++) expect((await peer.run(run, { argv: ['seq', '1', '90000'] })).stdout.toString()).toBe(numbers(90_000))
    const { stdout, stderr, ending } = await both
    expect([stdout.toString() === numbers(700_000), stderr.toString() === numbers(600_000), ending.code]).toEqual([true, true, 0])
  })

  test('arrives whole where it comes a byte a page', async () => {
    await using peer = new Peer()
    const { stdout, stderr, ending } = await peer.run(1, { argv: ['/usr/bin/python3', '-c', inPackets] })
    // Said as lengths of what is alike, so that a failure can be read.
    const parts = (text: string) => (text.match(/m+|[^m]+/g) ?? []).map((part) => (part.startsWith('m') ? part.length : part))
    expect([stderr.toString(), ending.code, parts(stdout.toString())]).toEqual(['', 0, [4_000_000, '0123456789'.repeat(500), 4_000_000]])
  })

  test('arrives whole over a channel that takes nothing from a pipe', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'glovebox-flow-'))
    // The kernel splices into no file that is only appended to.
    const appended = `tail -c +1 -f --pid=$$ "$1" & exec "$0" --subreaper >>"$1"`
    try {
      writeFileSync(join(folder, 'channel'), '')
      await using peer = new Peer(['sh', '-c', appended, WARDEN, join(folder, 'channel')])
      for (const run of [1, 2]) expect((await peer.run(run, { argv: ['seq', '1', '300000'] })).stdout.toString() === numbers(300_000)).toBe(true)
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})

testUnless(process.env.WARDEN_UNDER_TEST !== undefined && 'a sanitizer build has memory of its own')(
  'a large START and much input leave nothing behind in the memory of keepers',
  async () => {
    await using peer = new Peer()
    const env = Array.from({ length: 16 }, (_, index) => `V${index}=${'x'.repeat(100_000)}`)
    peer.start(1, { argv: ['sleep', '60'], stdin: true })
    for (let sent = 0; sent < WINDOW; sent += 65536) peer.send({ type: TYPE.STDIN, run: 1, payload: Buffer.alloc(65536) })
    peer.start(2, { argv: ['/bin/sleep', '60'], env })
    const program = (await peer.takeType(TYPE.STARTED, 2)).payload.readUInt32LE(0)
    const keeper = Number(/PPid:\s+(\d+)/.exec(readFileSync(`/proc/${program}/status`, 'utf8'))?.[1])
    expect(Number(/RssAnon:\s+(\d+)/.exec(readFileSync(`/proc/${keeper}/status`, 'utf8'))?.[1])).toBeLessThan(512)
  },
)

test('what a program that ends or is killed had not taken is not given back as if it had', async () => {
  await using peer = new Peer()
  const creditOf = (run: number) =>
    peer.frames.filter(({ type, run: of }) => type === TYPE.CREDIT && of === run).reduce((sum, { payload }) => sum + payload.readUInt32LE(0), 0)
  for (let run = 1; run <= 20; run += 1) {
    peer.start(run, { argv: ['sleep', run % 2 ? '0.02' : '60'], stdin: true })
    peer.send({ type: TYPE.STDIN, run, payload: Buffer.alloc(262_144) })
    peer.send({ type: TYPE.STDIN, run, payload: Buffer.alloc(262_144) })
    if (run % 2 === 0) peer.send({ type: TYPE.KILL, run })
    await peer.takeType(TYPE.EXITED, run)
    // What its pipe holds is all that anyone took.
    expect(creditOf(run)).toBeLessThanOrEqual(262_144)
  }
})
