import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { draftIn, sweepDrafts } from '../../src/sys/draft.js'
import { currentOwner, type Owner, ownerName } from '../../src/sys/owner.js'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gbx-draft-'))
})
afterEach(() => {
  rmSync(folder, { recursive: true })
})

const uuid = '00000000-0000-4000-8000-000000000000'

/** The name of a draft by somebody like us, but for this. */
function nameBy(other: Partial<Owner>): string {
  return `.glovebox.${ownerName({ ...currentOwner(), ...other })}-${uuid}.draft`
}

function put(name: string, ageDays = 0): string {
  writeFileSync(join(folder, name), '')
  const time = Date.now() / 1000 - ageDays * 86_400
  utimesSync(join(folder, name), time, time)
  return name
}

describe('sweeping drafts', () => {
  test('leaves what somebody who lives is still making, and what is no draft', () => {
    const kept = [
      put(basename(draftIn(folder))),
      put(nameBy({ pidNamespace: '1' })),
      put(nameBy({ boot: 'abc' })),
      put('.glovebox.1.1.1.zz.draft', 30),
      put('receipt.json', 30),
      put(`.receipt.json.${uuid}.draft`, 30),
    ]
    mkdirSync(join(folder, nameBy({ startTime: '1' }), 'filled'), { recursive: true })
    symlinkSync('receipt.json', join(folder, nameBy({ startTime: '2' })))
    sweepDrafts(folder)
    expect(readdirSync(folder).sort()).toEqual([...kept, nameBy({ startTime: '1' }), nameBy({ startTime: '2' })].sort())
  })

  test('removes those whose maker is dead, and of another machine or boot those that are a week old', () => {
    put(nameBy({ startTime: '1' }))
    put(nameBy({ boot: 'abc' }), 8)
    mkdirSync(join(folder, nameBy({ startTime: '2' })))
    sweepDrafts(folder)
    expect(readdirSync(folder)).toEqual([])
  })

  test('is quiet where there is nothing to look at', () => {
    expect(() => sweepDrafts(join(folder, 'nowhere'))).not.toThrow()
  })
})
