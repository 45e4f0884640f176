import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { ManifestEntry } from '../../src/contract/snapshot-store.js'
import { type Difference, diffEntries, exportedPaths, topmostRemovals } from '../../src/policy/diff.js'

const plain = { mode: 0o644, uid: 1000, gid: 1000, size: 0, hash: '', target: '', sameAs: '' } as const

function file(path: string, content = 'a', rest: Partial<ManifestEntry> = {}): ManifestEntry {
  return { ...plain, path, type: 'file', size: content.length, hash: content.padEnd(64, '0'), ...rest }
}

function folder(path: string): ManifestEntry {
  return { ...plain, path, type: 'folder', mode: 0o755 }
}

function shown(differences: readonly Difference[]): string[] {
  return differences.map(({ type, entry }) => `${type} ${entry.type} ${entry.path}`)
}

test('what came, what changed and what went is told, sorted by the bytes of the path', () => {
  const before = [file('w/a'), file('w/b'), file('w/c')]
  const now = [file('w/\xc3\xa9'), file('w/c', 'other'), file('w/a'), folder('w/Z')]
  expect(shown(diffEntries(before, now))).toEqual(['added folder w/Z', 'removed file w/b', 'changed file w/c', 'added file w/\xc3\xa9'])
})

test.each([
  ['mode', { mode: 0o600 }],
  ['owner', { uid: 0 }],
  ['group', { gid: 0 }],
  ['content', { hash: 'b'.repeat(64) }],
] as const)('another %s is a change', (_, rest) => {
  expect(shown(diffEntries([file('w/a')], [{ ...file('w/a'), ...rest }]))).toEqual(['changed file w/a'])
})

test('another name of the same file is no change', () => {
  expect(diffEntries([file('w/a'), file('w/b')], [file('w/a'), file('w/b', 'a', { sameAs: 'w/a' })])).toEqual([])
})

test('a file in the place of a folder takes what was in the folder with it', () => {
  const differences = diffEntries([folder('w/d'), file('w/d/x'), folder('w/e'), file('w/e/y')], [file('w/d')])
  expect(shown(differences)).toEqual(['changed file w/d', 'removed file w/d/x', 'removed folder w/e', 'removed file w/e/y'])
  expect(topmostRemovals(differences).map(({ path }) => path)).toEqual(['w/e'])
})

test('a file with several names is archived whole when one of them is', () => {
  const now = [file('w/a'), file('w/b', 'a', { sameAs: 'w/a' }), file('w/c')]
  expect([...exportedPaths(diffEntries([file('w/a'), file('w/c')], now), now)].sort()).toEqual(['w/a', 'w/b'])
})

const part = fc.constantFrom('a', 'b', 'c')
const tree = fc
  .uniqueArray(fc.record({ parts: fc.array(part, { minLength: 1, maxLength: 3 }), content: fc.constantFrom('', 'x', 'y'), isFolder: fc.boolean() }), {
    maxLength: 12,
    selector: ({ parts }) => parts.join('/'),
  })
  .map((nodes) => {
    const entries = new Map<string, ManifestEntry>([['w', folder('w')]])
    for (const { parts, content, isFolder } of nodes.sort((left, right) => left.parts.length - right.parts.length)) {
      const path = `w/${parts.join('/')}`
      if (entries.get(path.slice(0, path.lastIndexOf('/')))?.type === 'folder') entries.set(path, isFolder ? folder(path) : file(path, content))
    }
    return [...entries.values()]
  })

/** What somebody has who unpacks an archive of the changes over what was there before. */
function applied(before: readonly ManifestEntry[], now: readonly ManifestEntry[]): ManifestEntry[] {
  const differences = diffEntries(before, now)
  const state = new Map(before.map((entry) => [entry.path, entry]))
  const drop = (path: string): void => {
    for (const known of [...state.keys()]) if (known === path || known.startsWith(`${path}/`)) state.delete(known)
  }
  for (const { path } of topmostRemovals(differences)) drop(path)
  const paths = exportedPaths(differences, now)
  for (const entry of now) {
    if (!paths.has(entry.path)) continue
    if (entry.type !== 'folder') drop(entry.path)
    state.set(entry.path, entry)
  }
  return [...state.values()].sort((left, right) => (left.path < right.path ? -1 : 1))
}

test('changes applied to what was before make what is now', () => {
  fc.assert(
    fc.property(tree, tree, (before, now) => {
      expect(applied(before, now)).toEqual([...now].sort((left, right) => (left.path < right.path ? -1 : 1)))
    }),
    { numRuns: 300 },
  )
})

test('nothing differs from itself, and what differs one way differs the other way too', () => {
  fc.assert(
    fc.property(tree, tree, (one, other) => {
      expect(diffEntries(one, [...one].reverse())).toEqual([])
      const back = { added: 'removed', removed: 'added', changed: 'changed' } as const
      const there = diffEntries(one, other).map(({ type, entry }) => `${entry.path} ${type}`)
      expect(diffEntries(other, one).map(({ type, entry }) => `${entry.path} ${back[type]}`)).toEqual(there)
    }),
    { numRuns: 300 },
  )
})
