import { policyInForce, readPolicy } from '../../compose.js'
import { SandboxError } from '../../contract/errors.js'
import type { Platform, SandboxInfo } from '../../contract/platform.js'
import type { SpecInput } from '../../contract/spec.js'
import { withPlatform } from '../choose-platform.js'
import { explainClamped } from '../clamped-line.js'
import { type CreateFlags, parseCreateFlags } from '../create-flags.js'
import { exitCodes } from '../exit-codes.js'
import { inShell, printJson, say } from '../print.js'
import { writeOut } from '../streams.js'
import { wantedSpec } from '../wanted-spec.js'
import { explainUnenforced } from '../words.js'

/** A sandbox that lasts. Prints its id, and nothing else, on stdout. */
export async function create(flags: CreateFlags): Promise<number> {
  const own = flags.policy === undefined ? undefined : readPolicy(flags.policy)
  const spec = parseCreateFlags(flags, policyInForce(own))
  return withPlatform('lasting', async ({ platform, where, signal }) => {
    await refuseTakenName(platform, spec, signal)
    const info = await platform.create(wantedSpec({ spec, own, where, lasts: true }), { signal })
    try {
      await tell(info, flags)
    } catch (error) {
      // Nobody knows of it.
      await platform.close(info.id)
      throw error
    }
    return exitCodes.ok
  })
}

async function tell(info: SandboxInfo, flags: CreateFlags): Promise<void> {
  const remarks = [flags.quiet ? undefined : explainUnenforced(info.unenforced), explainClamped(info.clamped)]
  if (!flags.json) for (const remark of remarks) if (remark !== undefined) say(remark)
  if (flags.json) await printJson(info)
  else await writeOut(`${info.id}\n`)
}

/** Two of a name could only be told apart by their ids. */
async function refuseTakenName(platform: Platform, { name }: SpecInput, signal: AbortSignal): Promise<void> {
  if (name === undefined) return
  for await (const { id } of platform.list({ name }, { signal })) {
    throw new SandboxError('conflict', `--name: there is a sandbox '${name}' already (${id})`, { hint: `glovebox rm ${inShell(name)}` })
  }
}
