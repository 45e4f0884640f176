import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createPlatform, Sandbox } from '../../src/index.js'
import { currentOwner, ownerName } from '../../src/sys/owner.js'
import { testUnless } from '../unless.js'
import { accounts, type Account } from './accounts.js'
import { cli, type CliResult, cliPath, collect, fake, startCli } from './cli.js'

const uuid = '00000000-0000-4000-8000-000000000000'
/** Its pid is in use, by another: this process. */
const dead = ownerName({ ...currentOwner(), startTime: '1' })
const living = ownerName(currentOwner())
/** An ordinary user's folders can be anywhere; root's records cannot. */
const account = accounts.at(-1) as Account
const isRoot = process.getuid?.() === 0

let home: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'gbx-gc-'))
  chmodSync(home, 0o755)
  for (const name of ['tmp', 'state', 'cache', 'keys', 'snapshots', 'templates', 'changes', 'elsewhere']) plant(name)
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

/** A folder, or with a text a file, of the account's. */
function plant(path: string, text?: string): string {
  const whole = join(home, path)
  if (!existsSync(dirname(whole))) plant(dirname(path))
  if (text === undefined) mkdirSync(whole, { mode: 0o700 })
  else writeFileSync(whole, text)
  chownSync(whole, account.uid, account.uid)
  return whole
}

function gc(flags: readonly string[] = [], wrapper: readonly string[] = []): Promise<CliResult> {
  const places = Object.fromEntries(
    Object.entries({ STATE: 'state', CACHE: 'cache', KEY: 'keys', SNAPSHOT: 'snapshots', TEMPLATE: 'templates', CHANGES: 'changes', HISTORY: 'history' }).map(
      ([name, folder]) => [`GLOVEBOX_${name}_DIR`, join(home, folder)],
    ),
  )
  const env = { ...process.env, ...places, TMPDIR: join(home, 'tmp'), HOME: home, XDG_RUNTIME_DIR: '', DOCKER_HOST: `unix://${home}/none`, NO_COLOR: '1' }
  const [file = '', ...rest] = [...wrapper, ...account.wrapper, process.execPath, cliPath, 'gc', ...flags]
  const child = spawn(file, rest, { env })
  child.stdin.end()
  return collect(child)
}

interface Found {
  readonly kind: string
  readonly what: string
  readonly fate: string
}

async function found(flags: readonly string[] = []): Promise<Found[]> {
  const { stdout } = await gc(['--json', ...flags])
  return (JSON.parse(stdout) as { readonly findings: Found[] }).findings
}

const draft = `.glovebox.${dead}-${uuid}.draft`
const leftovers = {
  cell: `state/cells/${dead}-abcdefghij`,
  ids: `state/ranges/2046/${dead}`,
  bundle: `state/bundles/${dead}-abcdefghij/config.json`,
  note: `state/notes/${dead}-${uuid}`,
  daemon: 'state/daemon/0123456789ab.json',
  lock: `state/daemon/locks/new-${dead}-${uuid}/x`,
  folder: `tmp/glovebox-fake-${dead}-abc/file`,
  snapshot: `snapshots/drafts/${dead}-${uuid}/manifest`,
  template: `templates/drafts/${dead}-${uuid}/root/file`,
  package: `cache/packages/drafts/${dead}-${uuid}`,
  changes: `changes/draft-${dead}-${uuid}/content`,
  draft: `keys/${draft}`,
} as const

function plantAll(): void {
  for (const path of Object.values(leftovers)) plant(path, '')
  writeFileSync(join(home, leftovers.daemon), JSON.stringify({ owner: dead, version: '0', identity: 'x', startedAt: '' }))
}

test('nothing found is said in one line', async () => {
  expect(await gc()).toMatchObject({ code: 0, stdout: '', stderr: 'glovebox: nothing was left behind here\n' })
})

test('what a dead process left is shown by --dry-run, then removed, and then there is nothing', async () => {
  plantAll()
  const dry = await found(['--dry-run'])
  expect([...new Set(dry.map(({ kind }) => kind))].sort()).toEqual(Object.keys(leftovers).sort())
  expect([dry.every(({ fate }) => fate === 'due'), Object.values(leftovers).every((path) => existsSync(join(home, path)))]).toEqual([true, true])
  const { code, stdout, stderr } = await gc()
  expect([code, stderr]).toEqual([0, `glovebox: ${dry.length} removed\n`])
  expect(stdout.split('\n')[0]).toMatch(/^KIND +WHAT +MADE BY +WHAT WAS DONE$/)
  expect(Object.values(leftovers).filter((path) => existsSync(join(home, path)))).toEqual([])
  expect(await found()).toEqual([])
})

test('what a living process has is left alone, and so is what nobody here understands', async () => {
  const others = [`2~${dead}-abcdefghij`, 'x', `${dead.slice(0, -1)}~-abcdefghij`]
  const paths = [`state/cells/${living}-abcdefghij`, ...others.map((name) => `state/cells/${name}`), `tmp/glovebox-fake-${living}-abc/file`]
  for (const path of paths) plant(path, '')
  plant(`state/notes/${dead}-${uuid}`, JSON.stringify({ version: 2, kind: 'drafts', path: '/', how: 'newer' }))
  const findings = await found()
  expect(findings.map(({ fate }) => fate)).toEqual(findings.map(() => 'kept'))
  expect(findings).toHaveLength(paths.length + 1)
  expect([...paths, `state/notes/${dead}-${uuid}`].filter((path) => !existsSync(join(home, path)))).toEqual([])
})

test('a note leads to drafts elsewhere; one that was cut short leads nowhere and goes', async () => {
  plant(`elsewhere/${draft}`, 'half')
  plant('elsewhere/mine', 'whole')
  plant(`state/notes/${dead}-${uuid}`, JSON.stringify({ version: 1, kind: 'drafts', path: join(home, 'elsewhere') }))
  plant(`state/notes/${dead}-${uuid.replace('4', '5')}`, '{"version":1,"ki')
  await gc()
  expect([readdirSync(join(home, 'elsewhere')), readdirSync(join(home, 'state/notes'))]).toEqual([['mine'], []])
})

test('a link with the name of a folder of ours leads nowhere, and a folder of another user is left alone', async () => {
  plant('elsewhere/precious', 'content')
  symlinkSync(join(home, 'elsewhere'), join(home, `tmp/glovebox-fake-${dead}-link`))
  const foreign = join(home, `tmp/glovebox-fake-${dead}-foreign`)
  mkdirSync(foreign)
  if (isRoot) chownSync(foreign, 65_533, 65_533)
  await gc()
  expect(readFileSync(join(home, 'elsewhere/precious'), 'utf8')).toBe('content')
  expect(existsSync(foreign)).toBe(isRoot)
})

test('what cannot be removed is told, keeps nothing else from it, and ends with 1', async () => {
  plantAll()
  chmodSync(join(home, 'state/cells'), 0o500)
  const { code, stdout } = await gc()
  chmodSync(join(home, 'state/cells'), 0o700)
  expect(code).toBe(1)
  expect(stdout).toMatch(/^cell +abcdefghij +\d+ +could not be removed: EACCES/m)
  expect(Object.values(leftovers).filter((path) => existsSync(join(home, path)))).toEqual([leftovers.cell])
})

testUnless(!isRoot && 'only root can mount a small disk')('a state folder on a full disk is swept all the same', async () => {
  const state = join(home, 'state')
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=64k,mode=0700,uid=${account.uid},gid=${account.uid}`, 'tmpfs', state])
  try {
    plantAll()
    expect(() => writeFileSync(join(state, 'filler'), Buffer.alloc(100_000))).toThrow('ENOSPC')
    expect((await gc()).code).toBe(0)
    expect(Object.values(leftovers).filter((path) => existsSync(join(home, path)))).toEqual([])
  } finally {
    execFileSync('umount', [state])
  }
})

test('the socket of a server that was killed is removed, one that is served is not', async () => {
  const [served, left] = [join(home, 'elsewhere/served'), join(home, 'elsewhere/left')]
  for (const path of [served, left])
    plant(`state/notes/${dead}-${path === served ? uuid : uuid.replace('4', '5')}`, JSON.stringify({ version: 1, kind: 'socket', path }))
  const server = createServer().listen(served)
  await once(server, 'listening')
  const killed = spawn(process.execPath, ['-e', `require('net').createServer().listen(${JSON.stringify(left)}, () => process.kill(process.pid, 'SIGKILL'))`])
  await once(killed, 'exit')
  for (const path of [served, left]) chownSync(path, account.uid, account.uid)
  chmodSync(served, 0o777)
  await gc()
  expect([existsSync(served), existsSync(left)]).toEqual([true, false])
  server.close()
})

describe('beside engines that live', () => {
  test('nothing of theirs is touched, also when they and gc are at it at the same time', async () => {
    const drivers = await (async () => {
      await using probing = createPlatform()
      return (await probing.probe()).filter(({ available }) => available).map(({ driver }) => driver)
    })()
    const driver = drivers.includes('bwrap') ? 'bwrap' : 'fake'
    await using platform = createPlatform()
    await using sandbox = await Sandbox.create({ platform, driver, minTier: 'none' })
    await sandbox.files.write('kept', 'all along')
    const flags = driver === 'fake' ? fake : ['--driver', driver]
    const other = startCli(['run', '--quiet', ...flags, '--', 'sh', '-c', 'echo ready; sleep 3; echo still'])
    const told = collect(other)
    const swept = await Promise.all([cli(['gc', '--json']), cli(['gc', '--json'])])
    const ofUs = swept
      .flatMap(({ stdout }) => (JSON.parse(stdout) as { findings: { pid?: number; fate: string }[] }).findings)
      .filter(({ pid }) => pid === process.pid)
    expect([ofUs.length > 0, ofUs.every(({ fate }) => fate === 'kept')]).toEqual([true, true])
    expect(await told).toMatchObject({ code: 0, stdout: 'ready\nstill\n' })
    expect((await sandbox.run(['cat', 'kept'])).stdout).toBe('all along')
  })
})

test('a state folder that others may write to is not believed', async () => {
  plantAll()
  chmodSync(join(home, 'state'), 0o777)
  expect(await gc()).toMatchObject({ code: 125, stdout: '' })
  expect(statSync(join(home, leftovers.cell)).isFile()).toBe(true)
})
