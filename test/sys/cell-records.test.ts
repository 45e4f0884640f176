import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createCellRecords } from '../../src/sys/cell-records.js'
import { currentOwner, isAlive, ownerName, parseOwner } from '../../src/sys/owner.js'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gbx-records-'))
})

afterEach(() => rmSync(folder, { recursive: true }))

test('a record is there from claim to release', () => {
  const records = createCellRecords({ folder, remains: () => [] })
  const record = records.claim('abc')
  expect(readdirSync(folder)).toEqual([`${ownerName(currentOwner())}-abc`])
  record.release()
  record.release()
  expect(readdirSync(folder)).toEqual([])
})

test('only cells of dead owners are swept', () => {
  writeFileSync(join(folder, `${ownerName(currentOwner())}-living`), '')
  writeFileSync(join(folder, `${ownerName({ ...currentOwner(), startTime: '1' })}-dead`), '')
  const swept: string[] = []
  const remains = (cellId: string): number[] => {
    swept.push(cellId)
    return []
  }
  createCellRecords({ folder, remains })
  expect(swept).toEqual(['dead'])
  expect(readdirSync(folder)).toEqual([`${ownerName(currentOwner())}-living`])
})

test('an owner survives being written down, and nothing else is taken for one', () => {
  const owner = currentOwner()
  expect(parseOwner(ownerName(owner))).toEqual(owner)
  expect(isAlive(owner)).toBe(true)
  expect(['', '12', '1.2.3', '1.2.3.xyz', '-1.2.3.4'].map(parseOwner)).toEqual([undefined, undefined, undefined, undefined, undefined])
})
