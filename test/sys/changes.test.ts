import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { ChangeSet, Written } from '../../src/contract/changes.js'
import { lockFolder } from '../../src/sys/changes-lock.js'
import { createChangeStore } from '../../src/sys/changes-store.js'
import { currentOwner, ownerName } from '../../src/sys/owner.js'
import { startScript } from './run-script.js'

let top: string
let folder: string
let place: string

beforeEach(() => {
  top = realpathSync(mkdtempSync(join(tmpdir(), 'gbx-changes-')))
  folder = join(top, 'project')
  place = join(top, 'store')
  mkdirSync(place)
  mkdirSync(join(folder, 'src', 'deep'), { recursive: true })
  writeFileSync(join(folder, 'a.txt'), 'one\n')
  writeFileSync(join(folder, 'b.txt'), 'two\n')
  writeFileSync(join(folder, 'src', 'main.c'), 'int main;\n')
  writeFileSync(join(folder, 'src', 'deep', 'x'), 'x')
  mkdirSync(join(top, 'outside'))
  writeFileSync(join(top, 'outside', 'kept'), 'kept\n')
})

afterEach(() => rmSync(top, { recursive: true, force: true }))

const store = () => createChangeStore(() => place)

/** As if a command had written this over the folder, a while after the last change there. */
async function taken(written: readonly Written[], contents: Record<string, string> = {}): Promise<ChangeSet> {
  async function* content(path: string): AsyncGenerator<Uint8Array> {
    yield Buffer.from(contents[path] ?? '')
  }
  const set = await store().take({ folder, command: ['true'], startedMs: Date.now() + 1000, written, content, mostBytes: 2 ** 26 })
  if (set === undefined) throw new Error('nothing was taken')
  return set
}

const file = (path: string, mode = 0o644): Written => ({ type: 'file', path, mode, size: 0 })
const directory = (path: string, hides = false, mode = 0o755): Written => ({ type: 'folder', path, mode, hides })

function photograph(path: string): string[] {
  const seen = (name: string): string[] => {
    const at = join(path, name)
    const status = lstatSync(at)
    const content = status.isFile() ? readFileSync(at, 'utf8') : status.isSymbolicLink() ? readlinkSync(at) : '/'
    const below = status.isDirectory() ? readdirSync(at).flatMap((each) => seen(join(name, each))) : []
    return [`${name} ${(status.mode & 0o7777).toString(8)} ${content}`, ...below]
  }
  return readdirSync(path).flatMap(seen).sort()
}

test('what was written becomes changes with what was there before, and only what differs', async () => {
  const set = await taken([file('a.txt'), file('b.txt'), directory('src'), { type: 'removed', path: 'src/deep' }, file('new')], {
    'a.txt': 'ONE\n',
    'b.txt': 'two\n',
    new: 'n',
  })
  expect(set.changes.map(({ path, before, after }) => [path, before.type, after.type])).toEqual([
    ['a.txt', 'file', 'file'],
    ['new', 'none', 'file'],
    ['src/deep', 'folder', 'none'],
    ['src/deep/x', 'file', 'none'],
  ])
  expect(readdirSync(join(place, set.id, 'content'))).toHaveLength(2)
  expect(lstatSync(join(place, set.id)).mode & 0o777).toBe(0o700)
})

test('nothing is stored when nothing differs', async () => {
  async function* content(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('one\n')
  }
  const taking = { folder, command: ['true'], startedMs: Date.now() + 1000, mostBytes: 100, content }
  expect(await store().take({ ...taking, written: [directory('src'), file('a.txt')] })).toBeUndefined()
  expect(readdirSync(place)).toEqual([])
  await expect(store().take({ ...taking, written: [file('a.txt')], mostBytes: 3 })).rejects.toMatchObject({ code: 'full' })
  expect(readdirSync(place)).toEqual([])
})

test('taking that is called off keeps nothing', async () => {
  const controller = new AbortController()
  async function* content(path: string): AsyncGenerator<Uint8Array> {
    yield Buffer.from(path)
    controller.abort(new Error('too late'))
  }
  const taking = { folder, command: ['true'], startedMs: Date.now() + 1000, mostBytes: 100, content, signal: controller.signal }
  await expect(store().take({ ...taking, written: [file('one'), file('two')] })).rejects.toThrow('too late')
  await expect(store().take({ ...taking, signal: new AbortController().signal, written: [file('one'), file('two')] })).resolves.toMatchObject({
    changes: [{ path: 'one' }, { path: 'two' }],
  })
  expect(await store().list()).toHaveLength(1)
  expect(readdirSync(place)).toHaveLength(1)
})

test('an apply leaves the folder as the command left it: modes, links, folders for files and files for folders', async () => {
  const set = await taken(
    [
      file('a.txt', 0o4755),
      { type: 'link', path: 'b.txt', target: '../outside' },
      file('src/deep'),
      directory('src', false, 0o700),
      directory('fresh', false, 0o555),
      file('fresh/inner'),
      directory('fresh/empty'),
    ],
    { 'a.txt': '1', 'src/deep': 'now a file' },
  )
  expect(await store().apply(set)).toMatchObject({ left: 0 })
  expect(photograph(folder)).toEqual([
    'a.txt 755 1',
    'b.txt 777 ../outside',
    'fresh 555 /',
    'fresh/empty 755 /',
    'fresh/inner 644 ',
    'src 700 /',
    'src/deep 644 now a file',
    'src/main.c 644 int main;\n',
  ])
  expect(readdirSync(place)).toEqual(['locks'])
  expect(readFileSync(join(top, 'outside', 'kept'), 'utf8')).toBe('kept\n')
  chmodSync(join(folder, 'fresh'), 0o755)
})

test('a folder that was removed and made again keeps nothing of what it held, however deep', async () => {
  const set = await taken([directory('src', true), directory('src/deep'), file('src/deep/y')])
  await store().apply(set)
  expect(photograph(join(folder, 'src'))).toEqual(['deep 755 /', 'deep/y 644 '])
})

test('what changed underneath is refused by name, and nothing at all is done', async () => {
  const set = await taken([file('a.txt'), file('new'), { type: 'removed', path: 'src' }], { 'a.txt': 'mine' })
  writeFileSync(join(folder, 'a.txt'), 'theirs')
  writeFileSync(join(folder, 'new'), 'theirs too')
  writeFileSync(join(folder, 'src', 'late'), 'came later')
  const before = photograph(folder)
  const error = await store()
    .apply(set)
    .catch((reason: unknown) => reason)
  expect(error).toMatchObject({ code: 'conflict', message: 'nothing was applied: changed meanwhile: a.txt, new, src/late' })
  expect(photograph(folder)).toEqual(before)
  expect((await store().list()).map(({ id }) => id)).toEqual([set.id])
})

test('what was changed while the command ran is refused, for it cannot have known', async () => {
  async function* content(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('new')
  }
  const set = await store().take({ folder, command: [], startedMs: Date.now() - 60_000, written: [file('a.txt'), file('other')], content, mostBytes: 100 })
  if (set === undefined) throw new Error('nothing was taken')
  await expect(store().apply(set)).rejects.toThrow('a.txt (changed while the command ran)')
  expect(await store().apply(set, ['other'])).toEqual({ applied: ['other'], left: 1 })
})

test.each([
  ['the folder of a new file', 'src', 'src/new'],
  ['a folder on the way', 'src', 'src/deep/new'],
] as const)('no link is followed that took the place of %s', async (_what, swapped, path) => {
  const set = await taken([directory('src'), directory('src/deep'), file(path)], { [path]: 'escaped' })
  renameSync(join(folder, swapped), join(folder, 'moved'))
  symlinkSync(join(top, 'outside'), join(folder, swapped))
  mkdirSync(join(top, 'outside', 'deep'))
  await expect(store().apply(set)).rejects.toMatchObject({ code: 'conflict' })
  expect(photograph(join(top, 'outside'))).toEqual(['deep 755 /', 'kept 644 kept\n'])
})

test('a link in the place of a file is replaced nowhere but where it is, and only when it was there before', async () => {
  const set = await taken([file('a.txt')], { 'a.txt': 'escaped' })
  rmSync(join(folder, 'a.txt'))
  symlinkSync(join(top, 'outside', 'kept'), join(folder, 'a.txt'))
  await expect(store().apply(set)).rejects.toThrow('a.txt')
  expect(readFileSync(join(top, 'outside', 'kept'), 'utf8')).toBe('kept\n')
})

test.each(['../outside/kept', 'src/../../outside/kept', '/etc/hostname', 'src//x', '.'])('a path that leads elsewhere is never applied: %s', async (path) => {
  const set = await taken([file('a.txt')], { 'a.txt': 'x' })
  const manifest = join(place, set.id, 'manifest.json')
  writeFileSync(manifest, readFileSync(manifest, 'utf8').replace('"path":"a.txt","before":{"type":"file"', `"path":"${path}","before":{"type":"file"`))
  const changed = await store().find(set.id)
  await expect(store().apply(changed)).rejects.toMatchObject({ code: 'conflict' })
  expect(readFileSync(join(top, 'outside', 'kept'), 'utf8')).toBe('kept\n')
})

test('single files are taken with the folders that they need, and the rest stays pending', async () => {
  const set = await taken(
    [file('a.txt'), directory('lib'), directory('lib/inner'), file('lib/inner/one'), file('lib/two'), { type: 'removed', path: 'b.txt' }],
    {
      'a.txt': 'A',
    },
  )
  await expect(store().apply(set, ['nowhere'])).rejects.toMatchObject({ code: 'not-found' })
  expect(await store().apply(set, ['lib/inner/one'])).toEqual({ applied: ['lib', 'lib/inner', 'lib/inner/one'], left: 3 })
  expect([existsSync(join(folder, 'lib/two')), readFileSync(join(folder, 'a.txt'), 'utf8'), existsSync(join(folder, 'b.txt'))]).toEqual([false, 'one\n', true])
  expect(await store().apply(await store().find(set.id))).toEqual({ applied: ['a.txt', 'b.txt', 'lib/two'], left: 0 })
  expect(await store().list()).toEqual([])
})

test('names and links of any bytes are kept, applied, removed and chosen like others', async () => {
  const at = (...parts: (string | Buffer)[]): Buffer => Buffer.concat([Buffer.from(`${folder}/`), ...parts.map((part) => Buffer.from(part))])
  const odd = Buffer.of(0x63, 0xe9)
  mkdirSync(at('old', Buffer.of(0xff)))
  writeFileSync(at('old', Buffer.of(0xff), '/', odd), 'old\n')
  const set = await taken(
    [
      { type: 'removed', path: 'old\udcff' },
      directory('d\udcff'),
      file('d\udcff/c\udce9'),
      file('c\udce8'),
      { type: 'link', path: 'l', target: '\udcfe' },
      directory('src', true),
    ],
    { 'd\udcff/c\udce9': 'new\n' },
  )
  expect(set.changes.map(({ path, before, after }) => [path, before.type, after.type]).slice(0, 6)).toEqual([
    ['c\udce8', 'none', 'file'],
    ['d\udcff', 'none', 'folder'],
    ['d\udcff/c\udce9', 'none', 'file'],
    ['l', 'none', 'link'],
    ['old\udcff', 'folder', 'none'],
    ['old\udcff/c\udce9', 'file', 'none'],
  ])
  expect(await store().find(set.id)).toEqual(set)
  expect(Buffer.from(await store().newContent(set, set.changes[2] as never, 9)).toString()).toBe('new\n')
  expect(Buffer.from((await store().oldContent(set, set.changes[5] as never, 9)) ?? '').toString()).toBe('old\n')
  expect((await store().apply(set, ['d\udcff/c\udce9'])).applied).toEqual(['d\udcff', 'd\udcff/c\udce9'])
  expect(readFileSync(at('d', Buffer.of(0xff), '/', odd), 'utf8')).toBe('new\n')
  await store().apply(await store().find(set.id))
  expect(readdirSync(folder, { encoding: 'latin1' }).sort()).toEqual(['a.txt', 'b.txt', 'c\u00e8', 'd\u00ff', 'l', 'src'])
  expect(readlinkSync(join(folder, 'l'), 'buffer')).toEqual(Buffer.of(0xfe))
})

test('an apply that was stopped halfway says how far it came, and a second one goes on', async () => {
  const written = [file('a.txt'), file('src'), directory('b.txt'), file('b.txt/in'), directory('locked', false, 0o500)]
  const set = await taken(written, { 'a.txt': 'A', src: 'S' })
  const content = join(place, set.id, 'content')
  const hash = set.changes.find(({ path }) => path === 'a.txt')?.after
  const stored = join(content, hash?.type === 'file' ? hash.hash : '')
  const bytes = readFileSync(stored)
  writeFileSync(stored, 'something else')
  const before = photograph(folder)
  await expect(store().apply(set)).rejects.toThrow('is not what was stored')
  expect(photograph(folder)).toEqual(before)
  // As one that was killed in the middle leaves it.
  writeFileSync(stored, bytes)
  writeFileSync(join(place, set.id, 'applying'), '')
  rmSync(join(folder, 'src'), { recursive: true })
  rmSync(join(folder, 'b.txt'))
  mkdirSync(join(folder, 'b.txt'), { mode: 0o700 })
  await store().apply(set)
  expect(photograph(folder)).toEqual(['a.txt 644 A', 'b.txt 755 /', 'b.txt/in 644 ', 'locked 500 /', 'src 644 S'])
})

test('only one apply at a time changes a folder, and a dead one holds nobody up', async () => {
  const set = await taken([file('a.txt')], { 'a.txt': 'A' })
  {
    using _held = lockFolder(place, folder)
    await expect(store().apply(set)).rejects.toMatchObject({ code: 'busy' })
  }
  expect(readdirSync(join(place, 'locks'))).toEqual([])
  const dead = spawnSync('true').pid
  const held = lockFolder(place, folder)
  const [lock = ''] = readdirSync(join(place, 'locks'))
  renameSync(join(place, 'locks', lock, ownerName(currentOwner())), join(place, 'locks', lock, ownerName({ ...currentOwner(), pid: dead })))
  held[Symbol.dispose]()
  await store().apply(set)
  expect(readFileSync(join(folder, 'a.txt'), 'utf8')).toBe('A')
})

test('an apply that is killed in the middle leaves whole files only, and the next one finishes it and clears up', async () => {
  const many = Array.from({ length: 600 }, (_, index) => `f${index}`)
  const set = await taken(
    [directory('many'), ...many.map((name) => file(`many/${name}`))],
    Object.fromEntries(many.map((name) => [`many/${name}`, `${name}\n`.repeat(500)])),
  )
  const program = new URL('./programs/apply-changes.ts', import.meta.url)
  const counts = new Set<number>()
  for (const least of [0, 1, 300]) {
    const { child, ended } = await startScript(program, [place, set.id])
    const there = (): string[] => (existsSync(join(folder, 'many')) ? readdirSync(join(folder, 'many')) : [])
    while (there().length < least && child.exitCode === null) await new Promise((resolve) => setTimeout(resolve, 1))
    child.kill('SIGKILL')
    await ended
    counts.add(there().length)
    for (const name of there()) expect(readFileSync(join(folder, 'many', name), 'utf8')).toBe(`${name}\n`.repeat(500))
  }
  expect(counts.size).toBeGreaterThan(1)
  const [left] = await store().list()
  if (left !== undefined) await store().apply(left)
  expect(readdirSync(join(folder, 'many')).sort()).toEqual([...many].sort())
  expect(readdirSync(folder).filter((name) => name.startsWith('.glovebox'))).toEqual([])
})

test('a folder that somebody gave the name of what an apply left is never emptied, not even one of ours', async () => {
  const planted = `.glovebox.${ownerName({ ...currentOwner(), startTime: '1' })}-00000000-0000-4000-8000-000000000000.apply`
  renameSync(join(folder, 'src'), join(folder, planted))
  symlinkSync(join(top, 'outside'), join(folder, planted.replace('4000', '4001')))
  mkdirSync(join(folder, planted.replace('4000', '4002')))
  const set = await taken([file('a.txt')], { 'a.txt': 'A' })
  await store().apply(set)
  expect(readFileSync(join(folder, 'a.txt'), 'utf8')).toBe('A')
  expect(readFileSync(join(folder, planted, 'deep', 'x'), 'utf8')).toBe('x')
  expect(readdirSync(join(top, 'outside'))).toEqual(['kept'])
  // An empty one is what an apply leaves that is killed right at its beginning.
  expect(existsSync(join(folder, planted.replace('4000', '4002')))).toBe(false)
  expect(readdirSync(place)).toEqual(['locks'])
})

test('a drop forgets the changes and leaves the folder alone', async () => {
  const set = await taken([file('a.txt')], { 'a.txt': 'A' })
  await store().drop(await store().find(set.id.slice(0, 6)))
  expect([await store().list(), readFileSync(join(folder, 'a.txt'), 'utf8')]).toEqual([[], 'one\n'])
  await expect(store().find(set.id)).rejects.toMatchObject({ code: 'not-found' })
})

test.runIf(process.getuid?.() === 0)('a link that root takes over is the owner’s of the folder, as everything new is', async () => {
  chownSync(folder, 1234, 1235)
  const set = await taken([{ type: 'link', path: 'link', target: '/etc' }, directory('new'), file('new/file')])
  await store().apply(set)
  const owners = ['link', 'new', 'new/file'].map((name) => lstatSync(join(folder, name))).map(({ uid, gid }) => [uid, gid])
  expect(owners).toEqual(Array.from({ length: 3 }, () => [1234, 1235]))
})
