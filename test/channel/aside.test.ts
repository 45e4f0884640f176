import { describe, expect, it } from 'vitest'
import { windowBytes } from '../../src/channel/frames.js'
import type { WardenProcess } from '../../src/channel/index.js'
import { SandboxError } from '../../src/contract/errors.js'
import { collect, openWarden } from './native-warden.js'
import { runAlone } from './run-alone.js'
import { running, settle } from './scripted-warden.js'

const broken: unknown = expect.objectContaining({ name: 'SandboxError', code: 'broken' })

function asideOf(process: WardenProcess): AsyncIterable<Uint8Array, undefined> {
  if (!process.aside) throw new Error('there is no aside')
  return process.aside
}

async function readAll(process: WardenProcess): Promise<Buffer> {
  const pieces: Uint8Array[] = []
  for await (const bytes of asideOf(process)) pieces.push(bytes)
  return Buffer.concat(pieces)
}

async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  const settled = promise.then(
    () => true,
    () => true,
  )
  return Promise.race([settled, settle().then(() => false)])
}

describe('the aside of a run', () => {
  it('is asked for, and is not there where nobody asked', async () => {
    expect((await running()).process.aside).toBeUndefined()
    const asked = await running({ aside: true })
    expect(asked.process.aside).toBeDefined()
  })

  it('carries its own bytes, apart from those of stdout and stderr', async () => {
    const { peer, process } = await running({ aside: true })
    peer.output(1, Buffer.from('one'), 1)
    peer.output(1, Buffer.from('three'), 3)
    peer.output(1, Buffer.from('two'), 2)
    peer.endOutput(1)
    peer.send('output', { run: 1, stream: 3 })
    peer.exited(1, 0, 4)
    const [printed, aside] = await Promise.all([collect(process), readAll(process)])
    expect([printed.stdout.toString(), printed.stderr.toString(), aside.toString()]).toEqual(['one', 'two', 'three'])
    expect(await process.exited).toMatchObject({ kind: 'exited', code: 4 })
  })

  it('has a window of its own: what nobody reads of it holds nothing else back, nor the other way round', async () => {
    const { peer, process } = await running({ aside: true })
    peer.output(1, Buffer.alloc(windowBytes), 3)
    for (let round = 0; round < 4; round += 1) peer.output(1, Buffer.alloc(windowBytes / 4), 1)
    const printed = process.output[Symbol.asyncIterator]()
    for (let read = 0; read < windowBytes; ) read += (await printed.next()).value?.bytes.length ?? 0
    await settle()
    expect(peer.heard('credit').map(({ stream }) => stream)).toEqual([1, 1])
    const told = asideOf(process)[Symbol.asyncIterator]()
    for (let read = 0; read < windowBytes; ) read += (await told.next()).value?.length ?? 0
    await settle()
    expect(peer.heard('credit').map(({ stream }) => stream)).toEqual([1, 1, 3, 3])
  })

  it('that brings more than its credit ends the channel', async () => {
    const { peer, warden } = await running({ aside: true })
    peer.output(1, Buffer.alloc(windowBytes), 3)
    peer.output(1, Buffer.alloc(1), 3)
    await expect(warden.ended).resolves.toEqual(broken)
  })

  it.each<[string, (peer: Awaited<ReturnType<typeof running>>['peer']) => void]>([
    [
      'EXITED before the end of the aside',
      (peer) => {
        peer.endOutput(1)
        peer.exited(1)
      },
    ],
    [
      'output after its end',
      (peer) => {
        peer.send('output', { run: 1, stream: 3 })
        peer.output(1, Buffer.from('x'), 3)
      },
    ],
    [
      'its end twice',
      (peer) => {
        peer.send('output', { run: 1, stream: 3 })
        peer.send('output', { run: 1, stream: 3 })
      },
    ],
    ['the end of the channel', (peer) => peer.end()],
  ])('is broken by %s, and who waits for its run is told', async (_, breach) => {
    const { peer, warden, process } = await running({ aside: true })
    breach(peer)
    await expect(warden.ended).resolves.toEqual(broken)
    await expect(process.exited).rejects.toEqual(broken)
  })

  it('has one consumer', async () => {
    const { process } = await running({ aside: true })
    asideOf(process)[Symbol.asyncIterator]()
    expect(() => asideOf(process)[Symbol.asyncIterator]()).toThrow(SandboxError)
  })

  it('keeps the end from being told until it was read, or left', async () => {
    for (const way of ['read', 'leave', 'discard'] as const) {
      const { peer, process } = await running({ aside: true })
      peer.output(1, Buffer.from('held'), 3)
      peer.endOutput(1)
      peer.send('output', { run: 1, stream: 3 })
      peer.exited(1)
      await collect(process)
      expect(await isSettled(process.exited)).toBe(false)
      if (way === 'read') expect((await readAll(process)).toString()).toBe('held')
      else if (way === 'discard') process.discardOutput()
      else for await (const _ of asideOf(process)) break
      expect(await process.exited).toMatchObject({ kind: 'exited' })
    }
  })

  it('that is left gives the credit of all that comes back, for the program not to wait', async () => {
    const { peer, process } = await running({ aside: true })
    peer.output(1, Buffer.from('first'), 3)
    for await (const bytes of asideOf(process)) {
      expect(Buffer.from(bytes).toString()).toBe('first')
      break
    }
    peer.output(1, Buffer.alloc(windowBytes / 2), 3)
    expect(await peer.hear('credit')).toMatchObject({ stream: 3, run: 1 })
    expect(await isSettled(process.exited)).toBe(false)
  })

  it('is fed by what is written', async () => {
    const { peer, process } = await running({ aside: true })
    await process.write(Buffer.from('asked'))
    await process.endInput()
    expect((await peer.hear('stdin')).payload.toString()).toBe('asked')
    expect((await peer.hear('stdin')).payload.length).toBe(0)
  })
})

describe('the aside of a program of the real warden', () => {
  it('takes and gives, while stdout flows or is not read at all', async () => {
    await using native = await openWarden()
    const process = await native.start(['sh', '-c', 'yes & cat <&3 >&4; kill $!'], { stdin: true, aside: true })
    const told = asideOf(process)[Symbol.asyncIterator]()
    for (const word of ['one', 'two', 'three']) {
      await process.write(Buffer.from(word))
      expect(Buffer.from((await told.next()).value as Uint8Array).toString()).toBe(word)
    }
    await process.endInput()
    expect(await told.next()).toEqual({ done: true, value: undefined })
    process.discardOutput()
    expect(await process.exited).toMatchObject({ kind: 'exited', code: 0 })
  })

  it('is read slowly without this process growing, while the program prints freely', async () => {
    const { growthBytes, printed } = JSON.parse(await runAlone('aside-flood.ts')) as { growthBytes: number; printed: number }
    expect(printed).toBeGreaterThan(8 * windowBytes)
    expect(growthBytes).toBeLessThan(64 * 2 ** 20)
  })

  it('fails with the cell, and so does its end', async () => {
    const native = await openWarden()
    const process = await native.start(['sleep', '60'], { stdin: true, aside: true })
    const reading = expect(readAll(process)).rejects.toMatchObject({ code: 'closed' })
    await native[Symbol.asyncDispose]()
    await reading
    await expect(process.exited).rejects.toMatchObject({ code: 'closed' })
  })
})
