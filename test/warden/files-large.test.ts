import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { encodeRequest, frameHeaderBytes, parseReplyHeader, text, u64 } from '../../src/channel/file-worker-frames.js'
import { gather, openBench } from './file-worker.js'
import { filterOf, Peer, TYPE } from './frames.js'

const EPERM = 0x00050001
const calls = process.arch === 'arm64' ? { splice: 76, pipe2: 59 } : { splice: 275, pipe2: 293 }

it('a large file arrives whole, from any place on and in any length', async () => {
  await using bench = openBench()
  const content = randomBytes(3 * 2 ** 20 + 12_345)
  writeFileSync(`${bench.folder}/large`, content)
  for (const offset of [0, 1, 4095, 5000, 2 ** 20 + 17, content.length - 262_144, content.length - 262_143, content.length, content.length + 1])
    for (const length of [undefined, 262_143, 262_144, 300_001, content.length]) {
      const opened = await bench.worker.read(bench.path('large'), { offset, ...(length === undefined ? {} : { length }) })
      const expected = content.subarray(offset, offset + (length ?? content.length))
      expect([offset, length, (await gather(opened.bytes)).equals(expected)]).toEqual([offset, length, true])
    }
  expect(bench.worker.isIdle).toBe(true)
})

it('a large file is moved on its way and not copied by the worker', async () => {
  await using bench = openBench()
  const size = 32 * 2 ** 20
  writeFileSync(`${bench.folder}/large`, Buffer.alloc(size, 7))
  const copied = () => Number(/^wchar: (\d+)$/m.exec(readFileSync(`/proc/${bench.child.pid}/io`, 'utf8'))?.[1])
  const before = copied()
  const opened = await bench.worker.read(bench.path('large'))
  expect((await gather(opened.bytes)).length).toBe(size)
  expect(copied() - before).toBeLessThan(size / 100)
})

it('a large file that shrinks, or grows, while it is read is told as far as it was there', async () => {
  await using bench = openBench()
  const size = 16 * 2 ** 20
  for (const [then, least, most] of [
    [100, 1, size - 1],
    [size * 2, size * 2, size * 2],
  ] as const) {
    writeFileSync(`${bench.folder}/large`, Buffer.alloc(size, 7))
    const opened = await bench.worker.read(bench.path('large'))
    truncateSync(`${bench.folder}/large`, then)
    const { length } = await gather(opened.bytes)
    expect([length >= least, length <= most, bench.worker.isIdle]).toEqual([true, true, true])
  }
})

it.each(Object.entries(calls))('a large file arrives all the same where %s is refused', async (_name, number) => {
  const folder = mkdtempSync(join(tmpdir(), 'files-large-'))
  try {
    const content = randomBytes(1_500_001)
    writeFileSync(join(folder, 'large'), content)
    await using peer = new Peer()
    peer.send({ type: TYPE.CONFIGURE, payload: filterOf([[number, EPERM]]) })
    peer.start(1, { argv: ['files'], worker: true })
    const request = encodeRequest('read', [u64(0n), u64(0xffffffffffffffffn), text(Buffer.from(join(folder, 'large')))])
    peer.send({ type: TYPE.STDIN, run: 1, payload: Buffer.from(request) })
    peer.send({ type: TYPE.STDIN, run: 1 })
    const { stdout, ending } = await peer.collect(1)
    expect(ending).toMatchObject({ kind: 0, code: 0 })
    expect(contentOf(stdout).equals(content)).toBe(true)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

function contentOf(replies: Buffer): Buffer {
  const pieces: Buffer[] = []
  for (let at = 0; at < replies.length; ) {
    const { name, length } = parseReplyHeader(replies.subarray(at, at + frameHeaderBytes))
    at += frameHeaderBytes
    if (name === 'data') pieces.push(replies.subarray(at, at + length))
    at += length
  }
  return Buffer.concat(pieces)
}
