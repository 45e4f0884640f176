import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { currentOwner, ownerName } from '../../src/sys/owner.js'
import { createUidRanges } from '../../src/sys/uid-ranges.js'
import { startScript } from './run-script.js'
import { testUnless } from '../unless.js'

const first = 0x78000000
const size = 65_536
const claimer = new URL('./programs/claim-ranges.ts', import.meta.url)
const isRoot = process.getuid?.() === 0

/** The same process in another life: its pid is in use, by someone else. */
const deadOwner = { ...currentOwner(), startTime: '1' }

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gbx-ranges-'))
})

afterEach(() => rmSync(folder, { recursive: true }))

function bases(count: number, ranges = createUidRanges({ folder, foreign: [] })): number[] {
  return Array.from({ length: count }, (_, index) => ranges.claim(`cell${index}`).base)
}

test('ranges start at 0x78000000, are 65,536 ids wide and follow each other', () => {
  expect(bases(3)).toEqual([first, first + size, first + 2 * size])
})

test('M-05 two engines of one machine never share a range', () => {
  const [one, two] = [createUidRanges({ folder, foreign: [] }), createUidRanges({ folder, foreign: [] })]
  const all = [one, two, one, two].flatMap((ranges, index) => ranges.claim(`cell${index}`).base)
  expect(new Set(all).size).toBe(4)
})

test('engines in several processes that claim at the same moment never share a range', async () => {
  const scripts = await Promise.all(Array.from({ length: 4 }, () => startScript(claimer, [folder, '25'])))
  const claimed = await Promise.all(scripts.map(async ({ firstLine }) => JSON.parse(await firstLine) as number[]))
  expect(new Set(claimed.flat()).size).toBe(100)
  for (const { child } of scripts) child.stdin?.end()
  await Promise.all(scripts.map(({ ended }) => ended))
})

test('a released range is used again, and its record is gone', () => {
  const ranges = createUidRanges({ folder, foreign: [] })
  const range = ranges.claim('cell')
  expect(readdirSync(join(folder, '0'))).toEqual([ownerName(currentOwner())])
  range.release()
  range.release()
  expect(readdirSync(folder)).toEqual([])
  expect(ranges.claim('other').base).toBe(range.base)
})

test('a range that another engine gave back is found again when those after the last are taken', () => {
  const foreign = [[first + 3 * size, 0x80000000 - first - 3 * size]] as const
  const [one, two] = [createUidRanges({ folder, foreign }), createUidRanges({ folder, foreign })]
  const [lowest] = [one.claim('a'), one.claim('b')]
  expect(two.claim('c').base).toBe(first + 2 * size)
  expect(() => two.claim('d')).toThrow('are in use')
  lowest.release()
  expect(two.claim('d').base).toBe(first)
})

test('a process that ends takes its records with it', async () => {
  const { child, firstLine, ended } = await startScript(claimer, [folder, '3'])
  await firstLine
  expect(readdirSync(folder)).toEqual(['1700', '1701', '1702'])
  child.stdin?.end()
  await ended
  expect(readdirSync(folder)).toEqual([])
})

test('a process that is killed leaves its records, and the next engine sweeps them', async () => {
  const { child, firstLine, ended } = await startScript(claimer, [folder, '3'])
  await firstLine
  child.kill('SIGKILL')
  await ended
  expect(readdirSync(folder)).toEqual(['1700', '1701', '1702'])
  createUidRanges({ folder, foreign: [] })
  expect(readdirSync(folder)).toEqual([])
})

test('what a dead owner left is swept, what a living one holds is not', () => {
  plant(2000, ownerName(deadOwner))
  plant(2001, ownerName(currentOwner()))
  mkdirSync(join(folder, `new-${ownerName(deadOwner)}-cell`))
  mkdirSync(join(folder, '2002'))
  createUidRanges({ folder, foreign: [] })
  expect(readdirSync(folder).sort()).toEqual(['2001', '2002'])
})

test('an owner in another pid namespace counts as alive, one before the last boot as dead', () => {
  plant(2000, ownerName({ ...deadOwner, pidNamespace: '1' }))
  plant(2001, ownerName({ ...currentOwner(), boot: 'abc' }))
  createUidRanges({ folder, foreign: [] })
  expect(readdirSync(folder)).toEqual(['2000'])
})

testUnless(!isRoot && 'only root has ranges of ids')('a process that a dead owner left in its range is killed by the sweep', async () => {
  const uid = first + 2000 * size + 1000
  const orphan = spawn('/bin/sleep', ['1000'], { uid, gid: uid, stdio: 'ignore', cwd: '/' })
  await once(orphan, 'spawn')
  plant(2000, ownerName(deadOwner))
  createUidRanges({ folder, foreign: [] })
  const [, signal] = (await once(orphan, 'exit')) as [number | null, string]
  expect(signal).toBe('SIGKILL')
  expect(existsSync(join(folder, '2000'))).toBe(false)
})

test('ranges that subuid, subgid or passwd gave to others are never handed out', () => {
  const ranges = createUidRanges({
    folder,
    foreign: [
      [first - 10, 11],
      [first + 2 * size - 1, 1],
      [first + 3 * size, 2 * size],
      [1000, 1],
    ],
  })
  expect(bases(2, ranges)).toEqual([first + 2 * size, first + 5 * size])
})

test('when no range is left the answer is busy, and no draft of a record stays', () => {
  const ranges = createUidRanges({ folder, foreign: [[first, 0x8000000]] })
  expect(() => ranges.claim('cell')).toThrow(expect.objectContaining({ code: 'busy' }))
  expect(readdirSync(folder)).toEqual([])
})

function plant(slot: number, name: string): void {
  mkdirSync(join(folder, String(slot)))
  writeFileSync(join(folder, String(slot), name), 'cell')
}
