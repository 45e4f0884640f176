/** What changed between two states of a sandbox's files, by what they hold: times do not count, and neither does who shares an inode with whom. */
import type { ManifestEntry } from '../contract/snapshot-store.js'
import type { ChangeType } from '../contract/snapshots.js'

export interface Difference {
  readonly type: ChangeType
  /** As it is now; of what was removed, as it was. */
  readonly entry: ManifestEntry
}

/** Sorted by the bytes of their paths. */
export function diffEntries(before: Iterable<ManifestEntry>, now: Iterable<ManifestEntry>): Difference[] {
  const gone = new Map<string, ManifestEntry>()
  for (const entry of before) gone.set(entry.path, entry)
  const differences: Difference[] = []
  for (const entry of now) {
    const old = gone.get(entry.path)
    gone.delete(entry.path)
    if (old === undefined) differences.push({ type: 'added', entry })
    else if (!isSame(old, entry)) differences.push({ type: 'changed', entry })
  }
  for (const entry of gone.values()) differences.push({ type: 'removed', entry })
  return differences.sort((left, right) => (left.entry.path < right.entry.path ? -1 : 1))
}

function isSame(left: ManifestEntry, right: ManifestEntry): boolean {
  const hasOwner = left.uid === right.uid && left.gid === right.gid
  const hasContent = left.type === right.type && left.size === right.size && left.hash === right.hash && left.target === right.target
  return hasOwner && hasContent && left.mode === right.mode
}

/** The removed ones that say it all: what was in a folder that is gone, or that something else replaced, went with it. */
export function topmostRemovals(differences: readonly Difference[]): ManifestEntry[] {
  const removed = new Set(differences.filter(({ type }) => type === 'removed').map(({ entry }) => entry.path))
  const replaced = new Set(differences.filter(({ type, entry }) => type === 'changed' && entry.type !== 'folder').map(({ entry }) => entry.path))
  return differences.flatMap(({ type, entry }) => {
    const parent = entry.path.slice(0, Math.max(0, entry.path.lastIndexOf('/')))
    return type === 'removed' && !removed.has(parent) && !replaced.has(parent) ? [entry] : []
  })
}

/**
 * The paths that an archive of the changes must have: those that were added or changed, and every other name of the same file, since an archive can name a
 * file a second time only when it holds it the first time.
 */
export function exportedPaths(differences: readonly Difference[], now: Iterable<ManifestEntry>): Set<string> {
  const paths = new Set(differences.flatMap(({ type, entry }) => (type === 'removed' ? [] : [entry.path])))
  const groups = new Map<string, string[]>()
  for (const { path, sameAs } of now) if (sameAs !== '') groups.set(sameAs, [...(groups.get(sameAs) ?? [sameAs]), path])
  for (const names of groups.values()) if (names.some((name) => paths.has(name))) for (const name of names) paths.add(name)
  return paths
}
