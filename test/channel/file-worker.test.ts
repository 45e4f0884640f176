import { describe, expect, it } from 'vitest'
import { FileWorker } from '../../src/channel/file-worker.js'
import type { WorkerRun } from '../../src/channel/file-worker-talk.js'
import { SandboxError } from '../../src/contract/errors.js'
import { collect, openWarden } from './native-warden.js'

const u32 = (...values: number[]): Buffer => Buffer.concat(values.map((value) => Buffer.from(Uint32Array.of(value).buffer)))
const u64 = (...values: bigint[]): Buffer => Buffer.concat(values.map((value) => Buffer.from(BigUint64Array.of(value).buffer)))
const str = (text: string | Uint8Array): Buffer => Buffer.concat([u32(Buffer.from(text).length), Buffer.from(text)])
const frame = (type: number, payload: Uint8Array = Buffer.alloc(0)): Buffer => Buffer.concat([u32(payload.length, type), payload])
const done = (count: bigint): Buffer => frame(0x80, u64(count))
const entry = ({ type = 0, mode = 0o644, size = 1n, name = '', target = '', hash = 0 } = {}): Buffer =>
  frame(0x83, Buffer.concat([u32(type, mode, 0, 0), u64(size, 0n, 0n, 0n, 1n, 2n, 0n), Buffer.alloc(32, hash), str(name), str(target)]))

interface Scripted {
  readonly worker: FileWorker
  readonly isKilled: () => boolean
  readonly sent: Buffer[]
}

/** A worker that says this, whatever it is asked. */
function scripted(...replies: readonly Uint8Array[]): Scripted {
  let isKilled = false
  const sent: Buffer[] = []
  const run: WorkerRun = {
    output: (async function* () {
      for (const bytes of replies) yield await Promise.resolve({ type: 'stdout' as const, bytes })
      return undefined
    })(),
    write: (bytes) => {
      sent.push(Buffer.from(bytes))
      return Promise.resolve()
    },
    endInput: () => Promise.resolve(),
    kill: () => {
      isKilled = true
      return Promise.resolve()
    },
    discardOutput: () => undefined,
    ref: () => undefined,
    unref: () => undefined,
    exited: new Promise(() => undefined),
  }
  return { worker: new FileWorker(run), isKilled: () => isKilled, sent }
}

const path = Buffer.from('/f')
const all = async (items: AsyncIterable<unknown>): Promise<unknown[]> => {
  const found: unknown[] = []
  for await (const item of items) found.push(item)
  return found
}
const content = async function* (): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(Buffer.from('content'))
}

describe('a reply that breaks the rules is broken, and the worker is killed', () => {
  const stat = (worker: FileWorker): Promise<unknown> => worker.stat(path)
  const read = async (worker: FileWorker): Promise<unknown> => all((await worker.read(path, { length: 3 })).bytes)
  const list = (worker: FileWorker): Promise<unknown> => all(worker.list(path))
  const process = (state: number, pid = 1): Buffer => frame(0x86, Buffer.concat([u32(pid, 0, 0, state), u64(0n, 0n, 0n), str('x')]))
  const watch = async (worker: FileWorker): Promise<unknown> => (await worker.watch(path)).next()
  it.each<[string, Buffer, (worker: FileWorker) => Promise<unknown>]>([
    ['an unknown type', frame(0x90), stat],
    ['a reserved byte', Buffer.concat([u32(8, 0x180), u64(0n)]), stat],
    ['a payload that is too long', u32(65_537, 0x83), stat],
    ['an entry of unknown type', Buffer.concat([entry({ type: 6 }), done(1n)]), stat],
    ['a mode with other bits', Buffer.concat([entry({ mode: 0o100644 }), done(1n)]), stat],
    ['a size beyond numbers', Buffer.concat([entry({ size: 1n << 60n }), done(1n)]), stat],
    ['a target of a file', Buffer.concat([entry({ target: 'x' }), done(1n)]), stat],
    ['a hash of a folder', Buffer.concat([entry({ type: 1, hash: 7 }), done(1n)]), stat],
    ['two entries', Buffer.concat([entry(), entry(), done(1n)]), stat],
    ['no entry', done(1n), stat],
    ['something after the end', Buffer.concat([entry(), done(1n), done(1n)]), stat],
    ['its end amid a reply', entry().subarray(0, 50), stat],
    ['an entry with bytes behind it', frame(0x83, Buffer.concat([entry().subarray(8), Buffer.alloc(1)])), stat],
    ['an errno of 0', frame(0x81, Buffer.concat([u32(0), str('x')])), stat],
    ['an error without text', frame(0x81, u32(2)), stat],
    ['a data for a stat', frame(0x82, Buffer.from('x')), stat],
    ['more data than was asked for', Buffer.concat([entry(), frame(0x82, Buffer.from('four')), done(4n)]), read],
    ['another count than its data', Buffer.concat([entry(), frame(0x82, Buffer.from('two')), done(2n)]), read],
    ['a name that leads up', Buffer.concat([entry({ name: 'a/../..' }), done(1n)]), list],
    ['a name that is absolute', Buffer.concat([entry({ name: '/etc' }), done(1n)]), list],
    ['a name with a NUL', Buffer.concat([entry({ name: 'a\0b' }), done(1n)]), list],
    ['another count than its entries', Buffer.concat([entry({ name: 'a' }), done(2n)]), list],
    ['an event of unknown kind', Buffer.concat([done(0n), frame(0x84, Buffer.concat([u32(6), str('a'), str('')]))]), watch],
    ['a rename to nowhere', Buffer.concat([done(0n), frame(0x84, Buffer.concat([u32(4), str('a'), str('')]))]), watch],
    ['a state that is no letter', Buffer.concat([process(0x1b), done(1n)]), (worker) => worker.processes()],
    ['pid 0', Buffer.concat([process(0x52, 0), done(1n)]), (worker) => worker.processes()],
    [
      'more matches than were asked for',
      Buffer.concat([frame(0x85, Buffer.concat([u64(1n), u32(1), str('a'), str('x')])), done(0n)]),
      (worker) => worker.search(path, { pattern: path, most: 0 }),
    ],
    ['two for one removal', done(2n), (worker) => worker.remove(path)],
    ['an entry for an archive', Buffer.concat([entry(), done(1n)]), (worker) => worker.unpack(path, content())],
    ['no entry for a write', done(7n), (worker) => worker.write(path, content())],
  ])('%s', async (_, reply, ask) => {
    const { worker, isKilled } = scripted(reply)
    await expect(ask(worker)).rejects.toMatchObject({ name: 'SandboxError', code: 'broken' })
    expect([isKilled(), worker.isIdle]).toEqual([true, false])
    await expect(worker.stat(path)).rejects.toThrow(SandboxError)
  })
})

it('an error is a FileFailure without anything that acts on a terminal, and the worker can be asked again', async () => {
  const { worker, isKilled } = scripted(frame(0x81, Buffer.concat([u32(2), str('stat /\u001b[31m')])), Buffer.concat([entry(), done(1n)]))
  await expect(worker.stat(path)).rejects.toMatchObject({ name: 'FileFailure', errno: 2, text: 'stat /\uFFFD[31m' })
  expect((await worker.stat(path)).size).toBe(1)
  expect(isKilled()).toBe(false)
})

it('replies may arrive in any pieces', async () => {
  const bytes = Buffer.concat([entry(), frame(0x82, Buffer.from('abc')), frame(0x82, Buffer.from('def')), done(6n)])
  const { worker } = scripted(...Array.from(bytes, (_, index) => bytes.subarray(index, index + 1)))
  const opened = await worker.read(path)
  expect(Buffer.concat((await all(opened.bytes)) as Buffer[]).toString()).toBe('abcdef')
  expect(worker.isIdle).toBe(true)
})

it('a worker does one thing at a time, and one that is left amid it is killed', async () => {
  const { worker, isKilled } = scripted(Buffer.concat([entry({ name: 'a' }), entry({ name: 'b' })]))
  const listing = worker.list(path)
  await listing.next()
  await expect(worker.stat(path)).rejects.toMatchObject({ code: 'conflict' })
  await listing.return({ count: 0, isIncomplete: true })
  expect(isKilled()).toBe(true)
})

it('content that fails costs the worker, so that nothing half is put in place', async () => {
  const { worker, isKilled } = scripted()
  const failing = async function* (): AsyncGenerator<Uint8Array> {
    yield await Promise.resolve(Buffer.from('x'))
    throw new Error('the source failed')
  }
  await expect(worker.write(path, failing(), { atomic: true })).rejects.toThrow()
  expect(isKilled()).toBe(true)
})

it('a wrong path is refused before it is sent', async () => {
  const { worker, sent } = scripted()
  for (const wrong of ['', 'relative', '/nul\0', `/${'x'.repeat(4095)}`]) {
    expect(() => worker.stat(Buffer.from(wrong))).toThrow(expect.objectContaining({ code: 'invalid' }))
  }
  expect(sent).toEqual([])
})

it('the real warden starts a worker that reads and writes in the cell, and ends with its input', async () => {
  await using native = await openWarden()
  const run = await native.start(['files'], { stdin: true, worker: 'files' })
  const worker = new FileWorker(run)
  const file = Buffer.from(`${native.cell.workdir}/deep/file`)
  expect((await worker.write(file, content(), { atomic: true })).size).toBe(7)
  expect(Buffer.concat((await all((await worker.read(file)).bytes)) as Buffer[]).toString()).toBe('content')
  const cat = await native.start(['cat', file.toString()])
  expect((await collect(cat)).stdout.toString()).toBe('content')
  await run.endInput()
  expect((await run.exited).code).toBe(0)
})
