import { chmodSync, existsSync, lchownSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { testUnless } from '../unless.js'
import { accounts, gloveboxAs, makeOwn } from './accounts.js'
import { type CliResult, collect, fake, runFake, startCli } from './cli.js'

const isTmpShared = realpathSync('/tmp') === '/tmp' && statSync('/tmp').uid === 0 && (statSync('/tmp').mode & 0o1000) !== 0

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

test('what cannot be moved is told once, with the flag, and before anything starts where that is known', async () => {
  const missing = await runFake(['--upload', `${folder}/missing`], program())
  expect([missing.code, missing.stderr]).toEqual([125, `glovebox: --upload ${folder}/missing: ${folder}/missing on this machine does not exist\n`])
  writeFileSync(join(folder, 'mine'), 'mine\n')
  const there = await runFake(['--download', `file:${folder}/mine`], program())
  expect([there.code, there.stderr]).toEqual([
    125,
    `glovebox: --download file:${folder}/mine: ${folder}/mine is there already\nhint: glovebox run --download file:${folder}/mine.new -- …\n`,
  ])
  expect([existsSync(ran()), readFileSync(join(folder, 'mine'), 'utf8')]).toEqual([false, 'mine\n'])
})

const memory = '/dev/shm'
const isApart = existsSync(memory) && statSync(memory).dev !== statSync(tmpdir()).dev

describe.skipIf(!isApart)('run --download to another file system', () => {
  let there: string
  beforeEach(() => {
    there = mkdtempSync(join(memory, 'gbx-transfers-'))
  })
  afterEach(() => rmSync(there, { recursive: true }))

  test.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('is called off by %s while it is copied, and leaves nothing', async (signal, code) => {
    const script = 'mkdir big; for i in $(seq 400); do head -c 30000 /dev/zero > big/$i; done'
    const child = startCli(['run', '-q', ...fake, '--download', `big:${there}/out`, '--', 'sh', '-c', script], { GLOVEBOX_CACHE_DIR: join(folder, 'cache') })
    const result = collect(child)
    while ((await readdir(there)).length === 0 && child.exitCode === null) await sleep(2)
    child.kill(signal)
    expect(await result).toMatchObject({ code, stderr: '' })
    expect(await readdir(there)).toEqual([])
    expect((await readdir(join(folder, 'cache'))).filter((name) => name.includes('download'))).toEqual([])
  })
})

describe.each(accounts)('run --upload and --download by way of a link in /tmp, as $name', (account) => {
  const link = (): string => `/tmp/${basename(folder)}-link`
  afterEach(() => rmSync(link(), { force: true }))

  const transferAs = (uid: number): Promise<CliResult> => {
    makeOwn(account, folder, ['home', 'changes', 'data'])
    writeFileSync(join(folder, 'data', 'in'), 'in\n')
    chmodSync(folder, 0o755)
    symlinkSync(join(folder, 'data'), link())
    lchownSync(link(), uid, uid)
    const flags = ['--upload', `${link()}/in:in`, '--download', `out:${link()}/out`]
    return gloveboxAs(account, ['run', '-q', ...fake, ...flags, '--', 'cp', 'in', 'out'], { top: folder, cwd: '/' })
  }

  const refused = [125, expect.stringContaining('is a link, which a guest may have planted')]

  testUnless(!isTmpShared && '/tmp is no folder of root’s with a sticky bit here')('refuse one of their own, which others may have moved there', async () => {
    const { code, stderr } = await transferAs(account.uid)
    expect([code, stderr]).toEqual(refused)
  })

  testUnless(process.getuid?.() !== 0 && 'only root makes a link that is another’s')('refuse another’s', async () => {
    const { code, stderr } = await transferAs(54_321)
    expect([code, stderr]).toEqual(refused)
  })
})
