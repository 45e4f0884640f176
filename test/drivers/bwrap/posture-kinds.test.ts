import { chownSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { CellSpec } from '../../../src/contract/driver.js'
import { userId } from '../../../src/cell/arguments.js'
import { keptGroups } from '../../../src/cell/kept-groups.js'
import { judge, type Mismatch } from '../../../src/receipt/judge.js'
import { testUnless } from '../../unless.js'
import { poseCell } from './posture-cell.js'

const isRoot = process.getuid?.() === 0
let place: string

beforeAll(() => {
  place = mkdtempSync(join(tmpdir(), 'gbx-kinds-'))
  for (const name of ['read', 'write', 'within']) mkdirSync(join(place, name))
  mkdirSync(join(place, 'read/within'))
  // Root's own folders are given to no cell.
  if (isRoot) for (const path of ['write', 'within']) chownSync(join(place, path), 65_534, 65_534)
})

afterAll(() => rmSync(place, { recursive: true, force: true }))

async function mismatches(spec: Partial<CellSpec>): Promise<Mismatch[]> {
  await using posed = await poseCell({ spec })
  return judge({ expectations: posed.cell.expects, posture: await posed.cell.posture({ kind: 'cell' }) })
}

const mounts = (): CellSpec['mounts'] => [
  { source: join(place, 'within'), target: '/data/within', mode: 'rw' },
  { source: join(place, 'read'), target: '/data', mode: 'ro' },
  { source: join(place, 'write'), target: '/workspace', mode: 'rw' },
]

const commands = { executable: ['/usr/bin/true'], readable: ['/usr'], unlisted: undefined }

test('a cell that is shown folders of the host’s is exactly that', async () => {
  expect(await mismatches({ mounts: mounts() })).toEqual([])
})

test('a cell in which only some commands may run can execute nothing that it wrote', async () => {
  expect(await mismatches({ commands })).toEqual([])
  expect(await mismatches({ commands, mounts: mounts() })).toEqual([])
})

testUnless(!isRoot && 'only a cell with ids of its own has a writable root')('a cell whose whole root can be written to is exactly that', async () => {
  expect(await mismatches({ rootMode: 'overlay' })).toEqual([])
  expect(await mismatches({ rootMode: 'overlay', mounts: mounts() })).toEqual([])
})

test('a cell with a single id keeps the groups of whoever started it, one with its own ids none', () => {
  const groups = process.getgroups?.() ?? []
  const others = groups.some((group) => group !== process.getegid?.())
  const kept = keptGroups({ kind: 'single' })
  expect(kept.filter((group) => group !== userId)).toEqual(others ? [65_534] : [])
  expect(keptGroups({ kind: 'range', base: 0x78000000, size: 65_536 })).toEqual([])
})
