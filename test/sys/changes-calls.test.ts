import { spawnSync } from 'node:child_process'
import fs, { existsSync, mkdirSync, mkdtempSync, readFileSync, readlinkSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import promises from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { ChangeSet, Written } from '../../src/contract/changes.js'
import { createChangeStore } from '../../src/sys/changes-store.js'

let top: string
let folder: string
let acts: string[]
const real = {
  fsync: fs.fsync,
  fsyncSync: fs.fsyncSync,
  renameSync: fs.renameSync,
  rmdirSync: fs.rmdirSync,
  lstatSync: fs.lstatSync,
  openSync: fs.openSync,
  lstat: promises.lstat,
  open: promises.open,
}
let looks: number

/** The same call, counted. */
const counted =
  <Args extends unknown[], Result>(call: (...args: Args) => Result) =>
  (...args: Args): Result => {
    looks += 1
    return call(...args)
  }

/** Where a descriptor, or a path through one, leads; what changes from run to run is left out. */
function nameOf(path: unknown): string {
  const through = /^\/proc\/self\/fd\/(\d+)(.*)$/.exec(String(path))
  const name =
    typeof path === 'number' ? readlinkSync(`/proc/self/fd/${path}`) : through ? `${readlinkSync(`/proc/self/fd/${through[1]}`)}${through[2]}` : String(path)
  return name
    .replace(`${top}/`, '')
    .replace(/\.glovebox\.[^/]+\.apply/, 'STAGING')
    .replace(/store\/[a-z0-9]{20}/, 'SET')
}

/** The calls are made as ever, and noted. */
beforeEach(() => {
  top = realpathSync(mkdtempSync(join(tmpdir(), 'gbx-durable-')))
  folder = join(top, 'project')
  acts = []
  looks = 0
  for (const name of ['project', 'project/src', 'store']) mkdirSync(join(top, name))
  Object.assign(fs, {
    fsync: (descriptor: number, done: (error: Error | null) => void) => {
      acts.push(`sync ${nameOf(descriptor)}`)
      real.fsync(descriptor, done)
    },
    fsyncSync: (descriptor: number) => {
      acts.push(`sync ${nameOf(descriptor)}`)
      real.fsyncSync(descriptor)
    },
    renameSync: (from: string, to: string) => {
      acts.push(`rename ${nameOf(to)}`)
      real.renameSync(from, to)
    },
    rmdirSync: (path: string) => {
      acts.push(`rmdir ${nameOf(path)}`)
      real.rmdirSync(path)
    },
    lstatSync: counted(real.lstatSync as () => unknown),
    openSync: counted(real.openSync),
  })
  Object.assign(promises, { lstat: counted(real.lstat as () => unknown), open: counted(real.open) })
  syncBuiltinESMExports()
})

afterEach(() => {
  const { lstat, open, ...calls } = real
  Object.assign(fs, calls)
  Object.assign(promises, { lstat, open })
  syncBuiltinESMExports()
  rmSync(top, { recursive: true, force: true })
})

const store = () => createChangeStore(() => join(top, 'store'))

/** Each file holds its path. */
async function taken(written: readonly Written[]): Promise<ChangeSet> {
  async function* content(path: string): AsyncGenerator<Uint8Array> {
    yield Buffer.from(path)
  }
  const set = await store().take({ folder, command: [], startedMs: Date.now() + 1000, written, content, mostBytes: 1000 })
  if (set === undefined) throw new Error('nothing was taken')
  return set
}

test('new content is on the disk before anything is changed, and the names before the changes are forgotten', async () => {
  writeFileSync(join(folder, 'src', 'old'), 'old')
  const written: Written[] = [
    { type: 'file', path: 'one', mode: 0o400, size: 1 },
    { type: 'folder', path: 'src', mode: 0o755, hides: false },
    { type: 'file', path: 'src/old', mode: 0o644, size: 1 },
    { type: 'folder', path: 'new', mode: 0o755, hides: false },
    { type: 'file', path: 'new/two', mode: 0o644, size: 1 },
  ]
  const set = await taken(written)
  acts.length = 0
  await store().apply(set)
  expect(readFileSync(join(folder, 'new/two'), 'utf8')).toBe('new/two')
  const about = acts.filter((act) => !act.includes('locks'))
  const [firstRename, lastRename] = [about.findIndex((act) => act.startsWith('rename')), about.findLastIndex((act) => act.startsWith('rename'))]
  const forgotten = about.findIndex((act) => act.startsWith('rmdir SET'))
  expect(about.slice(0, firstRename).sort()).toEqual([
    'sync SET',
    'sync SET/applying',
    'sync project/STAGING/1',
    'sync project/STAGING/2',
    'sync project/STAGING/3',
  ])
  expect(about.slice(firstRename, lastRename + 1).sort()).toEqual(['rename project/new/two', 'rename project/one', 'rename project/src/old'])
  expect(about.slice(lastRename + 1, forgotten).filter((act) => act.startsWith('sync'))).toEqual([
    'sync project',
    'sync project/new',
    'sync project/src',
    'sync project',
  ])
  expect(forgotten).toBeGreaterThan(lastRename)
})

test('the cost is that of the changes: a folder of 5,000 files is never read through', async () => {
  spawnSync('sh', ['-c', 'mkdir big && cd big && seq 5000 | xargs touch'], { cwd: folder })
  looks = 0
  const set = await taken([
    { type: 'folder', path: 'big', mode: 0o755, hides: false },
    { type: 'file', path: 'big/77', mode: 0o644, size: 1 },
    { type: 'removed', path: 'big/78' },
  ])
  await store().apply(set)
  expect([readFileSync(join(folder, 'big/77'), 'utf8'), existsSync(join(folder, 'big/78'))]).toEqual(['big/77', false])
  expect(looks).toBeGreaterThan(5)
  expect(looks).toBeLessThan(100)
})
