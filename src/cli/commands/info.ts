import { loadReceiptKey } from '../../compose.js'
import { isRemote, withPlatform } from '../choose-platform.js'
import { exitCodes } from '../exit-codes.js'
import { colorsFor, printJson } from '../print.js'
import { openReceiptFile } from '../receipt-file.js'
import { sandboxPage } from '../sandbox-page.js'
import { findSandbox } from '../sandbox-reference.js'
import { writeOut } from '../streams.js'

export interface InfoFlags {
  readonly json?: true
  readonly receipt?: string
}

/** What one is, what it used, and what runs in it. */
export async function info(sandbox: string, flags: InfoFlags): Promise<number> {
  using receipt = flags.receipt === undefined ? undefined : openReceiptFile(flags.receipt)
  if (receipt && !isRemote()) await loadReceiptKey()
  return await withPlatform('kept', async ({ platform, signal }) => {
    const found = await findSandbox(platform, sandbox, signal)
    const [usage, processes] = await Promise.all([platform.usage(found.id, { signal }), platform.processes.list(found.id, { signal })])
    await receipt?.fill(() => platform.receipt(found.id, { signal }))
    if (flags.json) await printJson({ ...found, usage, processes })
    else await writeOut(sandboxPage({ info: found, usage, processes }, colorsFor(process.stdout)))
    return exitCodes.ok
  })
}
