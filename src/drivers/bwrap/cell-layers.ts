import type { CellLayer } from '../../contract/driver.js'
import { type CellPlan, diskFolders } from './arguments.js'
import { placedMounts } from './placed-mounts.js'
import { isOverlay } from './root-mode.js'

/** `isFolder` tells the folders of the template from its files, which no layer is laid over. */
export function cellLayers(plan: CellPlan, isFolder: (path: string) => boolean): readonly CellLayer[] {
  const ofMounts = placedMounts(plan).flatMap(({ mode, target, layer }): CellLayer[] =>
    mode === 'overlay' ? [{ kind: 'overlay', path: target, index: layer }] : [],
  )
  if (!isOverlay(plan)) return [...diskFolders(plan).map(({ path }): CellLayer => ({ kind: 'folder', path })), ...ofMounts]
  const ofTemplate = plan.spec.root.binds.flatMap(({ source, target }, index): CellLayer[] =>
    isFolder(source) ? [{ kind: 'overlay', path: target, index }] : [],
  )
  return [{ kind: 'folder', path: '/' }, { kind: 'folder', path: '/dev/shm' }, ...ofTemplate, ...ofMounts]
}
