import { SandboxError } from '../contract/errors.js'
import { bytesInUnits } from '../contract/quantities.js'
import { nativeProgram } from './native.js'
import { capture } from './spawn.js'

export interface DiskSize {
  /** Any process of the cell, as this machine counts. */
  readonly pid: number
  readonly bytes: number
  readonly inodes: number
  /** Where the disk is in the cell; /dev/shm is on it in every cell. */
  readonly path?: string
}

/** Gives the disk of a live cell another size. Throws SandboxError('conflict') when more than that is in use; then nothing was changed. */
export async function resizeDisk({ pid, bytes, inodes, path = '/dev/shm' }: DiskSize): Promise<void> {
  const { code, stderr } = await capture([nativeProgram('launcher'), '--resize', `${pid}`, `${bytes}`, `${inodes}`, path], { timeoutMs: 10_000 })
  if (code === 0) return
  const said = stderr.trim()
  if (/Too small a size/.test(said))
    throw new SandboxError('conflict', `limits.disk: more than ${bytesInUnits(bytes, Math.floor)} are in use`, { hint: 'du -sx /workspace /tmp /home/user' })
  if (/Too few inodes/.test(said))
    throw new SandboxError('conflict', `limits.inodes: more than ${inodes} are in use`, { hint: 'find /workspace /tmp /home/user -xdev' })
  throw new SandboxError('unsupported', `limits.disk cannot be changed: ${said === '' ? `the launcher ended with ${code}` : said}`, { hint: 'glovebox doctor' })
}
