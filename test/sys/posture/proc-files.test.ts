import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isGone, readKernelFile, readProc } from '../../../src/sys/posture/proc-files.js'

test('a file is read whole, however long it is and wherever its characters are cut', () => {
  const place = mkdtempSync(join(tmpdir(), 'gbx-proc-'))
  const path = join(place, 'file')
  try {
    for (const length of [0, 1, 3999, 4000, 4001, 7999, 8000, 100_000]) {
      const text = `x${'é'.repeat(length)}`.slice(1)
      writeFileSync(path, text)
      expect(readKernelFile(path)).toBe(text)
    }
  } finally {
    rmSync(place, { recursive: true })
  }
})

test('of a process that is not there the kernel says so', () => {
  expect(readProc('self', 'comm')).not.toBe('')
  const read = (): unknown => {
    try {
      return readProc(2 ** 22 + 1, 'status')
    } catch (error) {
      return isGone(error)
    }
  }
  expect(read()).toBe(true)
})
