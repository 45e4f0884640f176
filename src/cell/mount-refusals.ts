import type { CellSpec } from '../contract/driver.js'
import { SandboxError } from '../contract/errors.js'
import type { Mount } from '../contract/spec.js'
import type { CellIds } from './arguments.js'

/** Throws SandboxError('unsupported') for a writable root that cannot be had, or not together with the rest. */
export function checkRootMode({ rootMode, commands }: CellSpec, ids: CellIds['kind']): void {
  if (rootMode !== 'overlay') return
  if (ids === 'single')
    throw new SandboxError('unsupported', `root: 'overlay' is not available: ${overlayNeedsRanges}`, { hint: 'sudo glovebox run --root overlay …' })
  if (commands !== undefined) {
    const why = 'where programs are, a guest could write others, and a loader would start them'
    throw new SandboxError('unsupported', `commands: cannot be enforced together with root: 'overlay': ${why}`, { hint: "leave out root: 'overlay'" })
  }
}

/** So many the launcher and the warden have room for, whoever builds the cell. */
const mostFolders = 250

/** Throws SandboxError('unsupported') for a template that is made of more than fits into a cell. */
export function checkFolders({ root: { name, binds } }: CellSpec): void {
  if (binds.length > mostFolders)
    throw new SandboxError('unsupported', `template ${name} has ${binds.length} folders and files at its top, and a cell has room for ${mostFolders}`, {
      hint: 'glovebox template ls',
    })
}

/** Throws SandboxError('unsupported') for what would be no liner's own. */
export function checkLiners({ liners, rootMode, commands, mounts }: CellSpec): void {
  if (!liners) return
  const field = rootMode === 'overlay' ? 'root' : commands !== undefined ? 'commands' : mounts.length > 0 ? 'mounts' : undefined
  if (field !== undefined) throw new SandboxError('unsupported', `${field}: runs in liners cannot have it`)
}

export const overlayNeedsRanges = 'only root can give a cell ids of its own, which own what is in its root'

/** The launcher names the mount that the kernel refused; that is said of the field it came from. */
const refusal = /launcher: (map owner of|copy mount of|make private) mount(\d+): (.+)$/s

export function mountFailure(error: unknown, mounts: readonly Mount[]): unknown {
  const [, verb, digits, why] = (error instanceof SandboxError && refusal.exec(error.message)) || []
  const mount = mounts[Number(digits)]
  if (mount === undefined) return error
  if (verb === 'map owner of') {
    const said = `${mount.source} cannot be mounted read-write: its filesystem cannot make its owner the cell’s user (${why})`
    return new SandboxError('unsupported', `mounts[${digits}].mode: ${said}`, { hint: `cp -a ${mount.source} /var/tmp/copy`, cause: error })
  }
  return new SandboxError('unsupported', `mounts[${digits}].source: ${mount.source} cannot be mounted: ${why}`, { hint: 'glovebox doctor', cause: error })
}
