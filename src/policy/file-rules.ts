import type { CommandRules } from '../contract/driver.js'
import type { Mount } from '../contract/spec.js'

/** What programs may do with a file, or with all beneath a folder. */
export interface FileRule {
  /** A sum of `fileAccess`. */
  readonly access: number
  /** As the cell sees it; one that is not there is passed over. */
  readonly path: string
}

/** The numbers of the warden's protocol. */
const fileAccess = { execute: 1, read: 2, move: 4 } as const

/** What a guest may write to: nothing there can be executed, but it can be read, and moved from folder to folder. */
const writable = ['/workspace', '/home/user', '/root', '/tmp', '/var/tmp', '/dev/shm']
const kernelFiles = ['/proc', '/dev']

/** The rules that keep programs to the commands of a sandbox; undefined where all may be executed. */
export function fileRules(commands: CommandRules | undefined, mounts: readonly Mount[]): readonly FileRule[] | undefined {
  if (commands === undefined) return undefined
  const rules = (paths: readonly string[], access: number): FileRule[] => paths.map((path) => ({ access, path }))
  return [
    ...rules(commands.executable, fileAccess.execute | fileAccess.read),
    ...rules([...commands.readable, ...kernelFiles], fileAccess.read),
    ...rules([...writable, ...mounts.map(({ target }) => target)], fileAccess.read | fileAccess.move),
  ]
}
