import { spawn } from 'node:child_process'
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import type { WorkerSearchOptions } from '../../src/channel/file-worker-options.js'
import { FileFailure } from '../../src/channel/file-worker-replies.js'
import { type Bench, openBench } from './file-worker.js'

const isRoot = process.getuid?.() === 0

async function found(
  bench: Bench,
  pattern: string,
  options: Partial<WorkerSearchOptions> = {},
): Promise<{ matches: string[]; skipped: number; truncated: boolean }> {
  const result = await bench.worker.search(bench.path(''), { pattern: Buffer.from(pattern), most: 1000, ...options })
  const matches = result.matches.map(
    ({ path, line, column, text }) => `${Buffer.from(path).toString()}:${line}:${column}:${Buffer.from(text).toString('latin1')}`,
  )
  return { ...result, matches }
}

it('a text or an expression is found by line and column; binary and hidden files and links are not read', async () => {
  await using bench = openBench()
  mkdirSync(`${bench.folder}/d/.git`, { recursive: true })
  writeFileSync(`${bench.folder}/a`, 'one\ntwo (x) two\n\nlast Two')
  writeFileSync(`${bench.folder}/d/.git/c`, 'two')
  writeFileSync(`${bench.folder}/d/bin`, 'two\0')
  symlinkSync('../a', `${bench.folder}/d/link`)
  expect(await found(bench, 'two')).toEqual({ matches: ['a:2:1:two (x) two'], skipped: 1, truncated: false })
  expect((await found(bench, 'TWO', { ignoreCase: true, hidden: true })).matches).toEqual(['a:2:1:two (x) two', 'a:4:6:last Two', 'd/.git/c:1:1:two'])
  expect((await found(bench, '(X)', { ignoreCase: true })).matches).toEqual(['a:2:5:two (x) two'])
  expect((await found(bench, '^l.*[Tt]wo$', { regex: true })).matches).toEqual(['a:4:1:last Two'])
  expect(await found(bench, 'o', { most: 1 })).toEqual({ matches: ['a:1:1:one'], skipped: 0, truncated: true })
  await expect(found(bench, '(', { regex: true })).rejects.toMatchObject({ errno: 22, text: 'understand the expression (' })
})

it('long lines are cut around the match', async () => {
  await using bench = openBench()
  writeFileSync(`${bench.folder}/f`, `${'a'.repeat(5000)}needle${'b'.repeat(5000)}\nneedle`)
  const { matches } = await found(bench, 'needle')
  expect(matches.map((match) => match.split(':').slice(1, 3).join(':'))).toEqual(['1:5001', '2:1'])
  expect(matches[0]?.length).toBeLessThan(1100)
  expect(matches[0]).toContain('aneedleb')
})

const mebibyte = 1 << 20

it.each([
  ['at the end of the first MiB', mebibyte - 6],
  ['across the first MiB', mebibyte - 3],
  ['behind the first MiB', mebibyte],
  ['far behind', 3 * mebibyte - 1],
])('a text in a line of megabytes is found once, with its column: %s', async (_, at) => {
  await using bench = openBench()
  writeFileSync(`${bench.folder}/f`, `first\n${'c'.repeat(at)}nEEdle${'d'.repeat(2 * mebibyte)}needle\nneedle`)
  const places = async (options: Partial<WorkerSearchOptions>): Promise<string[]> =>
    (await found(bench, 'needle', options)).matches.map((match) => match.split(':').slice(1, 3).join(':'))
  expect(await places({ ignoreCase: true })).toEqual([`2:${at + 1}`, '3:1'])
  expect(await places({})).toEqual([`2:${at + 6 + 2 * mebibyte + 1}`, '3:1'])
})

it('an expression is never matched against a part of a line: one that is too long is left out, and its file counted', async () => {
  await using bench = openBench()
  writeFileSync(`${bench.folder}/f`, `${'c'.repeat(mebibyte + 10)}needle\nneedle\n${'c'.repeat(mebibyte - 1)}\n${'d'.repeat(3 * mebibyte)}`)
  writeFileSync(`${bench.folder}/g`, `${'c'.repeat(mebibyte - 10)}needle\n`)
  expect((await found(bench, '^c*needle$', { regex: true })).matches.map((match) => match.slice(0, 6))).toEqual(['f:2:1:', 'g:1:1:'])
  expect((await found(bench, '^c*needle$', { regex: true })).skipped).toBe(1)
  expect((await found(bench, '^d', { regex: true })).matches).toEqual([])
})

it.runIf(isRoot)('what may not be read is counted', async () => {
  await using bench = openBench({ uid: 65_534 })
  chmodSync(bench.folder, 0o755)
  writeFileSync(`${bench.folder}/f`, 'x', { mode: 0 })
  mkdirSync(`${bench.folder}/d`, { mode: 0 })
  expect(await found(bench, 'x')).toEqual({ matches: [], skipped: 2, truncated: false })
})

it('processes are told with their parent, their owner and their command, whatever they call themselves', async () => {
  await using bench = openBench()
  const child = spawn('/usr/bin/python3', ['-c', "open('/proc/self/comm','w').write(') R (\\n'); print(1,flush=True); input()", 'a b'])
  await new Promise((resolve) => child.stdout.once('data', resolve))
  const rows = await bench.worker.processes()
  const row = rows.find(({ pid }) => pid === child.pid)
  expect(row).toMatchObject({ parent: process.pid, uid: process.getuid?.() })
  expect(Buffer.from(row?.command ?? '').toString()).toMatch(/^\/usr\/bin\/python3 -c .* a b$/)
  expect(row?.residentBytes).toBeGreaterThan(1 << 20)
  child.kill('SIGKILL')
})

it('a failure is an error that names errno and object', async () => {
  await using bench = openBench()
  await expect(bench.worker.search(bench.path('none'), { pattern: Buffer.from('x'), most: 1 })).rejects.toBeInstanceOf(FileFailure)
})
