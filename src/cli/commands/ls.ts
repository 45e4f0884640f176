import type { SandboxFilter, SandboxInfo } from '../../contract/platform.js'
import { withPlatform } from '../choose-platform.js'
import { parseMetadata } from '../create-flags.js'
import { exitCodes } from '../exit-codes.js'
import { printJson, say } from '../print.js'
import { lastingSandboxes } from '../sandbox-owner.js'
import { shortId } from '../sandbox-page.js'
import { writeOut } from '../streams.js'
import { tableOf } from '../table.js'
import { spanInWords } from '../words.js'

export interface FilterFlags {
  readonly name?: string
  readonly agent?: string
  readonly metadata?: readonly string[]
}

export interface LsFlags extends FilterFlags {
  readonly json?: true
  readonly quiet?: true
}

/** A line for each. */
export async function ls(flags: LsFlags): Promise<number> {
  const filter = filterOf(flags)
  return withPlatform('kept', async ({ platform, signal }) => {
    const sandboxes: SandboxInfo[] = []
    for await (const info of lastingSandboxes(platform, filter, signal)) sandboxes.push(info)
    if (flags.json) await printJson({ sandboxes })
    else if (flags.quiet) await writeOut(sandboxes.map(({ id }) => `${id}\n`).join(''))
    else if (sandboxes.length > 0) await writeOut(tableOf(heads, sandboxes.map(cellsOf)))
    else say(Object.keys(filter).length === 0 ? 'there is no sandbox; create makes one' : 'no sandbox is like that')
    return exitCodes.ok
  })
}

export function filterOf({ name, agent, metadata }: FilterFlags): SandboxFilter {
  return { ...(name !== undefined && { name }), ...(agent !== undefined && { agent }), ...(metadata && { metadata: parseMetadata(metadata) }) }
}

const heads = ['ID', 'NAME', 'STATE', 'TEMPLATE', 'DRIVER', 'AGENT', 'AGE', 'EXPIRES']

function cellsOf({ id, state, spec, driver, createdAt, expiresAt }: SandboxInfo): string[] {
  const now = Date.now()
  const age = spanInWords(now - Date.parse(createdAt))
  return [shortId(id), spec.name ?? '-', state, spec.template, driver, spec.agent ?? '-', age, `in ${spanInWords(Date.parse(expiresAt) - now)}`]
}
