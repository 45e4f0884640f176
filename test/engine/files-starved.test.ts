import { execFileSync } from 'node:child_process'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { FileCalls } from '../../src/contract/files.js'
import type { Engine } from '../../src/engine/engine.js'
import { fileError } from '../../src/engine/file-errors.js'
import { SandboxFiles } from '../../src/sandbox/index.js'
import { rejectionOf } from './collect.js'
import { createPlainEngine, PlainDriver } from './plain-driver.js'

let engine: Engine
let id: string
let files: FileCalls
let driver: PlainDriver

beforeEach(async () => {
  driver = new PlainDriver()
  engine = createPlainEngine(driver)
  id = (await engine.create({})).id
  files = engine.files.of(id)
})

afterEach(async () => {
  await engine[Symbol.asyncDispose]()
})

async function* pieces(...parts: readonly (string | Uint8Array)[]): AsyncGenerator<Uint8Array, void, undefined> {
  for (const part of parts) yield await Promise.resolve(Buffer.from(part))
}

/** As a guest with the worker's id can. */
function starve(): void {
  const rows = execFileSync('ps', ['-eo', 'pid=,ppid=,comm=']).toString().trim().split('\n')
  const table = rows.map((row) => row.trim().split(/\s+/)).map(([pid, ppid, name]) => ({ pid: Number(pid), ppid: Number(ppid), name }))
  const wardens = new Set([driver.cells[0]?.child.pid, ...table.filter(({ ppid }) => ppid === driver.cells[0]?.child.pid).map(({ pid }) => pid)])
  const workers = table.filter(({ ppid, name }) => name === 'files' && wardens.has(ppid))
  expect(workers.length).toBeGreaterThan(0)
  for (const { pid } of workers) execFileSync('prlimit', ['--pid', String(pid), '--nofile=0:0'])
}

describe('a worker that a guest took the descriptors of', () => {
  test.each([
    ['write', () => files.write('b', pieces('new'))],
    ['read', () => files.read('a')],
    ['copy', () => files.copy('a', 'c')],
    ['search', () => files.search('.', 'x').then(({ skipped }) => expect(skipped).toBe(0))],
  ])('is replaced, and the operation done: %s', async (_, act) => {
    await files.write('a', pieces('x'))
    starve()
    await act()
  })

  test('is replaced after content that cannot be sent again, which is told', async () => {
    await files.write('a', pieces('x'))
    starve()
    const many = Array.from({ length: 400 }, () => new Uint8Array(65_536))
    expect(await rejectionOf(files.write('b', pieces(...many)))).toMatchObject({ code: 'busy' })
    await files.write('b', pieces('new'))
  })
})

test('an expression that is none is refused as the pattern', async () => {
  expect(await rejectionOf(files.search('.', '(', { regex: true }))).toMatchObject({
    code: 'invalid',
    message: "pattern: '(' is no POSIX extended regular expression",
  })
  await files.write('n', pieces('a1\nab'))
  expect((await files.search('.', String.raw`a\d`, { regex: true })).matches).toMatchObject([{ line: 1, column: 1, text: 'a1' }])
})

test('a match in a file whose name is not UTF-8 has the bytes of its path', async () => {
  const { path: folder } = await files.mkdir('odd')
  const path = Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0xff])])
  await files.write(path, pieces('needle'))
  const [match] = (await files.search('odd', 'needle')).matches
  expect(Buffer.from(match?.pathBytes ?? [])).toEqual(path)
})

test('a file that is too large for one piece is refused by its size', async () => {
  await files.write('large', pieces('x'))
  const { path } = await files.write('large', pieces('x'))
  execFileSync('truncate', ['-s', '1T', path])
  const started = performance.now()
  expect(await rejectionOf(new SandboxFiles({ files, local: undefined }).readBytes('large'))).toMatchObject({
    code: 'invalid',
    message: expect.stringContaining('there are 1099511627776 bytes; at most 268435456 fit in one piece'),
  })
  expect(performance.now() - started).toBeLessThan(30_000)
})

test('half a surrogate pair is refused, a whole one is written', async () => {
  const handle = new SandboxFiles({ files, local: undefined })
  expect(await rejectionOf(handle.write('s', 'a\ud800'))).toMatchObject({ code: 'invalid', message: expect.stringContaining('half a surrogate') })
  await handle.write('s', '𝄞')
  expect(await handle.read('s')).toBe('𝄞')
})

describe('what a kernel refuses is told', () => {
  const limits = { diskBytes: 64 * 2 ** 20, inodes: 1000, fileSizeBytes: 2 ** 20 } as Parameters<typeof fileError>[2]
  test.each([
    [21, 'is a folder: /a', '/a', 'files.read /a: it is a folder'],
    [28, 'write /a: no bytes are left', '/a', 'files.read /a: there is no room left (limits.disk is 64m)'],
    [28, 'open /a: no inodes are left', '/a', 'files.read /a: there is no room for one file more (limits.inodes is 1000)'],
    [16, 'is mounted: /a', '/a', 'files.read /a: it is a folder the sandbox is made of; what is in it can be removed'],
    [36, 'open /a', '/a', 'files.read /a: something in it lies too deep: a path may have 4095 bytes, and what is listed 16384 below its folder'],
    [
      36,
      'list workspace/z/e',
      '/',
      'files.read /: something in it lies too deep: a path may have 4095 bytes, and what is listed 16384 below its folder (list workspace/z/e)',
    ],
    [39, 'remove /a/b', '/a', 'files.read /a: the folder is not empty (remove /a/b)'],
    [13, 'open /a (b)', '/a (b)', 'files.read /a (b): this user may not'],
  ])('errno %i, %s', (errno, text, path, message) => {
    expect(fileError({ name: 'files.read', path }, { errno, text }, limits).message).toBe(message)
  })
})
