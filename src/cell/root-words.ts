import { type CellPlan, deviceLinks, hostDevices, layersPlace, stageName, wardenPath, writableFolders } from './arguments.js'
import { copyCertificates } from './cell-network.js'
import { placedMounts } from './placed-mounts.js'
import { isOverlay } from './root-mode.js'

/** How the root of a cell is made of what was staged, in the words of bwrap; `kernelFiles` are those about /proc and /dev. */
export function rootWords(plan: CellPlan, kernelFiles: readonly string[]): string[] {
  const { spec, ids } = plan
  const sources = spec.root.binds.map(({ source }, index) => (ids.kind === 'single' ? source : `/tmp/${stageName(index)}`))
  const root = isOverlay(plan)
    ? ['--bind', '/tmp/disk/root', '/']
    : spec.root.binds.flatMap(({ target }, index) => ['--ro-bind', sources[index] as string, target])
  return [
    ...root,
    ...(spec.root.folders ?? []).flatMap((path) => ['--dir', path]),
    ...spec.root.symlinks.flatMap(({ path, target }) => ['--symlink', target, path]),
    ...kernelFiles,
    ...writableFolders(ids).flatMap(({ path }) => (path.startsWith('/dev/') ? [] : ['--dir', path])),
    ...['--dir', '/run', '--symlink', '/run', '/var/run'],
    ...copyCertificates(spec),
  ]
}

/** The devices of a cell with a single id. Not bwrap's own `--dev`: it would put the cell into a second user namespace, where the warden could not mount. */
export function ownDevices(): string[] {
  return [
    ...['--tmpfs', '/dev'],
    ...hostDevices.flatMap((path) => ['--dev-bind', path, path]),
    ...deviceLinks.flatMap(([target, path]) => ['--symlink', target, path]),
    ...['--dir', '/dev/pts', '--dir', '/dev/shm'],
  ]
}

export interface LooseMount {
  /** As it was staged; not given: it is part of something that was. */
  readonly name?: string
  readonly source: string
  readonly target: string
  readonly access: 'ro' | 'rw'
}

/** What the warden moves on or lets go of: it has to be bound in the cell's own namespace, for from outside it would be fixed where it is. */
export function looseMounts(plan: CellPlan): LooseMount[] {
  const { ids, programs } = plan
  const isSingle = ids.kind === 'single'
  const layers: LooseMount[] = isOverlay(plan) ? [{ source: '/tmp/disk/layered', target: layersPlace, access: 'rw' }] : []
  const placed = placedMounts(plan).map(({ mode, name, source, from }): LooseMount => {
    return { name, source: isSingle ? source.path : `/tmp/${name}`, target: from, access: mode === 'rw' ? 'rw' : 'ro' }
  })
  return [...layers, ...placed, { name: 'warden', source: isSingle ? programs.warden : '/tmp/warden', target: wardenPath, access: 'ro' }]
}
