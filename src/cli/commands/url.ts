import { portSchema, portWaitSchema } from '../../contract/ports.js'
import { SandboxError } from '../../contract/errors.js'
import { lifetimeSchema } from '../../contract/spec.js'
import { withPlatform } from '../choose-platform.js'
import { exitCodes } from '../exit-codes.js'
import { parseFlag, refuseFlag } from '../flag-values.js'
import { printJson } from '../print.js'
import { findSandbox } from '../sandbox-reference.js'
import { writeOut } from '../streams.js'

export interface UrlFlags {
  /** True without a duration. */
  readonly wait?: true | string
  readonly expires?: string
  readonly json?: true
}

const help = 'glovebox url --help'

export async function url(sandbox: string, port: string, flags: UrlFlags): Promise<number> {
  const target = portSchema.safeParse(/^\d{1,5}$/.test(port) ? Number(port) : undefined)
  if (!target.success) throw refuseFlag('PORT', `expected a number from 1 to 65535, got '${port.slice(0, 40)}'`, help)
  const waitFor = flags.wait === undefined ? 0 : flags.wait === true ? 30_000 : (parseFlag('--wait', () => portWaitSchema, flags.wait) ?? 0)
  const expires = parseFlag('--expires', () => lifetimeSchema, flags.expires)
  return withPlatform('kept', async ({ platform, signal }) => {
    const { id } = await findSandbox(platform, sandbox, signal)
    if (waitFor > 0) await platform.ports.waitFor(id, target.data, { timeout: waitFor, signal })
    // Only what keeps sandboxes has any, and each of those has addresses.
    const address = await platform.ports.url?.(id, target.data, { signal, ...(expires !== undefined && { expires }) })
    if (address === undefined) throw new SandboxError('unsupported', 'this platform has no addresses', { hint: help })
    if (flags.json) await printJson({ id, port: target.data, url: address })
    else await writeOut(`${address}\n`)
    return exitCodes.ok
  })
}
