import { describe, expect, it } from 'vitest'
import { encodeNumberFrame, windowBytes } from '../../src/channel/frames.js'
import { OutputQueue } from '../../src/channel/output-queue.js'
import { running, type ScriptedWarden, settle } from './scripted-warden.js'

function credit(peer: ScriptedWarden, bytes: number): void {
  peer.sendRaw(encodeNumberFrame('credit', { run: 1 }, bytes))
}

function fedBytes(peer: ScriptedWarden): Buffer {
  return Buffer.concat(peer.heard('stdin').map(({ payload }) => payload))
}

describe('output credit', () => {
  it('is given back only when the reader takes what came, in halves of a window', async () => {
    const { peer, process } = await running()
    peer.output(1, Buffer.alloc(windowBytes))
    await settle()
    expect(peer.heard('credit')).toEqual([])
    const iterator = process.output[Symbol.asyncIterator]()
    let taken = 0
    while (taken < windowBytes / 2) taken += (await iterator.next()).value?.bytes.length ?? 0
    const { stream, run, payload } = await peer.hear('credit')
    expect([stream, run, payload.readUInt32LE()]).toEqual([1, 1, taken])
    await settle()
    expect(peer.heard('credit')).toEqual([])
  })

  it('is counted for each stream alone', async () => {
    const { peer, process } = await running()
    peer.output(1, Buffer.alloc(windowBytes / 3))
    peer.output(1, Buffer.alloc(windowBytes / 3), 2)
    peer.output(1, Buffer.alloc(windowBytes / 3), 2)
    process.discardOutput()
    expect((await peer.hear('credit')).stream).toBe(2)
    await settle()
    expect(peer.heard('credit')).toEqual([])
  })

  it('is given back for discarded output', async () => {
    const { peer, process } = await running()
    process.discardOutput()
    for (let round = 0; round < 8; round += 1) {
      peer.output(1, Buffer.alloc(windowBytes / 2))
      expect((await peer.hear('credit')).payload.readUInt32LE()).toBe(windowBytes / 2)
    }
  })

  it('is not given to a warden that does not read: what it is owed cannot pile up', async () => {
    const { peer, warden, process } = await running()
    peer.stopReading()
    void process.write(Buffer.alloc(windowBytes))
    await settle()
    process.discardOutput()
    peer.output(1, Buffer.alloc(windowBytes))
    await settle()
    peer.output(1, Buffer.alloc(1))
    expect((await warden.ended)?.message).toMatch(/credit for 0/)
  })

  it('is held back while the warden does not read, and comes as one when it does', async () => {
    const { peer, process } = await running()
    peer.stopReading()
    const writing = process.write(Buffer.alloc(windowBytes))
    process.discardOutput()
    peer.output(1, Buffer.alloc(windowBytes))
    await settle()
    peer.resumeReading()
    await writing
    expect((await peer.hear('credit')).payload.readUInt32LE()).toBeGreaterThanOrEqual(windowBytes / 2)
    await settle()
    expect(peer.heard('credit').length).toBeLessThanOrEqual(1)
  })
})

describe('input', () => {
  it('is sent within the credit and goes on as it is given back, byte-exact and in frames of at most 64 KiB', async () => {
    const { peer, process } = await running()
    const bytes = Buffer.from({ length: windowBytes * 2 + 5 } as ArrayLike<number>).map((_, index) => (index * 31) & 255)
    const writing = process.write(bytes).then(() => process.endInput())
    await settle()
    expect(fedBytes(peer).length).toBe(windowBytes)
    credit(peer, 1000)
    await settle()
    expect(fedBytes(peer).length, 'crumbs of credit are saved up').toBe(windowBytes)
    credit(peer, windowBytes - 1000)
    await settle()
    expect(fedBytes(peer).length).toBe(windowBytes * 2)
    credit(peer, 5)
    await writing
    const frames = peer.heard('stdin')
    expect(Math.max(...frames.map(({ payload }) => payload.length))).toBe(65_536)
    expect(frames.at(-1)?.payload.length, 'the end of input is an empty frame').toBe(0)
    expect(frames.filter(({ payload }) => payload.length === 0)).toHaveLength(1)
    expect(fedBytes(peer).equals(bytes)).toBe(true)
  })

  it('keeps the order of writes that were not awaited', async () => {
    const { peer, process } = await running()
    await Promise.all([process.write(Buffer.from('one ')), process.write(Buffer.alloc(0)), process.write(Buffer.alloc(3000, 'x')), process.endInput()])
    expect(fedBytes(peer).toString()).toBe(`one ${'x'.repeat(3000)}`)
    expect(peer.heard('stdin').map(({ payload }) => payload.length)).toEqual([4, 3000, 0])
  })

  it('waits while the channel is full', async () => {
    const { peer, process } = await running()
    peer.stopReading()
    let isDone = false
    const writing = process.write(Buffer.alloc(windowBytes)).then(() => {
      isDone = true
    })
    await settle()
    expect(isDone).toBe(false)
    peer.resumeReading()
    await writing
  })

  it('of a program that ended is dropped and said to be, also when it waits for credit', async () => {
    const { peer, process } = await running()
    const writing = process.write(Buffer.alloc(windowBytes * 2))
    await settle()
    peer.endOutput(1)
    peer.exited(1)
    expect(await writing).toBe(false)
    await process.exited
    expect(await process.write(Buffer.alloc(10))).toBe(false)
    await process.endInput()
    expect(fedBytes(peer).length).toBe(windowBytes)
  })

  it('after its end, or of a run without input, is refused; ending it again is quiet', async () => {
    const fed = await running()
    await fed.process.endInput()
    await fed.process.endInput()
    await expect(fed.process.write(Buffer.from('x'))).rejects.toMatchObject({ code: 'conflict' })
    const unfed = await running({ stdin: false })
    await unfed.process.endInput()
    await expect(unfed.process.write(Buffer.from('x'))).rejects.toMatchObject({ code: 'conflict' })
    await settle()
    expect([fed.peer.heard('stdin').length, unfed.peer.heard('stdin').length]).toEqual([1, 0])
  })
})

describe('waiting output', () => {
  it('in crumbs takes the memory of its bytes, not of its pieces', async () => {
    const queue = new OutputQueue(() => {})
    const chunk = Buffer.alloc(65_536, 'a')
    const crumbs = 200_000
    for (let index = 0; index < crumbs; index += 1) queue.push(index % 2 === 0 ? 'stdout' : 'stderr', chunk.subarray(index % 100, (index % 100) + 1))
    queue.end()
    let segments = 0
    let held = 0
    const counts = { stdout: 0, stderr: 0 }
    for await (const { type, bytes } of queue) {
      segments += 1
      held += bytes.buffer.byteLength
      counts[type] += bytes.length
    }
    expect(counts).toEqual({ stdout: crumbs / 2, stderr: crumbs / 2 })
    expect(segments).toBeLessThan(100)
    expect(held).toBeLessThan(crumbs * 3)
  })

  it('in crumbs of their own is joined all the same', async () => {
    const queue = new OutputQueue(() => {})
    for (let index = 0; index < 10_000; index += 1) queue.push(index % 2 === 0 ? 'stdout' : 'stderr', new Uint8Array(8))
    queue.end()
    let segments = 0
    for await (const _ of queue) segments += 1
    expect(segments).toBeLessThan(100)
  })

  it('of one stream keeps its order, whatever is joined', async () => {
    const queue = new OutputQueue(() => {})
    const sent = { stdout: [] as Buffer[], stderr: [] as Buffer[] }
    for (let index = 0; index < 3000; index += 1) {
      const type = index % 3 === 0 ? 'stderr' : 'stdout'
      const bytes = index % 500 === 0 ? Buffer.alloc(5000, index % 251) : Buffer.from(`${index};`)
      sent[type].push(bytes)
      queue.push(type, bytes)
    }
    queue.end()
    const got = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] }
    for await (const { type, bytes } of queue) got[type].push(bytes)
    expect(Buffer.concat(got.stdout).equals(Buffer.concat(sent.stdout))).toBe(true)
    expect(Buffer.concat(got.stderr).equals(Buffer.concat(sent.stderr))).toBe(true)
  })

  it('that is small does not hold on to the large buffer it came in', async () => {
    const queue = new OutputQueue(() => {})
    const waiting = queue.next()
    const chunk = Buffer.alloc(65_536)
    queue.push('stdout', chunk.subarray(0, 10))
    queue.push('stdout', chunk.subarray(10, 20))
    queue.push('stdout', chunk.subarray(20))
    const held = [await waiting, await queue.next(), await queue.next()].map(({ value }) => value?.bytes.buffer.byteLength)
    expect(held).toEqual([10, 10, 65_536])
  })
})
