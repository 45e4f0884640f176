// STAT with the hash of a file's contents, in files that somebody changes, hides or makes endless meanwhile.
import { createHash } from 'node:crypto'
import { chmodSync, mkdirSync, readFileSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { spawnSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { openBench } from './file-worker.js'

const isRoot = process.getuid?.() === 0
const GiB = 2 ** 30
/** The first builds the worker. */
const timeout = 120_000
const hex = (bytes: Uint8Array | undefined): string | undefined => bytes && Buffer.from(bytes).toString('hex')
const hashOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** What the process has read so far, from the kernel: resolves when it is amid the file. */
async function untilReading(pid: number | undefined, least: number): Promise<void> {
  for (;;) {
    const read = Number(/^rchar: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1])
    if (read >= least) return
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

it('is told with the size that it is of, and only where it is asked for', { timeout }, async () => {
  await using bench = openBench()
  for (const length of [0, 1, 63, 64, 65_535, 65_536, 65_537, 1_000_000]) {
    const content = Buffer.alloc(length, 'ab')
    writeFileSync(`${bench.folder}/f`, content)
    const entry = await bench.worker.stat(bench.path('f'), { hash: true })
    expect([entry.type, entry.size, hex(entry.hash)]).toEqual(['file', length, hashOf(content)])
  }
  expect((await bench.worker.stat(bench.path('f'))).hash).toBeUndefined()
})

it('what is no file has none, and nothing is opened that would wait', { timeout }, async () => {
  await using bench = openBench()
  mkdirSync(`${bench.folder}/folder`)
  writeFileSync(`${bench.folder}/file`, 'x')
  symlinkSync('file', `${bench.folder}/link`)
  expect(spawnSync('mkfifo', [`${bench.folder}/fifo`]).status).toBe(0)
  const seen = []
  for (const name of ['folder', 'link', 'fifo']) seen.push(await bench.worker.stat(bench.path(name), { hash: true }))
  expect(seen.map(({ type, hash }) => [type, hash])).toEqual([
    ['folder', undefined],
    ['link', undefined],
    ['fifo', undefined],
  ])
})

it.runIf(isRoot)('a file that may not be read is told without one', { timeout }, async () => {
  await using bench = openBench({ uid: 65_534 })
  chmodSync(bench.folder, 0o755)
  writeFileSync(`${bench.folder}/closed`, 'secret', { mode: 0o600 })
  const { type, size, hash } = await bench.worker.stat(bench.path('closed'), { hash: true })
  expect([type, size, hash]).toEqual(['file', 6, undefined])
})

it('a file that shrinks amid it has none', { timeout }, async () => {
  await using bench = openBench()
  writeFileSync(`${bench.folder}/f`, '')
  truncateSync(`${bench.folder}/f`, 64 * GiB)
  const asked = bench.worker.stat(bench.path('f'), { hash: true })
  await untilReading(bench.child.pid, 2 ** 20)
  truncateSync(`${bench.folder}/f`, 10)
  const { size, hash } = await asked
  expect([size, hash]).toEqual([10, undefined])
})

it('a file that grows amid it is hashed up to the size that is told', { timeout }, async () => {
  await using bench = openBench()
  const content = Buffer.alloc(64 * 2 ** 20, 1)
  writeFileSync(`${bench.folder}/f`, content)
  const asked = bench.worker.stat(bench.path('f'), { hash: true })
  await untilReading(bench.child.pid, 2 ** 20)
  truncateSync(`${bench.folder}/f`, 64 * GiB)
  const { size, hash } = await asked
  expect([size, hex(hash)]).toEqual([content.length, hashOf(content)])
})

it('amid a file of terabytes the worker can be ended', { timeout }, async () => {
  await using bench = openBench()
  writeFileSync(`${bench.folder}/f`, '')
  truncateSync(`${bench.folder}/f`, 4096 * GiB)
  const asked = bench.worker.stat(bench.path('f'), { hash: true }).catch((error: unknown) => error)
  await untilReading(bench.child.pid, 2 ** 20)
  await bench.run.kill()
  expect(await asked).toMatchObject({ code: 'broken' })
})
