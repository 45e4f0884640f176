import { closeSync, constants, fstatSync, openSync, readSync, statfsSync } from 'node:fs'
import { SandboxError } from '../contract/errors.js'
import { presetNames } from '../contract/policy.js'

const mostBytes = 2 ** 20
/** The magic number of the kernel's own filesystem for them. */
const namelessPipes = 0x50495045

const reasons: Readonly<Record<string, string>> = {
  ENOENT: `there is no such file, and no such preset (${presetNames.join(', ')})`,
  EACCES: 'it may not be read by this user',
  ENOTDIR: 'a folder in its path is none',
}

/** The text of a file that is no larger than any policy. Throws SandboxError('invalid') naming the path. */
export function readPolicyText(path: string): string {
  const refusal = (why: string, cause?: unknown) => new SandboxError('invalid', `${path}: cannot be read as a policy: ${why}`, { hint: `ls -l ${path}`, cause })
  let descriptor: number
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    throw refusal(reasons[code] ?? code, error)
  }
  try {
    const stat = fstatSync(descriptor)
    // A pipe is what a shell gives for <(command); the writer of one with a name may never come, and devices may never end.
    if (stat.isFIFO()) {
      if (statfsSync(`/proc/self/fd/${descriptor}`).type !== namelessPipes) throw refusal('it is a pipe with a name')
      const patient = openSync(`/proc/self/fd/${descriptor}`, constants.O_RDONLY)
      closeSync(descriptor)
      descriptor = patient
    } else if (!stat.isFile()) throw refusal(stat.isDirectory() ? 'it is a folder' : 'it is no file')
    const bytes = readAtMost(descriptor, mostBytes + 1)
    if (bytes.length > mostBytes) throw refusal('it is larger than 1 MiB')
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    throw error instanceof TypeError ? refusal('it is not UTF-8', error) : error
  } finally {
    closeSync(descriptor)
  }
}

function readAtMost(descriptor: number, most: number): Buffer {
  const bytes = Buffer.alloc(most)
  let length = 0
  while (length < most) {
    const count = readSync(descriptor, bytes, length, most - length, null)
    if (count === 0) break
    length += count
  }
  return bytes.subarray(0, length)
}
