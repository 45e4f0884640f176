import { SandboxError } from '../contract/errors.js'
import { nativeProgram } from './native.js'
import { capture } from './spawn.js'

export interface SealOrder {
  /** A process in a mount namespace of its own. */
  readonly pid: number
  /** The one mount there that can be written to. */
  readonly disk: string
}

/** Makes every other mount of a process read-only, without devices and set-ids. */
export async function sealMounts({ pid, disk }: SealOrder): Promise<void> {
  const { code, stderr } = await capture([nativeProgram('launcher'), '--seal', `${pid}`, disk], { timeoutMs: 10_000 })
  if (code !== 0)
    throw new SandboxError('unavailable', `the cell did not open: ${stderr.trim() || `the launcher ended with ${code}`}`, { hint: 'glovebox doctor' })
}
