import { SandboxError } from '../../contract/errors.js'
import { nativeProgram } from '../../sys/native.js'
import type { BwrapPrograms } from './arguments.js'
import { bwrapPath } from './facts.js'

/** Those that are given, and of the others what is found. */
export function findPrograms(given: Partial<BwrapPrograms> = {}): BwrapPrograms {
  const bwrap = given.bwrap ?? bwrapPath()
  if (bwrap === undefined) throw new SandboxError('unavailable', 'the program bwrap is not installed', { hint: 'glovebox doctor' })
  return { launcher: given.launcher ?? nativeProgram('launcher'), bwrap, warden: given.warden ?? nativeProgram('warden') }
}
