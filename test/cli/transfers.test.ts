import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { runFake } from './cli.js'

let folder: string

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'gbx-transfers-')))
  mkdirSync(join(folder, 'there'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const ran = (): string => join(folder, 'ran')
const program = (): string[] => ['sh', '-c', `touch ${ran()}; mkdir out; echo new > out/new; echo file > file`]

describe('run --download into a folder that is there', () => {
  test.each(['file', 'out'])('is refused before anything starts unless SRC is said to be a folder: %s', async (source) => {
    const { code, stderr } = await runFake(['--download', `${source}:${folder}/there`], program())
    expect([code, existsSync(ran())]).toEqual([125, false])
    expect(stderr).toBe(
      `glovebox: --download ${source}:${folder}/there: ${folder}/there is a folder, and is there already: with SRC/ it is filled, and a file needs another name\n` +
        `hint: glovebox run --download ${source}/:${folder}/there -- …\n`,
    )
  })

  test('fills it as the hint says', async () => {
    writeFileSync(join(folder, 'there', 'old'), 'old\n')
    expect(await runFake(['--download', `out/:${folder}/there`], program())).toMatchObject({ code: 0, stderr: '' })
    expect(['old', 'new'].map((name) => readFileSync(join(folder, 'there', name), 'utf8'))).toEqual(['old\n', 'new\n'])
  })

  test('says so after the run when what was said to be a folder is none', async () => {
    const { code, stderr } = await runFake(['--download', `file/:${folder}/there`], program())
    expect([code, existsSync(ran())]).toEqual([125, true])
    expect(stderr).toContain(`--download file/:${folder}/there: `)
    expect(existsSync(join(folder, 'there', 'file'))).toBe(false)
  })
})
