import { SandboxError } from '../../contract/errors.js'
import type { Platform, SandboxInfo } from '../../contract/platform.js'
import { withPlatform } from '../choose-platform.js'
import { exitCodes } from '../exit-codes.js'
import { refuseFlag } from '../flag-values.js'
import { printFailure, printJson } from '../print.js'
import { lastingSandboxes } from '../sandbox-owner.js'
import { pickSandbox } from '../sandbox-reference.js'
import { type FilterFlags, filterOf } from './ls.js'

export interface RmFlags extends FilterFlags {
  readonly all?: true
  readonly json?: true
}

const notThere = 1

/** Closes them, with all that is in them. Resolves to 1 when one was not there; the others are closed all the same. */
export async function rm(sandboxes: readonly string[], flags: RmFlags): Promise<number> {
  checkWhat(sandboxes, flags)
  return withPlatform('kept', async ({ platform, signal }) => {
    const there = await listed(platform, flags, signal)
    const { found, failures } = sandboxes.length === 0 ? { found: there, failures: [] } : pickAll(sandboxes, there)
    const removed: string[] = []
    for (const { id } of found) {
      signal.throwIfAborted()
      await platform.close(id)
      removed.push(id)
    }
    if (flags.json) await printJson({ removed, missing: failures.map(({ reference, error }) => ({ sandbox: reference, why: error.message })) })
    else for (const { error } of failures) await printFailure(error, { json: false })
    return failures.length === 0 ? exitCodes.ok : notThere
  })
}

/** Nothing is closed because nothing was said. */
function checkWhat(sandboxes: readonly string[], { all, name, agent, metadata }: RmFlags): void {
  const isFiltered = name !== undefined || agent !== undefined || metadata !== undefined
  if (sandboxes.length > 0 && (all || isFiltered))
    throw refuseFlag(all ? '--all' : 'SANDBOX', 'those that are named, or those that are like that, not both', rmHelp)
  if (sandboxes.length === 0 && !all && !isFiltered) throw new SandboxError('invalid', "missing required argument 'SANDBOX'", { hint: rmHelp })
}

const rmHelp = 'glovebox rm --help'

async function listed(platform: Platform, flags: RmFlags, signal: AbortSignal): Promise<SandboxInfo[]> {
  const all: SandboxInfo[] = []
  for await (const info of lastingSandboxes(platform, filterOf(flags), signal)) all.push(info)
  return all
}

interface Picked {
  readonly found: readonly SandboxInfo[]
  readonly failures: readonly { readonly reference: string; readonly error: SandboxError }[]
}

function pickAll(references: readonly string[], all: readonly SandboxInfo[]): Picked {
  const found = new Set<SandboxInfo>()
  const failures: { reference: string; error: SandboxError }[] = []
  for (const reference of references) {
    try {
      found.add(pickSandbox(reference, all))
    } catch (error) {
      if (!(error instanceof SandboxError)) throw error
      failures.push({ reference, error })
    }
  }
  return { found: [...found], failures }
}
