import { execFileSync } from 'node:child_process'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { FileCalls } from '../../src/contract/files.js'
import type { Engine } from '../../src/engine/engine.js'
import { Sandbox } from '../../src/sandbox/index.js'
import { rejectionOf } from './collect.js'
import { createPlainEngine, PlainDriver } from './plain-driver.js'
import { waitUntil } from './processes.js'

let driver: PlainDriver
let engine: Engine
let id: string
let files: FileCalls

beforeEach(async () => {
  driver = new PlainDriver()
  engine = createPlainEngine(driver)
  id = (await engine.create({})).id
  files = engine.files.of(id)
})

afterEach(async () => {
  await engine[Symbol.asyncDispose]()
  expect(driver.openCells).toBe(0)
})

async function* pieces(...parts: readonly string[]): AsyncGenerator<Uint8Array, void, undefined> {
  for (const part of parts) yield await Promise.resolve(Buffer.from(part))
}

async function* endless(): AsyncGenerator<Uint8Array, void, undefined> {
  for (;;) yield await Promise.resolve(new Uint8Array(65_536))
}

/** Workers below this cell's warden, by the name that they give themselves. */
function workers(): number[] {
  const rows = execFileSync('ps', ['-eo', 'pid=,ppid=,comm=']).toString().trim().split('\n')
  const table = rows.map((row) => row.trim().split(/\s+/)).map(([pid, ppid, name]) => ({ pid: Number(pid), ppid: Number(ppid), name }))
  const below = new Set([driver.cells[0]?.child.pid])
  for (let grown = true; grown; ) {
    const more = table.filter(({ pid, ppid }) => below.has(ppid) && !below.has(pid))
    for (const { pid } of more) below.add(pid)
    grown = more.length > 0
  }
  return table.filter(({ pid, name }) => below.has(pid) && name === 'files').map(({ pid }) => pid)
}

describe('an operation on files', () => {
  test('that is called off kills its worker, and the next one gets another', async () => {
    const controller = new AbortController()
    const told = rejectionOf(files.write('a', endless(), { signal: controller.signal, atomic: true }))
    await waitUntil(() => workers().length === 1)
    controller.abort(new Error('enough'))
    expect(await told).toMatchObject({ message: 'enough' })
    await waitUntil(() => workers().length === 0)
    expect(await files.stat('a')).toBeNull()
  })

  test('whose worker is killed tells so, and the next one gets another', async () => {
    const told = rejectionOf(files.write('a', endless()))
    await waitUntil(() => workers().length === 1)
    for (const pid of workers()) process.kill(pid, 'SIGKILL')
    expect(await told).toMatchObject({ code: 'conflict', message: expect.stringContaining('ended by a program in the sandbox (SIGKILL)') })
    expect((await files.write('b', pieces('b'))).size).toBe(1)
  })

  test('whose content fails is told what it was, and an atomic file is not there', async () => {
    async function* failing(): AsyncGenerator<Uint8Array, void, undefined> {
      yield Buffer.from('part')
      throw await Promise.resolve(new Error('the source broke'))
    }
    expect(await rejectionOf(files.write('a', failing(), { atomic: true }))).toMatchObject({ message: 'the source broke' })
    expect(await files.stat('a')).toBeNull()
  })

  test('whose reader leaves, or never comes, keeps no worker', async () => {
    await files.write('a', pieces('x'.repeat(2 ** 20)))
    for await (const _ of (await files.read('a')).bytes) break
    expect(workers()).toEqual([])
    const { bytes } = await files.read('a')
    await bytes[Symbol.asyncIterator]().return?.()
    expect(workers()).toEqual([])
  })

  test('is done by at most eight workers at once, which end when they are idle', async () => {
    await Promise.all(Array.from({ length: 40 }, (_, index) => files.write(`f${index}`, pieces(String(index)))))
    expect(workers().length).toBeGreaterThan(0)
    expect(workers().length).toBeLessThanOrEqual(8)
    expect(await waitUntil(() => workers().length === 0)).toBeUndefined()
  })

  test('of a closed sandbox says so, also when it is closed meanwhile', async () => {
    const told = rejectionOf(files.write('a', endless()))
    await waitUntil(() => workers().length === 1)
    await engine.close(id)
    expect(await told).toMatchObject({ code: 'closed', message: `sandbox ${id} was closed` })
    expect(await rejectionOf(files.stat('a'))).toMatchObject({ code: 'closed' })
  })
})

test.each<[string, (given: FileCalls) => Promise<unknown>, string]>([
  ['an option that there is not', (calls) => calls.stat('a', { follow: true } as object), 'follow: is not a known field'],
  ['a user that there is not', (calls) => calls.stat('a', { user: 'nobody' as 'user' }), "user: expected one of user, root, got 'nobody'"],
  ['an offset below 0', (calls) => calls.read('a', { offset: -1 }), 'offset: must be at least 0, got -1'],
  ['a mode beyond its bits', (calls) => calls.chmod('a', 0o10000), 'mode: must be at most 4095, got 4096'],
  ['content that is none', (calls) => calls.write('a', 'text' as never), 'content: expected an async iterable of bytes (Uint8Array), got a string'],
  ['a path that is none', (calls) => calls.move('a', 7 as never), 'to: expected a string or bytes (Uint8Array), got a number'],
  ['append and atomic', (calls) => calls.write('a', pieces(''), { append: true, atomic: true }), 'atomic: cannot be had together with append'],
  ['a pattern of two lines', (calls) => calls.search('.', 'a\nb'), 'pattern: must not contain a line break'],
  ['a depth of 0', async (calls) => calls.list('.', { depth: 0 })[Symbol.asyncIterator]().next(), 'depth: must be a whole number from 1, or Infinity'],
])('%s is refused by name', async (_, act, message) => {
  expect(await rejectionOf(act(files))).toMatchObject({ code: 'invalid', message })
})

test('the handle reads and writes text, bytes, blobs and streams, and watches', async () => {
  const sandbox = await Sandbox.connect(id, { platform: engine })
  await sandbox.files.write('text', 'é')
  await sandbox.files.append('text', new Blob(['!']))
  expect(await sandbox.files.read('text')).toBe('é!')
  await sandbox.files.write('copy', await sandbox.files.stream('text'))
  expect([...(await sandbox.files.readBytes('copy', { offset: 2 }))]).toEqual([0x21])
  expect((await sandbox.files.writeMany({ 'm/1': '1', 'm/2': pieces('2') })).map(({ name }) => name)).toEqual(['1', '2'])
  expect((await sandbox.files.list('m')).map(({ name }) => name)).toEqual(['1', '2'])
  await using watch = sandbox.files.watch('m')
  await watch.ready
  await sandbox.files.write('m/3', '3')
  for await (const event of watch) {
    expect(event).toMatchObject({ type: 'created', path: expect.stringMatching(/\/m\/3$/) })
    break
  }
  expect(await rejectionOf(sandbox.files.write('x', 7 as never))).toMatchObject({
    code: 'invalid',
    message: expect.stringMatching(/^content: expected a string/),
  })
  expect(await rejectionOf(sandbox.files.upload('/tmp', 'x'))).toMatchObject({ code: 'unsupported' })
})
