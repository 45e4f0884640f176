import { mkdirSync, mkdtempSync, realpathSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { commandAtTerminal } from './at-terminal.js'
import { fake, runFake } from './cli.js'

const bytes = 20 * 2 ** 20
const over = '\r\x1b[K'

let folder: string

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), `gbx-progress-${'long'.repeat(15)}-`)))
  mkdirSync(join(folder, 'dir'))
  for (const name of ['in', 'dir/in']) {
    writeFileSync(join(folder, name), '')
    truncateSync(join(folder, name), bytes)
  }
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const flags = (): string[] => [
  ...['--upload', `${folder}/in:in`, '--upload', `${folder}/dir:dir`],
  ...['--download', `in:${folder}/out`, '--download', `dir:${folder}/out-dir`],
]

describe('what takes a while on its way in or out', () => {
  test('is shown at a terminal in one line, which is gone when it is done', async () => {
    const seen = await commandAtTerminal(['run', ...fake, ...flags(), '--', 'echo', 'the program'], [])
    expect(seen).toMatchObject({ code: 0, restored: true, failure: null })
    const [before = '', after = ''] = seen.text.split('the program\r\n')
    for (const part of [before, after]) expect(part.endsWith(over)).toBe(true)
    const lines = [before, after].flatMap((part) => part.split(over).slice(1)).filter((line) => line !== '')
    expect(lines.filter((line) => !/^--(up|down)load [^\r\n]+( \[#* *\] \d+ MiB of \d+| \d+ MiB)$/.test(line) || line.length > 79)).toEqual([])
    for (const start of ['--upload', '--download']) expect(lines.some((line) => line.startsWith(start))).toBe(true)
    expect([statSync(join(folder, 'out')).size, statSync(join(folder, 'out-dir', 'in')).size]).toEqual([bytes, bytes])
  })

  test('is not shown when it is to be quiet, nor to a pipe', async () => {
    expect(await commandAtTerminal(['run', '--quiet', ...fake, ...flags(), '--', 'echo', 'the program'], [])).toMatchObject({
      text: 'the program\r\n',
      code: 0,
    })
    rmSync(join(folder, 'out'))
    rmSync(join(folder, 'out-dir'), { recursive: true })
    expect(await runFake(flags(), ['true'])).toMatchObject({ code: 0, stdout: '', stderr: '' })
  })
})
