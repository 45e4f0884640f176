import { expect, test } from 'vitest'
import type { Beneath, BeneathEntry } from '../../src/contract/driver.js'
import type { ManifestEntry } from '../../src/contract/snapshot-store.js'
import type { LayerAccess, ListedEntry } from '../../src/engine/snapshots-access.js'
import { entriesOf, readDeeds } from '../../src/engine/snapshots-deeds.js'
import type { KeptLayer } from '../../src/engine/snapshots-layers.js'
import { beneathOf, viewOf } from '../../src/engine/snapshots-view.js'

const owner = { uid: 0, gid: 0 } as const
const lower = (type: BeneathEntry['type'], mode = 0o644, size = 4): BeneathEntry => ({ type, mode, ...owner, size, target: type === 'link' ? 'goal' : '' })

/** A tree by its paths, each of which can be asked for. */
function overlayOn(tree: Readonly<Record<string, BeneathEntry>>): KeptLayer & { readonly asked: string[] } {
  const asked: string[] = []
  const beneath: Beneath = {
    look: (path) => Promise.resolve(tree[path]),
    names: (folder) =>
      Promise.resolve(
        Object.keys(tree).flatMap((path) =>
          path.startsWith(`${folder}/`) ? (path.slice(folder.length + 1).split('/')[1] ? [] : [path.slice(folder.length + 1)]) : [],
        ),
      ),
    hash: (path) => {
      asked.push(path)
      return Promise.resolve('of what lies beneath')
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
  return { path: '/usr', prefix: 'usr', mounts: [], over: { index: 0, open: () => Promise.resolve(beneath) }, asked }
}

const listed = (path: string, type: ListedEntry['type'], rest: Partial<ListedEntry> = {}): ListedEntry => ({
  path,
  type,
  mode: type === 'folder' ? 0o755 : 0o644,
  ...owner,
  size: 4,
  hash: 'new',
  target: '',
  file: path,
  stamp: '',
  ...rest,
})

async function entries(layer: KeptLayer, found: readonly ListedEntry[]): Promise<string[]> {
  const access = {
    async *list() {
      yield* found
    },
  } as unknown as LayerAccess
  const told = entriesOf(await readDeeds(layer, access, { hashes: true }), layer)
  return told.map(({ type, path, hides }) => `${type} ${path}${hides ? ' hides' : ''}`)
}

const tree = {
  bin: lower('folder', 0o755),
  'bin/sh': lower('file'),
  share: lower('folder', 0o755),
  'share/doc': lower('folder', 0o755),
  'share/doc/a': lower('file'),
}

test('folders that are as they lie beneath, and marks where nothing lies, say nothing', async () => {
  const found = [listed('bin', 'folder'), listed('bin/never', 'device', { mark: 'removed' }), listed('bin/sh', 'device', { mark: 'removed' })]
  expect(await entries(overlayOn(tree), found)).toEqual(['removed usr/bin/sh'])
  expect(await entries(overlayOn(tree), [listed('bin', 'folder', { mode: 0o700 })])).toEqual(['folder usr/bin'])
  expect(await entries(overlayOn(tree), [listed('bin', 'folder', { uid: 1000 })])).toEqual(['folder usr/bin'])
})

test('a folder hides what lies beneath when it is marked so, or when no folder is there; what is in it says nothing of that again', async () => {
  const found = [
    listed('share', 'folder', { mark: 'opaque' }),
    listed('share/doc', 'folder'),
    listed('share/doc/a', 'device', { mark: 'removed' }),
    listed('sh', 'folder'),
    listed('sh/in', 'folder', { mark: 'opaque' }),
  ]
  expect(await entries(overlayOn(tree), found)).toEqual(['folder usr/share hides', 'folder usr/share/doc', 'folder usr/sh hides', 'folder usr/sh/in'])
})

test('what was given and is as it was says nothing; what is gone is removed', async () => {
  const given = [
    { path: 'tmp', type: 'folder', mode: 0o1777, target: '' },
    { path: 'bin', type: 'link', mode: 0o777, target: 'usr/bin' },
    { path: 'lib', type: 'link', mode: 0o777, target: 'usr/lib' },
    { path: 'run', type: 'folder', mode: 0o755, target: '' },
    { path: 'mnt', type: 'folder', mode: 0o755, target: '' },
  ] as const
  const layer: KeptLayer = { path: '/', prefix: '', mounts: ['mnt'], given }
  const found = [
    listed('bin', 'link', { mode: 0o777, target: 'usr/bin' }),
    listed('lib', 'link', { mode: 0o777, target: 'other' }),
    listed('mnt', 'folder'),
    listed('tmp', 'folder', { mode: 0o1777 }),
  ]
  expect(await entries(layer, found)).toEqual(['link lib', 'removed run'])
})

const entry = (path: string, type: ManifestEntry['type'], rest: Partial<ManifestEntry> = {}): ManifestEntry => ({
  path: `usr/${path}`,
  type,
  mode: type === 'folder' ? 0o755 : 0o644,
  ...owner,
  size: type === 'file' ? 4 : 0,
  hash: type === 'file' ? 'new' : '',
  target: '',
  sameAs: '',
  ...rest,
})

test('programs see what was written, and what lies beneath and is neither replaced, removed nor hidden', async () => {
  const layer = overlayOn(tree)
  const written = [entry('bin/sh', 'file'), entry('share', 'removed'), entry('new', 'file')]
  const beneath = await beneathOf([layer], written)
  expect(beneath.map(({ path }) => path)).toEqual(['usr/bin/sh', 'usr/share', 'usr/share/doc', 'usr/share/doc/a'])
  expect(layer.asked).toEqual(['bin/sh'])
  const paths = (seen: readonly ManifestEntry[]): string[] => seen.map(({ path, hash }) => `${path}${hash && ` ${hash}`}`)
  expect(paths(viewOf(written, beneath))).toEqual(['usr/bin/sh new', 'usr/new new'])
  expect(paths(viewOf([], beneath))).toEqual(['usr/bin/sh of what lies beneath', 'usr/share', 'usr/share/doc', 'usr/share/doc/a'])
  expect(paths(viewOf([entry('share', 'file')], beneath))).toEqual(['usr/share new', 'usr/bin/sh of what lies beneath'])
  expect(paths(viewOf([entry('share', 'folder', { hides: true })], beneath))).toEqual(['usr/share', 'usr/bin/sh of what lies beneath'])
  expect(paths(viewOf([entry('share', 'folder')], beneath))).toHaveLength(4)
})

test('only a file that could be the same is read beneath', async () => {
  const layer = overlayOn(tree)
  await beneathOf([layer], [entry('bin/sh', 'file', { size: 5 }), entry('share/doc/a', 'link')])
  expect(layer.asked).toEqual([])
})
