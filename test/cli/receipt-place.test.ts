import { spawnSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { testUnless } from '../unless.js'
import { cli, cliPath, fake } from './cli.js'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'glovebox-test-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const hint = 'hint: glovebox run --receipt receipt.json -- …\n'
const notOurs = `glovebox: --receipt: stdout is the program's; a receipt needs a file of its own\n${hint}`

const run = (place: string) => cli(['run', '--quiet', ...fake, '--receipt', place, '--', 'echo', 'hi'], { env: { GLOVEBOX_KEY_DIR: join(folder, 'keys') } })

test.each(['/dev/stdout', '/dev/fd/1', '/proc/self/fd/1', '/dev/stderr', '/proc/thread-self/fd/1'])('%s is refused when it is a pipe', async (place) => {
  expect(await run(place)).toMatchObject({ code: 125, stdout: '', stderr: notOurs })
})

test.each(['/dev/stdout', 'FILE', 'LINK'])('%s is refused when the output goes to that file, which keeps what was in it', (place) => {
  const file = join(folder, 'log')
  writeFileSync(file, 'old\n')
  symlinkSync('log', join(folder, 'link'))
  const log = openSync(file, 'a')
  const path = place.replace('FILE', file).replace('LINK', join(folder, 'link'))
  const { status, stderr } = spawnSync(process.execPath, [cliPath, 'run', '--quiet', ...fake, '--receipt', path, '--', 'echo', 'hi'], {
    stdio: ['ignore', log, 'pipe'],
    encoding: 'utf8',
  })
  closeSync(log)
  expect({ status, stderr, text: readFileSync(file, 'utf8') }).toEqual({ status: 125, stderr: notOurs, text: 'old\n' })
})

test('a link to nothing is refused by what it leads to', async () => {
  symlinkSync('nothing', join(folder, 'link'))
  const link = join(folder, 'link')
  expect(await run(link)).toMatchObject({
    code: 125,
    stdout: '',
    stderr: `glovebox: --receipt: ${link} is a link to ${join(folder, 'nothing')}, which is not there\n${hint}`,
  })
})

test('a folder that takes no files is not said to be missing', async () => {
  expect(await run('/proc/receipt.json')).toMatchObject({
    code: 125,
    stdout: '',
    stderr: expect.stringContaining('/proc/receipt.json cannot be written') as unknown,
  })
})

testUnless(process.getuid?.() === 0 && 'root may write anywhere')('a folder that is not ours is named, with the file that was asked for', async () => {
  expect(await run('/etc/receipt.json')).toMatchObject({
    code: 125,
    stdout: '',
    stderr: 'glovebox: --receipt: /etc/receipt.json cannot be written: /etc: may not be used by this user (EACCES)\nhint: ls -ld /etc\n',
  })
})
