import { readFileSync } from 'node:fs'
import { commandPlatform, loadReceiptKey, policyInForce, readPolicy } from '../../compose.js'
import type { Policy } from '../../contract/policy.js'
import type { SpecInput } from '../../contract/spec.js'
import { serveMcp } from '../../mcp/index.js'
import { explainClamped } from '../clamped-line.js'
import { signalExitCode } from '../exit-codes.js'
import { Stopped, watchInterrupts } from '../interrupts.js'
import { say } from '../print.js'
import { openReceiptFile } from '../receipt-file.js'
import { parseRunFlags, type RunFlags } from '../run-flags.js'
import { checkTransfers, downloadAll, uploadAll } from '../transfers.js'
import { explainUnenforced } from '../words.js'

/** Nobody knows how long an agent thinks between two calls; the longest life there is. */
const mostLifetimeMs = 30 * 86_400_000

/** Serves one agent on our stdin and stdout. Resolves when it has gone and nothing is left. */
export async function mcp(flags: RunFlags): Promise<number> {
  const own = flags.policy === undefined ? undefined : readPolicy(flags.policy)
  const policy = policyInForce(own)
  const { spec, request } = parseRunFlags(['mcp'], flags, policy)
  checkTransfers(flags)
  using receipt = flags.receipt === undefined ? undefined : openReceiptFile(flags.receipt)
  if (receipt) await loadReceiptKey()
  using interrupts = watchInterrupts()
  await using platform = commandPlatform()
  const wanted = lasting(own === undefined ? spec : { ...spec, policy: own }, policy)
  const transfersOf = (id: string) => ({ flags: { ...flags, quiet: true as const }, platform, id, signal: new AbortController().signal })
  await serveMcp({
    platform,
    version: ownVersion(),
    input: process.stdin,
    output: process.stdout,
    signal: interrupts.signal,
    log: say,
    ...(request.cwd !== undefined && { cwd: request.cwd }),
    open: async (signal) => {
      const info = await platform.create(wanted, { signal })
      const remarks = [flags.quiet ? undefined : explainUnenforced(info.unenforced), explainClamped(info.clamped)]
      for (const remark of remarks) if (remark !== undefined) say(remark)
      await uploadAll({ ...transfersOf(info.id), signal })
      return info.id
    },
    finish: async (id) => {
      try {
        await downloadAll(transfersOf(id))
        await receipt?.fill(() => platform.receipt(id))
      } catch (error) {
        say(error instanceof Error ? error.message : String(error))
      }
    },
  })
  const { reason } = interrupts.signal as { readonly reason: unknown }
  return reason instanceof Stopped ? signalExitCode(reason.signal) : 0
}

function lasting(spec: SpecInput, { ceiling, defaults }: Pick<Policy, 'ceiling' | 'defaults'>): SpecInput {
  return { ...spec, lifetime: Math.min(mostLifetimeMs, defaults.lifetime ?? mostLifetimeMs, ceiling.lifetime ?? mostLifetimeMs) }
}

function ownVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'))
  return (manifest as { readonly version: string }).version
}
