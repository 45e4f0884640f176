import { findProgram, type HostFacts, programPath, readHostFacts, type RuntimeProgram } from '../../cell/facts.js'
import { installCommand } from '../../sys/install-command.js'

export interface BwrapFacts extends HostFacts {
  readonly bwrap: RuntimeProgram | undefined
  readonly installBwrap: string
}

/** bwrap is asked for its version, unless that is known. */
export async function readBwrapFacts(version?: string): Promise<BwrapFacts> {
  return { ...readHostFacts(), bwrap: await findProgram(bwrapPath(), version), installBwrap: installCommand('bubblewrap') }
}

export function bwrapPath(): string | undefined {
  return programPath('bwrap')
}
