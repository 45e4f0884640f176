import type { Mount } from '../contract/spec.js'
import type { MountSource } from '../sys/mount-source.js'
import type { CellPlan } from './arguments.js'
import { isOverlay } from './root-mode.js'

const firstInheritedFd = 3
/** Where a source that bwrap binds by its path is handed to the warden, to be recognised. */
const firstSourceFd = 128
/** Where bwrap binds the sources; the warden moves them on and removes what is left. */
export const mountPlace = '/.mounts'

export interface PlacedMount {
  readonly source: MountSource
  readonly target: string
  readonly mode: Mount['mode']
  readonly name: string
  /** Where bwrap binds it. */
  readonly from: string
  /** The launcher's descriptor of it, and the warden's. */
  readonly inherited: number
  readonly handed: number
  /** Of what is written there, when it is an overlay: its name among all layers of the cell. */
  readonly layer: number
}

/** Those within another come after it. */
export function placedMounts(plan: CellPlan): PlacedMount[] {
  const { spec, sources = [] } = plan
  // Where the whole root is writable, the folders of the template have the first numbers.
  const firstLayer = isOverlay(plan) ? spec.root.binds.length : 0
  const placed = sources.map((source, index) => {
    const { target, mode } = spec.mounts[index] as Mount
    const [name, from] = [`mount${index}`, `${mountPlace}/${index}`]
    return { source, target, mode, name, from, inherited: firstInheritedFd + index, handed: firstSourceFd + index, layer: firstLayer + index }
  })
  return placed.sort((one, other) => one.target.split('/').length - other.target.split('/').length)
}

export function hasOverlays({ spec }: CellPlan): boolean {
  return spec.mounts.some(({ mode }) => mode === 'overlay')
}

/** Whom the owner of a source is in the cell, and which group of the disk goes along. */
export function mappedOwner({ source: { uid, gid, isOwnGroup }, mode }: PlacedMount, id: number): [string, string] {
  // Nothing that is written over it can reach the disk, so root's may be the user's too; without that it could not change a file.
  if (mode === 'overlay') return [`${id}`, `${gid}`]
  return uid === 0 ? ['-', '-'] : [`${id}`, isOwnGroup ? `${gid}` : '-']
}

/** The last of those that the launcher inherits. */
export function certificatesDescriptor(plan: CellPlan): number {
  return (inspectorDescriptor(plan) ?? firstInheritedFd + (plan.sources?.length ?? 0) - 1) + 1
}

/** Where the launcher is asked for the filter of one process, after the descriptors of the mounts; only who maps ranges may read it. */
export function inspectorDescriptor({ ids, sources }: CellPlan): number | undefined {
  return ids.kind === 'range' ? firstInheritedFd + (sources?.length ?? 0) : undefined
}
