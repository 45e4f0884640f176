import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, unlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { encodeEnd, encodeRequest, replyTypes, text, u32 as field } from '../../src/channel/file-worker-frames.js'
import { FileFailure } from '../../src/channel/file-worker-replies.js'
import { openBench } from './file-worker.js'
import { filterOf, Peer, TYPE, u32, WARDEN, WINDOW } from './frames.js'

const isRoot = process.getuid?.() === 0
const EPERM = 0x00050001
const calls = process.arch === 'arm64' ? { splice: 76, pipe2: 59 } : { splice: 275, pipe2: 293 }
const RLIMIT_FSIZE = 1
const [EFBIG, ENOSPC] = [27, 28]

async function* cut(content: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < content.length; at += size) yield await Promise.resolve(content.subarray(at, at + size))
}

const sizes = [0, 1, 32_767, 32_768, 32_769, 65_535, 65_536, 65_537, 262_131, 262_132, 262_144, 2 ** 20 - 1, 2 ** 20, 2 ** 20 + 1, 3 * 2 ** 20 + 12_345]

describe('much content', () => {
  it.each(['in place', 'atomic', 'append', 'exclusive', 'atomic append'])('is written whole in every size and cut anywhere, %s', async (how) => {
    await using bench = openBench()
    const options = { atomic: how.includes('atomic'), append: how.includes('append'), exclusive: how === 'exclusive' }
    for (const size of sizes)
      for (const piece of [2 ** 21, 65_536, 100_003]) {
        const [content, name, old] = [randomBytes(size), `${size}-${piece}`, how === 'exclusive' ? '' : 'old']
        if (old) writeFileSync(`${bench.folder}/${name}`, old)
        const { size: told } = await bench.worker.write(bench.path(name), cut(content, piece), options)
        const expected = options.append ? Buffer.concat([Buffer.from(old), content]) : content
        expect([size, piece, told, readFileSync(`${bench.folder}/${name}`).equals(expected)]).toEqual([size, piece, expected.length, true])
      }
    expect(bench.worker.isIdle).toBe(true)
  })

  it('is written whole where large and small pieces alternate, down to single bytes', async () => {
    await using bench = openBench()
    const parts = Array.from({ length: 200 }, (_, index) => randomBytes([1, 400_000, 3, 40_000, 8, 32_768][index % 6] ?? 1))
    const pieces = async function* (): AsyncGenerator<Uint8Array> {
      for (const part of parts) yield* cut(part, part.length)
    }
    await bench.worker.write(bench.path('file'), pieces())
    expect(readFileSync(`${bench.folder}/file`).equals(Buffer.concat(parts))).toBe(true)
    const content = randomBytes(5000)
    await bench.worker.write(bench.path('bytes'), cut(content, 1))
    expect(readFileSync(`${bench.folder}/bytes`).equals(content)).toBe(true)
  })

  it('is moved into its file and not copied by the worker', async () => {
    await using bench = openBench()
    const size = 32 * 2 ** 20
    const copied = () => Number(/^rchar: (\d+)$/m.exec(readFileSync(`/proc/${bench.child.pid}/io`, 'utf8'))?.[1])
    const before = copied()
    await bench.worker.write(bench.path('large'), cut(Buffer.alloc(size, 7), 2 ** 20))
    expect(statSync(`${bench.folder}/large`).size).toBe(size)
    // At the beginning it cannot know that there will be much.
    expect(copied() - before).toBeLessThan(size / 50)
  })

  it('that is cut off leaves no part of it where it was to be atomic, and ends the worker in order', async () => {
    await using bench = openBench()
    const request = encodeRequest('write', [field(2), field(2 ** 32 - 1), text(bench.path('file'))])
    await bench.run.write(request)
    await bench.run.write(Buffer.concat([u32(2 ** 20, 0x40), Buffer.alloc(700_000)]))
    await bench.run.endInput()
    expect(await bench.run.exited).toEqual({ code: 0, signal: null })
    expect(readdirSync(bench.folder)).toEqual([])
  })

  it('goes to the file that was opened, whatever its name is by then and whoever cuts it', async () => {
    await using bench = openBench()
    const large = Buffer.alloc(2 ** 20, 7)
    const disturbed = async function* (): AsyncGenerator<Uint8Array> {
      yield* cut(Buffer.concat([large, large, large, large]), large.length)
      truncateSync(`${bench.folder}/file`, 10)
      yield* cut(large, large.length)
      unlinkSync(`${bench.folder}/file`)
      expect(spawnSync('mkfifo', [`${bench.folder}/file`]).status).toBe(0)
      yield* cut(large, large.length)
    }
    const entry = await bench.worker.write(bench.path('file'), disturbed())
    expect([entry.type, statSync(`${bench.folder}/file`).isFIFO(), bench.worker.isIdle]).toEqual(['fifo', true, true])
  })

  it.runIf(isRoot)('beyond the disk is told as full amid it, once, and the worker goes on', async () => {
    await using bench = openBench()
    mkdirSync(`${bench.folder}/disk`)
    expect(spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=3m', 'none', `${bench.folder}/disk`]).status).toBe(0)
    try {
      for (const atomic of [false, true]) {
        const failure = await bench.worker.write(bench.path('disk/f'), cut(Buffer.alloc(8 * 2 ** 20), 2 ** 20), { atomic }).catch((error: unknown) => error)
        expect(failure).toBeInstanceOf(FileFailure)
        expect(failure).toMatchObject({ errno: ENOSPC })
        rmSync(`${bench.folder}/disk/f`, { force: true })
      }
      expect(readdirSync(`${bench.folder}/disk`)).toEqual([])
      const content = randomBytes(2 * 2 ** 20)
      await bench.worker.write(bench.path('disk/g'), cut(content, 2 ** 20))
      expect(readFileSync(`${bench.folder}/disk/g`).equals(content)).toBe(true)
    } finally {
      spawnSync('umount', [`${bench.folder}/disk`])
    }
  })
})

/** Everything that is sent to a worker for one WRITE. */
function writeRequest(path: string, content: Buffer, most = 2 ** 20): Buffer {
  const frames: Buffer[] = [Buffer.from(encodeRequest('write', [field(0), field(2 ** 32 - 1), text(Buffer.from(path))]))]
  for (let at = 0; at < content.length; at += most) {
    const piece = content.subarray(at, at + most)
    frames.push(u32(piece.length, 0x40), piece)
  }
  return Buffer.concat([...frames, Buffer.from(encodeEnd())])
}

/** Sends it as the engine would, within its credit; every third frame is a small one. */
async function feed(peer: Peer, run: number, bytes: Buffer): Promise<void> {
  let credit = WINDOW
  for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
    const piece = bytes.subarray(at, at + (turn % 3 === 1 ? 8 : 262_144))
    while (credit < piece.length) credit += (await peer.takeType(TYPE.CREDIT, run)).payload.readUInt32LE(0)
    credit -= piece.length
    at += piece.length
    peer.send({ type: TYPE.STDIN, run, payload: piece })
  }
}

function inFolder(act: (folder: string) => Promise<void>): () => Promise<void> {
  return async () => {
    const folder = mkdtempSync(join(tmpdir(), 'files-bulk-'))
    try {
      await act(folder)
    } finally {
      rmSync(folder, { recursive: true })
    }
  }
}

/** What follows it on the command line, where a call is refused to it and to all that it starts. */
const refusing = `import ctypes, os, struct, sys
libc = ctypes.CDLL(None)
program = bytes.fromhex(sys.argv[1])
buffer = ctypes.create_string_buffer(program)
prog = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(buffer)))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, prog, 0, 0) == 0
os.execv(sys.argv[2], sys.argv[2:])`

describe('over the channel much content', () => {
  const content = randomBytes(9 * 2 ** 20 + 4321)

  it.each(Object.entries(calls))('arrives all the same where %s is refused to the worker', (_name, number) =>
    inFolder(async (folder) => {
      await using peer = new Peer()
      peer.send({ type: TYPE.CONFIGURE, payload: filterOf([[number, EPERM]]) })
      peer.start(1, { argv: ['files'], worker: true })
      await feed(peer, 1, writeRequest(join(folder, 'large'), content))
      peer.send({ type: TYPE.STDIN, run: 1 })
      expect((await peer.collect(1)).ending).toMatchObject({ kind: 0, code: 0 })
      expect(readFileSync(join(folder, 'large')).equals(content)).toBe(true)
    })(),
  )

  it(
    'arrives all the same where the warden itself may not splice',
    inFolder(async (folder) => {
      const filter = filterOf([[calls.splice, EPERM]]).toString('hex')
      await using peer = new Peer(['/usr/bin/python3', '-c', refusing, filter, WARDEN, '--subreaper'])
      peer.start(1, { argv: ['files'], worker: true })
      await feed(peer, 1, writeRequest(join(folder, 'large'), content))
      peer.send({ type: TYPE.STDIN, run: 1 })
      expect((await peer.collect(1)).ending).toMatchObject({ kind: 0, code: 0 })
      expect(readFileSync(join(folder, 'large')).equals(content)).toBe(true)
    }),
  )

  it(
    'of several workers at once arrives whole for each, in frames of every size',
    inFolder(async (folder) => {
      await using peer = new Peer()
      const runs = [1, 2, 3, 4]
      for (const run of runs) peer.start(run, { argv: ['files'], worker: true })
      await Promise.all(
        runs.map((run) => feed(peer, run, writeRequest(join(folder, `${run}`), content.subarray(run), [2 ** 20, 65_536, 40_000, 5000][run - 1]))),
      )
      for (const run of runs) peer.send({ type: TYPE.STDIN, run })
      for (const run of runs) expect((await peer.collect(run)).ending).toMatchObject({ kind: 0, code: 0 })
      for (const run of runs) expect([run, readFileSync(join(folder, `${run}`)).equals(content.subarray(run))]).toEqual([run, true])
    }),
  )

  it(
    'for a worker that stands still holds up nobody, and arrives when it goes on',
    inFolder(async (folder) => {
      await using peer = new Peer()
      peer.start(1, { argv: ['files'], worker: true })
      const pid = (await peer.takeType(TYPE.STARTED, 1)).payload.readUInt32LE(0)
      process.kill(pid, 'SIGSTOP')
      const bytes = writeRequest(join(folder, 'large'), content)
      const fed = feed(peer, 1, bytes)
      const begun = performance.now()
      for (let run = 2; run < 7; run += 1) expect((await peer.run(run, { argv: ['echo', 'here'] })).stdout.toString()).toBe('here\n')
      expect(performance.now() - begun).toBeLessThan(2000)
      process.kill(pid, 'SIGCONT')
      await fed
      peer.send({ type: TYPE.STDIN, run: 1 })
      expect((await peer.collect(1)).ending).toMatchObject({ kind: 0, code: 0 })
      expect(readFileSync(join(folder, 'large')).equals(content)).toBe(true)
    }),
  )

  it(
    'for a worker that is killed amid a frame is dropped, and the next frames are understood',
    inFolder(async (folder) => {
      await using peer = new Peer()
      for (let run = 1; run < 30; run += 2) {
        peer.start(run, { argv: ['files'], worker: true })
        const pid = (await peer.takeType(TYPE.STARTED, run)).payload.readUInt32LE(0)
        const bytes = writeRequest(join(folder, `${run}`), content)
        for (let at = 0; at < 4 * 262_144; at += 262_144) peer.send({ type: TYPE.STDIN, run, payload: bytes.subarray(at, at + 262_144) })
        process.kill(pid, 'SIGKILL')
        peer.send({ type: TYPE.KILL, run })
        await peer.takeType(TYPE.GONE, run)
        expect((await peer.run(run + 1, { argv: ['echo', 'here'] })).stdout.toString()).toBe('here\n')
      }
    }),
  )

  it(
    'beyond the size that a file may have is told amid it',
    inFolder(async (folder) => {
      await using peer = new Peer()
      peer.start(1, { argv: ['files'], worker: true, rlimits: [[RLIMIT_FSIZE, 5_000_000n, 5_000_000n]] })
      await feed(peer, 1, writeRequest(join(folder, 'large'), content))
      await feed(peer, 1, writeRequest(join(folder, 'small'), content.subarray(0, 100_000)))
      peer.send({ type: TYPE.STDIN, run: 1 })
      const { stdout, ending } = await peer.collect(1)
      expect([ending.kind, ending.code, stdout.readUInt32LE(4), stdout.readUInt32LE(8)]).toEqual([0, 0, replyTypes.error, EFBIG])
      expect([statSync(join(folder, 'large')).size, readFileSync(join(folder, 'small')).equals(content.subarray(0, 100_000))]).toEqual([5_000_000, true])
    }),
  )

  it('beyond its credit is malformed', async () => {
    await using peer = new Peer()
    peer.start(1, { argv: ['files'], worker: true })
    const pid = (await peer.takeType(TYPE.STARTED, 1)).payload.readUInt32LE(0)
    process.kill(pid, 'SIGSTOP')
    for (let sent = 0; sent <= 2 * WINDOW; sent += 262_144) peer.send({ type: TYPE.STDIN, run: 1, payload: Buffer.alloc(262_144) })
    expect((await peer.takeType(TYPE.FATAL)).payload.toString()).toBe('input beyond its credit')
  })
})
