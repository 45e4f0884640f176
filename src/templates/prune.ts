/** What nothing needs any more: layers and packages only spare a download, steps of Dockerfiles only spare doing them again. */
import { lstatSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { BuildOptions, Pruned } from '../contract/templates.js'
import { removeTree } from '../sys/tree-removal.js'
import { takeTurn } from './build.js'
import type { TemplateStore } from './store.js'

export interface PruneOptions extends BuildOptions {
  /** Also the packages that were downloaded from Debian. */
  readonly packages?: boolean
  /** Only tell. */
  readonly isTrial?: boolean
}

type Part = 'blobs' | 'steps' | 'packages'

/** One line for each kind, also where there was nothing. Whoever builds is waited for. */
export async function pruneTemplates(store: TemplateStore, options: PruneOptions = {}): Promise<readonly Pruned[]> {
  const { signal, onEvent: tell = () => undefined, packages = false, isTrial = false } = options
  using _lock = await takeTurn({ store, signal, tell })
  const unnamed = await store.unnamed()
  const parts: readonly (readonly [Pruned['what'], Part])[] = [
    ['layers', 'blobs'],
    ['steps', 'steps'],
    ...(packages ? ([['packages', 'packages']] as const) : []),
  ]
  const found: Pruned[] = parts.map(([what, part]) => ({ what, ...sizeOf([store.part(part)], 0) }))
  found.unshift({ what: 'templates without a name', ...sizeOf(unnamed), count: unnamed.length })
  if (isTrial) return found
  await store.sweep()
  for (const [, part] of parts) {
    const folder = store.part(part)
    for (const item of readdirSync(folder, { withFileTypes: true })) {
      if (item.isDirectory()) await removeTree(join(folder, item.name))
      else rmSync(join(folder, item.name), { force: true })
    }
  }
  return found
}

/** Files with several names count once. */
function sizeOf(paths: readonly string[], own = 1): { readonly count: number; readonly bytes: number } {
  const seen = new Set<number>()
  let count = 0
  let bytes = 0
  const look = (path: string, weight: number): void => {
    const status = lstatSync(path, { throwIfNoEntry: false })
    if (status === undefined) return
    if (status.isDirectory()) for (const name of readdirSync(path)) look(join(path, name), 1)
    else if (!seen.has(status.ino)) {
      seen.add(status.ino)
      count += weight
      bytes += status.size
    }
  }
  for (const path of paths) look(path, own)
  return { count, bytes }
}
