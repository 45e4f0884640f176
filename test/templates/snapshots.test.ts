import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { ManifestEntry, SnapshotDraft, SnapshotStore } from '../../src/contract/snapshot-store.js'
import { createSnapshotStore } from '../../src/templates/snapshots.js'
import { startScript } from '../sys/run-script.js'
import { testUnless } from '../unless.js'

let folder: string
let store: SnapshotStore

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gbx-snapshots-'))
  store = createSnapshotStore(() => folder)
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const entry: ManifestEntry = {
  path: 'workspace/a',
  type: 'file',
  mode: 0o644,
  uid: 1000,
  gid: 1000,
  size: 5,
  hash: 'ab'.repeat(32),
  target: '',
  sameAs: '',
}
const entries: readonly ManifestEntry[] = [
  { ...entry, path: 'workspace', type: 'folder', mode: 0o1755, size: 0, hash: '' },
  entry,
  { ...entry, path: 'workspace/\xff', size: 4097 },
  { ...entry, path: 'workspace/link', type: 'link', size: 3, hash: '', target: '\xc3\xa9\xfe' },
  { ...entry, path: 'workspace/same', sameAs: 'workspace/a' },
]

async function written(content = 'hello', of: readonly ManifestEntry[] = entries): Promise<SnapshotDraft> {
  const draft = await store.draft('host')
  for (const each of of) await draft.add(each)
  await draft.write(Buffer.from(content))
  return draft
}

async function keep(name?: string, content?: string, of?: readonly ManifestEntry[]) {
  const draft = await written(content, of)
  const info = await draft.keep(name)
  await draft.discard()
  return info
}

async function all<T>(items: AsyncIterable<T> | undefined): Promise<T[]> {
  const list: T[] = []
  for await (const item of items ?? []) list.push(item)
  return list
}

function objectOf(id: string): string {
  return join(folder, 'objects', id.slice('sha256:'.length))
}

test('what is kept is found again by id and by name, as it was', async () => {
  const info = await keep('first')
  expect(info).toMatchObject({ name: 'first', template: 'host', bytes: 4102, entries: 5 })
  for (const reference of [info.id, 'first']) {
    const found = await store.find(reference)
    expect(await all(found?.entries())).toEqual(entries)
    expect(Buffer.concat(await all(found?.archive())).toString()).toBe('hello')
    expect(found?.needs).toEqual({ diskBytes: 4096 + 8192, largestFileBytes: 4097, entries: 5 })
  }
  expect(await store.list()).toEqual([info])
})

test('nobody but its owner can look, and nobody can write', async () => {
  const { id } = await keep()
  const modes = (path: string): number => statSync(path).mode & 0o777
  expect(['drafts', 'objects', 'names'].map((name) => modes(join(folder, name)))).toEqual([0o700, 0o700, 0o700])
  expect(readdirSync(objectOf(id)).map((name) => [name, modes(join(objectOf(id), name))])).toEqual([
    ['about.json', 0o400],
    ['archive.tar', 0o400],
    ['manifest', 0o400],
  ])
})

test('equal content is one snapshot, whatever its archive says of times; of another template it is another', async () => {
  const first = await keep('one', 'times 1')
  const second = await keep('two', 'times 2')
  expect([second.id, (await store.list()).map(({ name }) => name)]).toEqual([first.id, ['one', 'two']])
  expect(Buffer.concat(await all((await store.find('two'))?.archive())).toString()).toBe('times 1')
  const draft = await store.draft('python')
  for (const each of entries) await draft.add(each)
  expect((await draft.seal()).info.id).not.toBe(first.id)
  await draft.discard()
  expect(readdirSync(join(folder, 'drafts'))).toEqual([])
})

test('a name moves to the snapshot that is given it later; the other stays without one', async () => {
  const first = await keep('latest')
  const second = await keep('latest', 'x', [entry])
  expect((await store.find('latest'))?.info.id).toBe(second.id)
  expect((await store.list()).map(({ id, name }) => [id, name])).toEqual([
    [first.id, undefined],
    [second.id, 'latest'],
  ])
})

test('removing by name takes the snapshot with all its names; removing again finds none', async () => {
  const { id } = await keep('one')
  await keep('two')
  expect(await store.remove('one')).toBe(true)
  expect([await store.list(), await store.find('two'), await store.find(id), await store.remove(id), await store.remove('two')]).toEqual([
    [],
    undefined,
    undefined,
    false,
    false,
  ])
  expect(readdirSync(folder).flatMap((name) => readdirSync(join(folder, name)))).toEqual([])
})

test('a draft is nobody else’s, and leaves nothing when it is discarded', async () => {
  const draft = await written()
  const sealed = await draft.seal()
  expect(await all(sealed.entries())).toEqual(entries)
  expect([await store.list(), await store.find(sealed.info.id)]).toEqual([[], undefined])
  await draft.discard()
  expect(readdirSync(join(folder, 'drafts'))).toEqual([])
})

test.each(['archive.tar', 'manifest', 'about.json'])('a snapshot whose %s was changed is never used, and can be removed', async (name) => {
  const { id } = await keep('hurt')
  const path = join(objectOf(id), name)
  const bytes = readFileSync(path)
  bytes[Math.floor(bytes.length / 2)] = (bytes[Math.floor(bytes.length / 2)] ?? 0) ^ 1
  chmodSync(path, 0o600)
  writeFileSync(path, bytes)
  const use = async (): Promise<unknown> => {
    const found = await store.find(id)
    return [await all(found?.entries()), await all(found?.archive())]
  }
  await expect(use()).rejects.toMatchObject({ code: 'broken', message: `snapshot ${id} is damaged: it is not what was kept` })
  expect((await store.list()).map((info) => info.id)).toEqual([id])
  expect(await store.remove(id)).toBe(true)
})

test('a snapshot that lost a file is damaged too', async () => {
  const { id } = await keep()
  rmSync(join(objectOf(id), 'archive.tar'))
  await expect(all((await store.find(id))?.archive())).rejects.toMatchObject({ code: 'broken' })
})

test('two writers of the same content at once both have it, under both names', async () => {
  const infos = await Promise.all(Array.from({ length: 8 }, (_, index) => keep(`writer ${index}`)))
  expect(new Set(infos.map(({ id }) => id)).size).toBe(1)
  expect((await store.list()).map(({ name }) => name).sort()).toEqual(infos.map(({ name }) => name))
  expect(readdirSync(join(folder, 'drafts'))).toEqual([])
})

test('what is removed while others keep it is whole or not there', async () => {
  const rounds = Array.from({ length: 20 }, async (_, index) => {
    const kept = await keep(`round ${index % 3}`).catch((error: unknown) => error)
    if (index % 2 === 0) await store.remove(`round ${(index + 1) % 3}`)
    return kept
  })
  for (const outcome of await Promise.all(rounds)) if (outcome instanceof Error) expect(outcome).toMatchObject({ code: 'conflict' })
  for (const { id } of await store.list()) expect(await all((await store.find(id))?.entries())).toEqual(entries)
  expect(readdirSync(join(folder, 'drafts'))).toEqual([])
})

test('what a writer that was killed left is swept by the next, and what a living one writes is not', async () => {
  const mine = await written()
  const script = await startScript(new URL('programs/write-snapshot.ts', import.meta.url), [folder])
  expect(await script.firstLine).toBe('writing')
  await keep()
  expect(readdirSync(join(folder, 'drafts')).length).toBe(2)
  script.child.kill('SIGKILL')
  await script.ended
  await keep()
  expect(readdirSync(join(folder, 'drafts')).length).toBe(1)
  expect((await mine.keep('late')).name).toBe('late')
})

testUnless(process.getuid?.() !== 0 && 'only root can make a small disk')('a full disk is told, and nothing of the snapshot stays', async () => {
  const disk = join(folder, 'disk')
  mkdirSync(disk)
  expect(spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m,mode=0700', 'tmpfs', disk]).status).toBe(0)
  try {
    const small = createSnapshotStore(() => disk)
    const draft = await small.draft('host')
    const filling = async (): Promise<void> => {
      for (let written = 0; written < 64; written += 1) await draft.write(new Uint8Array(262_144))
    }
    await expect(filling()).rejects.toMatchObject({ code: 'unavailable', message: expect.stringContaining('no space is left there (ENOSPC)') })
    await draft.discard()
    expect([readdirSync(join(disk, 'drafts')), await small.list()]).toEqual([[], []])
  } finally {
    spawnSync('umount', [disk])
  }
})
