import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { endingOf, type Frame, Peer, type Start, TYPE, u32, WINDOW } from './frames.js'
import { descendantsOf } from './processes.js'
import { testUnless } from '../unless.js'

const python = (source: string, more: Partial<Start> = {}): Start => ({
  argv: ['/usr/bin/python3', '-c', `import os, sys, time\n${source}`],
  aside: true,
  ...more,
})
const shell = (script: string): Start => ({ argv: ['sh', '-c', script], aside: true })
const residentKiB = (peer: Peer) => Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${peer.child.pid}/status`, 'utf8'))?.[1])
const sent = (frames: readonly Frame[], stream: number) =>
  frames.filter((frame) => frame.type === TYPE.OUTPUT && frame.stream === stream).reduce((sum, frame) => sum + frame.payload.length, 0)

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await pause(5)
}

/** Which of its first numbers are open, and what 0, 3 and 4 are. */
const whatIsOpen = `
def there(fd):
    try: os.fstat(fd); return True
    except OSError: return False
found = [fd for fd in range(4096) if there(fd)]
kind = lambda fd: os.readlink("/proc/self/fd/%d" % fd).split(":")[0]
print(found, *[kind(fd) for fd in found])`

describe('what a program with an aside has', () => {
  test('0 is /dev/null, 3 and 4 are pipes, and nothing else is open', async () => {
    await using peer = new Peer()
    const { stdout } = await peer.run(1, python(whatIsOpen))
    expect(stdout.toString()).toBe('[0, 1, 2, 3, 4] /dev/null pipe pipe pipe pipe\n')
  })

  test('the same at its gate and whatever else is open in the warden', async () => {
    await using peer = new Peer(undefined, { extra: ['pipe', 'pipe', 'pipe', 'pipe'] })
    // Runs take and leave numbers, so that those of the aside come to lie in every order.
    for (let run = 1; run <= 6; run++) peer.start(run, { argv: ['sleep', '60'], stdin: run % 2 === 0 })
    for (let run = 1; run <= 6; run++) await peer.takeType(TYPE.STARTED, run)
    for (const run of [1, 3, 4]) {
      peer.send({ type: TYPE.KILL, run })
      await peer.takeType(TYPE.GONE, run)
    }
    for (let run = 10; run < 14; run++) {
      peer.start(run, python(whatIsOpen, { gate: true }))
      await peer.takeType(TYPE.GATED, run)
      peer.send({ type: TYPE.RELEASE, run })
      expect((await peer.collect(run)).stdout.toString()).toBe('[0, 1, 2, 3, 4] /dev/null pipe pipe pipe pipe\n')
    }
  })

  test('a program without one has 0, 1 and 2', async () => {
    await using peer = new Peer()
    expect((await peer.run(1, python(whatIsOpen, { aside: false }))).stdout.toString()).toBe('[0, 1, 2] /dev/null pipe pipe\n')
  })

  testUnless(process.getuid?.() === 0 ? false : 'only root starts programs of another id')(
    'its ends belong to its own id, so that it can open them',
    async () => {
      await using peer = new Peer()
      const said = await peer.run(1, { ...shell('echo in >/dev/fd/4; stat -L -c %u:%g /dev/fd/3 /dev/fd/4'), uid: 65534, gid: 65534 })
      expect([said.aside.toString(), said.stdout.toString(), said.stderr.toString()]).toEqual(['in\n', '65534:65534\n65534:65534\n', ''])
    },
  )

  test('its keeper holds neither end: what it closes is closed', async () => {
    await using peer = new Peer()
    peer.start(1, shell('exec 4>&-; read line <&3; echo got $line; exec 3<&-; sleep 60'))
    const end = await peer.take((frame) => frame.type === TYPE.OUTPUT && frame.stream === 3)
    expect(end.payload.length).toBe(0)
    peer.send({ type: TYPE.STDIN, run: 1, payload: Buffer.from('more\n') })
    expect((await peer.take((frame) => frame.type === TYPE.OUTPUT && frame.stream === 1)).payload.toString()).toBe('got more\n')
    // What nobody reads any more gives its credit back: that of the line came with it.
    peer.send({ type: TYPE.STDIN, run: 1, payload: Buffer.alloc(1000) })
    for (let credit = 0; credit < 1005; ) credit += (await peer.takeType(TYPE.CREDIT, 1)).payload.readUInt32LE(0)
    peer.send({ type: TYPE.KILL, run: 1 })
    expect((await peer.collect(1)).ending).toMatchObject({ kind: 1, code: 9 })
  })
})

describe('the three streams', () => {
  test('carry what each was given, and input arrives on 3 alone', async () => {
    await using peer = new Peer()
    peer.start(1, shell('cat <&3 >&4; cat; echo out; echo err >&2; echo last >&4'))
    peer.send({ type: TYPE.STDIN, run: 1, payload: Buffer.from('asked') })
    peer.send({ type: TYPE.STDIN, run: 1 })
    const { stdout, stderr, aside, ending } = await peer.collect(1)
    expect([stdout.toString(), stderr.toString(), aside.toString(), ending.code]).toEqual(['out\n', 'err\n', 'askedlast\n', 0])
  })

  test('each stops at its own window, and none holds another up', async () => {
    await using peer = new Peer()
    peer.start(1, shell('yes & yes >&2 & yes >&4'))
    await until(() => [1, 2, 3].every((stream) => sent(peer.frames, stream) === WINDOW))
    peer.send({ type: TYPE.CREDIT, run: 1, stream: 3, payload: u32(1000) })
    await until(() => sent(peer.frames, 3) === WINDOW + 1000)
    await pause(100)
    expect([1, 2, 3].map((stream) => sent(peer.frames, stream))).toEqual([WINDOW, WINDOW, WINDOW + 1000])
  })

  test('credit beyond the window of the aside is malformed', async () => {
    await using peer = new Peer()
    peer.start(1, shell('sleep 60'))
    peer.send({ type: TYPE.CREDIT, run: 1, stream: 3, payload: u32(1) })
    expect((await peer.takeType(TYPE.FATAL)).payload.toString()).toMatch(/credit beyond the window/)
  })

  test('credit for the aside of a connection is malformed', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    try {
      await using peer = new Peer()
      const { port } = server.address() as { port: number }
      peer.send({ type: TYPE.CONNECT, run: 1, payload: u32(port).subarray(0, 2) })
      await peer.takeType(TYPE.CONNECTED, 1)
      peer.send({ type: TYPE.CREDIT, run: 1, stream: 3, payload: u32(0) })
      expect((await peer.takeType(TYPE.FATAL)).payload.toString()).toMatch(/aside/)
    } finally {
      server.close()
    }
  })

  test('the end of each is told once, and EXITED comes after all three', async () => {
    await using peer = new Peer()
    peer.start(1, shell('echo a >&4'))
    await until(() => peer.frames.some(({ type }) => type === TYPE.EXITED))
    const told = peer.frames.filter(({ run }) => run === 1)
    const ends = told.filter(({ type, payload }) => type === TYPE.OUTPUT && payload.length === 0).map(({ stream }) => stream)
    expect([ends.toSorted(), told.at(-1)?.type]).toEqual([[1, 2, 3], TYPE.EXITED])
  })

  test('a program that ends with a full aside is over when that was read', async () => {
    await using peer = new Peer()
    peer.start(1, shell(`head -c ${WINDOW + 4000} /dev/zero >&4; echo done; exit 7`))
    await until(() => sent(peer.frames, 3) === WINDOW && sent(peer.frames, 1) === 5)
    await pause(100)
    expect(peer.frames.some(({ type }) => type === TYPE.EXITED)).toBe(false)
    peer.send({ type: TYPE.CREDIT, run: 1, stream: 3, payload: u32(4000) })
    const { ending, aside } = await peer.collect(1)
    expect([ending.code, aside.length]).toEqual([7, WINDOW + 4000])
  })

  test('a program that is killed, or crashes, with a full aside: what was in the pipe is still told', async () => {
    for (const [run, how] of [
      [1, 'kill'],
      [2, 'crash'],
    ] as const) {
      await using peer = new Peer()
      peer.start(run, shell(`sh -c 'yes >&4' & while [ ! -e /proc/$$/none ]; do read line <&3 && kill -SEGV $$; done`))
      await until(() => sent(peer.frames, 3) === WINDOW)
      if (how === 'kill') {
        peer.send({ type: TYPE.KILL, run })
        await peer.takeType(TYPE.GONE, run)
        expect(descendantsOf(peer.child.pid as number)).toEqual([])
      } else peer.send({ type: TYPE.STDIN, run, payload: Buffer.from('now\n') })
      const { aside, ending } = await peer.collect(run)
      expect(ending).toMatchObject({ kind: 1, code: how === 'kill' ? 9 : 11 })
      expect(aside.length).toBeGreaterThanOrEqual(WINDOW)
    }
  })

  test('ended at its gate, it says nothing on any of them', async () => {
    await using peer = new Peer()
    peer.start(1, { ...shell('echo never >&4'), gate: true })
    await peer.takeType(TYPE.GATED, 1)
    peer.send({ type: TYPE.STDIN, run: 1, payload: Buffer.from('held') })
    peer.send({ type: TYPE.KILL, run: 1 })
    expect(endingOf(await peer.takeType(TYPE.EXITED, 1))).toMatchObject({ kind: 1, code: 9 })
    await peer.takeType(TYPE.GONE, 1)
    expect(peer.frames.filter(({ type }) => type === TYPE.OUTPUT)).toEqual([])
  })

  test('what cannot be executed is told as ever', async () => {
    await using peer = new Peer()
    peer.start(1, { argv: ['/nowhere'], aside: true })
    expect((await peer.takeType(TYPE.FAILED, 1)).payload.readUInt32LE(0)).toBe(2)
  })
})

describe('in bulk', () => {
  const bytes = 2 ** 30

  test('a GiB comes aside, whole, with bounded memory, beside what is printed', { timeout: 240_000 }, async () => {
    await using peer = new Peer()
    const chunk = 2 ** 20
    peer.start(
      1,
      python(`
piece = bytes(range(256)) * ${chunk / 256}
for index in range(${bytes / chunk}):
    at = memoryview(piece)
    while at: at = at[os.write(4, at):]
    if index % 64 == 0: os.write(1, b"%d\\n" % index)`),
    )
    let got = 0
    let isRight = true
    let printed = ''
    const pattern = Buffer.from(Array.from({ length: WINDOW + 256 }, (_, index) => index % 256))
    for (;;) {
      const frame = await peer.take(({ type }) => type === TYPE.OUTPUT || type === TYPE.EXITED)
      if (frame.type === TYPE.EXITED) break
      if (frame.stream === 3) {
        isRight &&= frame.payload.equals(pattern.subarray(got % 256, (got % 256) + frame.payload.length))
        got += frame.payload.length
      } else printed += frame.payload.toString()
      if (frame.payload.length > 0) peer.send({ type: TYPE.CREDIT, run: 1, stream: frame.stream, payload: u32(frame.payload.length) })
    }
    expect([got, isRight, printed]).toEqual([bytes, true, Array.from({ length: 16 }, (_, index) => `${index * 64}\n`).join('')])
    if (process.env.WARDEN_UNDER_TEST === undefined) expect(residentKiB(peer)).toBeLessThan(8 * 1024)
  })

  test('much goes in by 3 and comes back by 4', { timeout: 120_000 }, async () => {
    await using peer = new Peer()
    const most = 16 * WINDOW
    peer.start(1, shell('exec cat <&3 >&4'))
    const back = peer.collect(1)
    let credit = WINDOW
    for (let at = 0; at < most; at += 65536) {
      while (credit < 65536) credit += (await peer.takeType(TYPE.CREDIT, 1)).payload.readUInt32LE(0)
      credit -= 65536
      peer.send({ type: TYPE.STDIN, run: 1, payload: Buffer.alloc(65536, (at / 65536) % 251) })
    }
    peer.send({ type: TYPE.STDIN, run: 1 })
    const { aside, ending } = await back
    expect([aside.length, ending.code]).toEqual([most, 0])
    expect(
      Array.from({ length: most / 65536 }, (_, index) => aside.subarray(index * 65536, (index + 1) * 65536).every((byte) => byte === index % 251)),
    ).not.toContain(false)
  })
})
