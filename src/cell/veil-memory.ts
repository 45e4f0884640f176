import type { TemplateRoot } from '../contract/driver.js'
import { SandboxError } from '../contract/errors.js'

/**
 * A veil gives a cell inodes of its own for a folder of the host. A kernel may refuse one for good: it is too old, or the folder lies
 * on what it cannot overlay. Then cells open without, and whoever asks is told.
 */
export interface VeilMemory {
  unveilable(): ReadonlySet<string>
  /** Whether a cell did not open because of a veil that it had better do without from now on. */
  learn(error: unknown, root: TemplateRoot): boolean
  describe(): string
}

/** The launcher names the folder of the host and the warden the same folder in the cell; other errors than these may pass. */
const refusal = /(launcher|warden): veil (.+): (Invalid argument|Operation not permitted|Permission denied|No such device|Function not implemented)$/s

export function createVeilMemory(): VeilMemory {
  const refused = new Map<string, string>()
  return {
    unveilable: () => new Set(refused.keys()),
    learn: (error, root) => {
      const [, who, path, why] = (error instanceof SandboxError && refusal.exec(error.message)) || []
      const source = who === 'launcher' ? path : root.binds.find(({ target }) => target === path)?.source
      if (source === undefined || why === undefined || refused.has(source)) return false
      refused.set(source, why)
      return true
    },
    describe: () => [...refused].map(([source, why]) => `${source}: ${why}`).join(', '),
  }
}
