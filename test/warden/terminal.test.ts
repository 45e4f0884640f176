import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { comesToFront } from '../../src/conformance/comes-to-front.js'
import { testUnless } from '../unless.js'
import { hasBwrap, isRoot, ManyIdCell, singleIdCell } from './cells.js'
import { endingOf, type Frame, Peer, type Start, sizeOf, TYPE, u32, WINDOW } from './frames.js'
import { descendantsOf } from './processes.js'

const size = { rows: 24, cols: 80 }
const ENOSPC = 28
const failureOf = (frame: Frame) => ({ stage: frame.payload.readUInt32LE(0), errno: frame.payload.readUInt32LE(4), text: frame.payload.subarray(8).toString() })
const shell = (script: string, more: Partial<Start> = {}): Start => ({ argv: ['bash', '--norc', '-c', script], terminal: size, ...more })
const interactive = (more: Partial<Start> = {}): Start => ({
  argv: ['bash', '--norc', '--noprofile', '--noediting', '-i'],
  env: ['PATH=/usr/bin:/bin', 'PS1=$ ', 'TERM=dumb'],
  terminal: size,
  ...more,
})

const inFront = `/usr/bin/python3 -IS -c '${comesToFront}'`

/** Someone at a terminal: types, and reads what appears. */
class Person {
  readonly peer: Peer
  readonly run: number
  seen = ''

  constructor(peer: Peer, run: number) {
    this.peer = peer
    this.run = run
  }

  type(text: string): void {
    this.peer.send({ type: TYPE.STDIN, run: this.run, payload: Buffer.from(text) })
  }

  /** Reads until this appears, and forgets what came before its end. */
  async read(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const found = pattern.exec(this.seen)
      if (found) {
        this.seen = this.seen.slice(found.index + found[0].length)
        return found
      }
      const { payload } = await this.peer.take((frame) => frame.type === TYPE.OUTPUT && frame.run === this.run && frame.stream === 1)
      if (payload.length === 0) throw new Error(`it ended without ${pattern.source}: ${JSON.stringify(this.seen)}`)
      this.peer.send({ type: TYPE.CREDIT, run: this.run, stream: 1, payload: u32(payload.length) })
      this.seen += payload.toString()
    }
  }

  /** What a command prints, in a shell whose echo is off. */
  async ask(command: string): Promise<string> {
    this.type(`${command}; echo "<$?>"\n`)
    return (await this.read(/([\s\S]*?)<(\d+)>\r\n/))[1] ?? ''
  }
}

async function sit(peer: Peer, run: number, start = interactive()): Promise<Person> {
  peer.start(run, start)
  await peer.takeType(TYPE.STARTED, run)
  const person = new Person(peer, run)
  person.type('stty -echo; PS1=; PS2=; echo rea""dy\n')
  await person.read(/ready\r\n/)
  return person
}

test('a program at a terminal has it as its stdio and as its own, in the size that was asked for', async () => {
  await using peer = new Peer()
  const { stdout } = await peer.run(1, shell('test -t 0 -a -t 1 -a -t 2 && tty && stty size && ps -o tpgid=,pgid=,sess= -p $$ | xargs; echo to >/dev/tty'))
  expect(stdout.toString()).toMatch(/^\/dev\/pts\/\d+\r\n24 80\r\n(\d+) \1 \1\r\nto\r\n$/)
})

test('all that it prints is stdout, and stderr ends at once', async () => {
  await using peer = new Peer()
  peer.start(1, shell('echo out; echo err >&2; exit 3'))
  await peer.takeType(TYPE.STARTED, 1)
  const first = await peer.take((frame) => frame.run === 1)
  expect([first.type, first.stream, first.payload.length]).toEqual([TYPE.OUTPUT, 2, 0])
  const { stdout, stderr, ending } = await peer.collect(1)
  expect([stdout.toString(), stderr.length, ending.kind, ending.code]).toEqual(['out\r\nerr\r\n', 0, 0, 3])
})

test('a control character interrupts what is in the foreground, and the shell goes on', async () => {
  await using peer = new Peer()
  const person = await sit(peer, 1)
  person.type(`${inFront}\n`)
  await person.read(/in front 0\r\n/)
  person.type('\x03')
  expect(await person.ask('echo $?')).toMatch(/130/)
})

test('a job is stopped, listed, put in the background and brought back', async () => {
  await using peer = new Peer()
  const person = await sit(peer, 1)
  person.type(`${inFront}\n`)
  await person.read(/in front 0\r\n/)
  person.type('\x1a')
  await person.read(/Stopped/)
  expect(await person.ask('jobs')).toMatch(/\[1\]\+\s+Stopped\s+\S*python3/)
  expect(await person.ask('bg; jobs')).toMatch(/Running\s+\S*python3/)
  person.type('fg\n')
  await person.read(/in front 1\r\n/)
  person.type('\x03')
  expect(await person.ask('jobs; echo none left')).toMatch(/^[^[]*none left\r\n$/)
})

test('a new size is seen by the program, which is told by a signal', async () => {
  await using peer = new Peer()
  peer.start(1, shell('trap "stty size; exit" WINCH; echo ready; while :; do sleep 0.05; done'))
  const person = new Person(peer, 1)
  await person.read(/ready\r\n/)
  peer.send({ type: TYPE.RESIZE, run: 1, payload: sizeOf({ rows: 50, cols: 4096 }) })
  await person.read(/50 4096\r\n/)
  await peer.takeType(TYPE.EXITED, 1)
  peer.send({ type: TYPE.RESIZE, run: 1, payload: sizeOf(size) })
  expect((await peer.run(2, { argv: ['echo', 'on'] })).stdout.toString()).toBe('on\n')
})

test.each([
  ['whole lines', 'one\ntwo\n', 'one\ntwo\n'],
  ['half a line', 'one\ntwo', 'one\ntwo'],
  ['nothing', '', ''],
])('the end of input after %s ends a program that reads', async (_, typed, read) => {
  await using peer = new Peer()
  peer.start(1, shell('stty -echo; echo ready; cat | tr "\\n" "|"'))
  const person = new Person(peer, 1)
  await person.read(/ready\r\n/)
  if (typed) person.type(typed)
  peer.send({ type: TYPE.STDIN, run: 1 })
  peer.send({ type: TYPE.STDIN, run: 1, payload: Buffer.from('dropped') })
  expect((await peer.collect(1)).stdout.toString()).toBe(read.replaceAll('\n', '|'))
})

test('what a program prints last is whole, however slowly it is read', async () => {
  await using peer = new Peer()
  peer.start(1, shell('stty -onlcr; seq 1 200000'))
  await pause(300)
  const { stdout, ending } = await peer.collect(1)
  expect(ending.code).toBe(0)
  expect(stdout.toString()).toBe(Array.from({ length: 200_000 }, (_, index) => `${index + 1}\n`).join(''))
})

test('a flood stops at the window until there is credit', async () => {
  await using peer = new Peer()
  const total = () => peer.frames.filter((frame) => frame.type === TYPE.OUTPUT).reduce((sum, frame) => sum + frame.payload.length, 0)
  peer.start(1, { argv: ['yes'], terminal: size })
  while (total() < WINDOW) await pause(5)
  await pause(100)
  expect(total()).toBe(WINDOW)
  peer.send({ type: TYPE.CREDIT, run: 1, stream: 1, payload: u32(1000) })
  while (total() < WINDOW + 1000) await pause(5)
  await pause(50)
  expect(total()).toBe(WINDOW + 1000)
})

test('input that is not read is held, and its credit kept, until it is', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'warden-terminal-'))
  await using peer = new Peer()
  peer.start(1, shell(`stty raw -echo; echo ready; until [ -e ${folder}/go ]; do sleep 0.02; done; head -c ${WINDOW} | sha256sum`))
  const person = new Person(peer, 1)
  await person.read(/ready\n/)
  for (let sent = 0; sent < WINDOW; sent += 65536) peer.send({ type: TYPE.STDIN, run: 1, payload: Buffer.alloc(65536, 'x') })
  await pause(100)
  const given = peer.frames.filter((frame) => frame.type === TYPE.CREDIT).reduce((sum, frame) => sum + frame.payload.readUInt32LE(0), 0)
  expect(given).toBeLessThanOrEqual(65536)
  writeFileSync(join(folder, 'go'), '')
  await person.read(new RegExp(createHash('sha256').update(Buffer.alloc(WINDOW, 'x')).digest('hex')))
  rmSync(folder, { recursive: true })
})

test('the run ends with its program, though others hold the terminal, and those are hung up', async () => {
  await using peer = new Peer()
  peer.start(1, shell('sleep 60 & (trap "" HUP; while echo flood; do :; done) & echo left; exit 4'))
  const { stdout, ending } = await peer.collect(1)
  expect([ending.kind, ending.code]).toEqual([0, 4])
  expect(stdout.toString()).toMatch(/left\r\n/)
  while (descendantsOf(peer.child.pid as number).some((row) => row.state !== 'Z')) await pause(10)
})

test('what a program leaves behind holds no terminal that it let go of itself', async () => {
  await using peer = new Peer()
  const { ending } = await peer.run(1, shell('trap "" HUP; setsid sleep 60 < /dev/null > /dev/null 2>&1 & exit 3'))
  expect(ending.code).toBe(3)
  const held = (): string[] => descendantsOf(peer.child.pid as number).flatMap(({ pid }) => terminalsOf(pid))
  expect(descendantsOf(peer.child.pid as number).length).toBeGreaterThanOrEqual(2)
  await expect.poll(held).toEqual([])
})

function terminalsOf(pid: number): string[] {
  try {
    const links = readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`))
    return links.filter((path) => path.startsWith('/dev/pts/'))
  } catch {
    return []
  }
}

test('a program that lets go of its terminal can open it again', async () => {
  await using peer = new Peer()
  const { stdout } = await peer.run(1, shell('exec <&- >&- 2>&-; sleep 0.2; exec >/dev/tty; echo back'))
  expect(stdout.toString()).toBe('back\r\n')
})

test('a killed run takes all at its terminal with it', async () => {
  await using peer = new Peer()
  const person = await sit(peer, 1)
  await person.ask('trap "" HUP TERM INT; (setsid sleep 60 &) ; sleep 60 & true')
  peer.send({ type: TYPE.KILL, run: 1 })
  await peer.takeType(TYPE.GONE, 1)
  expect(endingOf(await peer.takeType(TYPE.EXITED, 1))).toMatchObject({ kind: 1, code: 9 })
  expect(descendantsOf(peer.child.pid as number)).toEqual([])
})

test('terminals come back when their runs are over, and the descriptors with them', async () => {
  await using peer = new Peer()
  const descriptors = () => readdirSync(`/proc/${peer.child.pid}/fd`).length
  await peer.run(1, shell('true'))
  while (descendantsOf(peer.child.pid as number).length > 0) await pause(10)
  const before = descriptors()
  for (let run = 2; run < 100; run += 1) await peer.run(run, shell('true'))
  // The last keeper may still be on its way.
  while (descriptors() > before) await pause(10)
})

test('a program that cannot be started at a terminal leaves none behind', async () => {
  await using peer = new Peer()
  peer.start(1, { argv: ['/nowhere'], terminal: size })
  expect(failureOf(await peer.takeType(TYPE.FAILED, 1))).toMatchObject({ stage: 2, errno: 2 })
  peer.start(2, { argv: ['true'], terminal: size, cwd: '/nowhere' })
  expect(failureOf(await peer.takeType(TYPE.FAILED, 2))).toMatchObject({ stage: 1, errno: 2 })
})

const openAll = async (peer: Peer, ids: Partial<Start>): Promise<void> => {
  for (let run = 1; run <= 64; run += 1) peer.start(run, { argv: ['sleep', '60'], terminal: size, ...ids })
  for (let run = 1; run <= 64; run += 1) await peer.takeType(TYPE.STARTED, run)
  peer.start(65, { argv: ['sleep', '60'], terminal: size, ...ids })
  expect(failureOf(await peer.takeType(TYPE.FAILED, 65))).toEqual({ stage: 3, errno: ENOSPC, text: 'make one more terminal' })
  peer.send({ type: TYPE.KILL, run: 64 })
  await peer.takeType(TYPE.EXITED, 64)
  expect((await peer.run(66, { argv: ['tty'], terminal: size, ...ids })).stdout.toString()).toMatch(/^\/dev\/pts\/\d+\r\n$/)
}

test('sixty-four are open at once, and one more is refused by name', async () => {
  await using peer = new Peer()
  await openAll(peer, {})
})

const cells: readonly (readonly [name: string, able: boolean, open: () => Promise<AsyncDisposable & { peer: Peer }>])[] = [
  ['one id', hasBwrap, () => Promise.resolve(singleIdCell()).then((peer) => ({ peer, [Symbol.asyncDispose]: () => peer[Symbol.asyncDispose]() }))],
  ['ids of its own', hasBwrap && isRoot, () => ManyIdCell.open()],
]

describe.each(cells)('in a cell with %s', (_name, able, open) => {
  const ids = { uid: 1000, gid: 1000, cwd: '/workspace' }
  const inCell = (promise: string, run: (peer: Peer) => Promise<void>) =>
    testUnless(!able && 'needs bwrap, and root for ids of its own')(promise, async () => {
      await using cell = await open()
      await run(cell.peer)
    })

  inCell('a terminal is the cell’s own and belongs to the guest, who can open it by its name', async (peer) => {
    const { stdout } = await peer.run(1, shell('tty; stat -c "%u %g %a" $(tty); echo by name >$(tty); ls /dev/pts; stty size', ids))
    expect(stdout.toString()).toBe('/dev/pts/0\r\n1000 1000 620\r\nby name\r\n0  ptmx\r\n24 80\r\n')
  })

  inCell('job control works', async (peer) => {
    const person = await sit(peer, 1, interactive(ids))
    person.type(`${inFront}\n`)
    await person.read(/in front 0\r\n/)
    person.type('\x1a')
    await person.read(/Stopped/)
    person.type('fg\n')
    await person.read(/in front 1\r\n/)
    person.type('\x03')
    expect(await person.ask('jobs; id -u')).toMatch(/1000\r\n$/)
  })

  inCell('sixty-four are open at once, and one more is refused by name', (peer) => openAll(peer, ids))
})
