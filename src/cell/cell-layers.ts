import type { CellLayer, GivenEntry } from '../contract/driver.js'
import { type CellPlan, diskFolders, ownFolders, wardenPath } from './arguments.js'
import { givenCertificates } from './cell-network.js'
import { placedMounts } from './placed-mounts.js'
import { isOverlay } from './root-mode.js'

/** `isFolder` tells the folders of the template from its files, which no layer is laid over. */
export function cellLayers(plan: CellPlan, isFolder: (path: string) => boolean): readonly CellLayer[] {
  const ofMounts = placedMounts(plan).flatMap(({ mode, target, layer }): CellLayer[] =>
    mode === 'overlay' ? [{ kind: 'overlay', path: target, index: layer }] : [],
  )
  if (!isOverlay(plan)) return [...diskFolders(plan).map(({ path }): CellLayer => ({ kind: 'folder', path })), ...ofMounts]
  const { binds } = plan.spec.root
  const ofTemplate = binds.flatMap(({ source, target }, index): CellLayer[] => (isFolder(source) ? [{ kind: 'overlay', path: target, index }] : []))
  const root: CellLayer = { kind: 'folder', path: '/', given: givenInRoot(plan), mounted: ['/dev', '/proc', ...binds.map(({ target }) => target)] }
  return [root, { kind: 'folder', path: '/dev/shm' }, ...ofTemplate, ...ofMounts]
}

/** What bwrap and the warden make in an empty root, but for what is mounted there. */
function givenInRoot(plan: CellPlan): GivenEntry[] {
  const folders = ownFolders(plan).map(({ path, mode }): GivenEntry => ({ path: path.slice(1), type: 'folder', mode: Number.parseInt(mode, 8), target: '' }))
  const shown = (plan.spec.root.folders ?? []).map((path): GivenEntry => ({ path: path.slice(1), type: 'folder', mode: 0o755, target: '' }))
  const links = [...plan.spec.root.symlinks, { path: '/var/run', target: '/run' }]
  return [
    { path: wardenPath.slice(1), type: 'file', mode: 0o444, target: '' },
    ...folders,
    ...shown,
    ...givenCertificates(plan.spec),
    ...links.map(({ path, target }): GivenEntry => ({ path: path.slice(1), type: 'link', mode: 0o777, target })),
  ]
}
