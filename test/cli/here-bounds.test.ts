import { chmodSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { skipGroup } from '../unless.js'
import { type Account, accounts, gloveboxAs, makeOwn } from './accounts.js'
import type { CliResult } from './cli.js'
import { isBwrapReady } from './machine.js'

let top: string

function here(account: Account, program: string): Promise<CliResult> {
  const project = join(top, 'project')
  writeFileSync(join(project, 'program.py'), program)
  const args = ['run', '--driver', 'bwrap', '--timeout', '120s', '--here', '--', '/usr/bin/python3', 'program.py']
  return gloveboxAs(account, args, { top, cwd: project })
}

describe.each(accounts)('run --here of a command that writes much, as $name', (account) => {
  skipGroup(!isBwrapReady && 'bwrap is not ready here: ./glovebox doctor')

  beforeEach(() => {
    top = realpathSync(mkdtempSync(join(tmpdir(), 'gbx-bounds-')))
    chmodSync(top, 0o755)
    makeOwn(account, top, ['home', 'changes', 'project'])
  })
  afterEach(() => rmSync(top, { recursive: true, force: true }))

  test('shows 200 lines of differences and counts the files beyond, without comparing them', async () => {
    const program = `
for i in range(1500):
    with open(f'f{i:04}', 'w') as f: f.write(''.join(f'{i} {n}\\n' for n in range(1020)))
`
    const { code, stderr } = await here(account, program)
    const lines = stderr.split('\n')
    expect(code).toBe(0)
    expect(lines.filter((line) => line.startsWith('A  f'))).toHaveLength(1500)
    expect(lines.filter((line) => /^\+\d/.test(line))).toHaveLength(196)
    expect(stderr).toMatch(/^… and 824 more lines and 1499 more files: glovebox changes [a-z0-9]{8}$/m)
    expect(stderr).toContain('1500 changes of')
  }, 600_000)

  test('keeps everything else when a path is too long to be opened, and says so once', async () => {
    const program = `
import os
open('kept', 'w').write('kept\\n')
os.mkdir('deep'); os.chdir('deep')
for depth in range(100):
    os.mkdir('d' * 200); os.chdir('d' * 200)
    for name in range(20): open(f'{name}', 'w').close()
`
    const { code, stderr } = await here(account, program)
    expect(code).toBe(0)
    expect(stderr).toContain('A  kept  5 bytes')
    expect(stderr.split('\n').filter((line) => line.startsWith('!'))).toEqual([
      expect.stringMatching(/^! {2}deep\/d+….* not taken: its path of \d+ bytes is longer than 4084$/),
    ])
    expect(stderr).toMatch(/^glovebox: \d+ changes of .* kept aside/m)
  }, 600_000)
})
