import { loadReceiptKey, policyInForce, readPolicy } from '../../compose.js'
import type { Policy } from '../../contract/policy.js'
import type { RunRequest } from '../../contract/run.js'
import type { SpecInput } from '../../contract/spec.js'
import { choosePlatform, isRemote } from '../choose-platform.js'
import { commandOf, programRequest } from '../exec-flags.js'
import { explainClamped } from '../clamped-line.js'
import { untilAborted, watchInterrupts } from '../interrupts.js'
import { parseLimitFlags } from '../limit-flags.js'
import { openNetworkReport } from '../network-report.js'
import { openOwnTerminal } from '../own-terminal.js'
import { say } from '../print.js'
import { openReceiptFile } from '../receipt-file.js'
import { parseRunFlags, type RunFlags } from '../run-flags.js'
import { sit } from '../seat.js'
import { checkTransfers, downloadAll, uploadAll } from '../transfers.js'
import { wantedSpec } from '../wanted-spec.js'
import { explainUnenforced } from '../words.js'
import { sitIn } from './exec.js'

/** Nobody closes a shell that they sit at; the longest life there is. */
const mostLifetimeMs = 30 * 86_400_000
const createAndCloseMs = 60_000

/** bash says where one is, and any other shell at least that it is no shell of the host's. */
const shell = String.raw`if command -v bash >/dev/null; then PS1='\[\e[36m\]glovebox\[\e[0m\]:\w\$ ' exec bash; else PS1='glovebox$ ' exec sh; fi`

/** A shell, or a program of the user's, on the user's own terminal in a fresh sandbox. Resolves to its exit code when nothing of it is left. */
export async function sh(argv: readonly string[], flags: RunFlags): Promise<number> {
  const terminal = openOwnTerminal()
  const own = flags.policy === undefined ? undefined : readPolicy(flags.policy)
  const { spec, request } = parseShellFlags(argv, flags, policyInForce(own))
  checkTransfers(flags)
  using receipt = flags.receipt === undefined ? undefined : openReceiptFile(flags.receipt)
  if (receipt && !isRemote()) await loadReceiptKey()
  using network = openNetworkReport(flags)
  using interrupts = watchInterrupts()
  const { platform: chosen, where } = await choosePlatform({ wants: 'fresh', signal: interrupts.signal })
  await using platform = chosen
  const info = await platform.create(wantedSpec({ spec, own, where }), { ...network.creation, signal: interrupts.signal })
  network.watch(platform, info)
  const remarks = [flags.quiet ? undefined : explainUnenforced(info.unenforced), explainClamped(info.clamped)]
  for (const remark of remarks) if (remark !== undefined) say(remark)
  const transfers = { flags, platform, id: info.id, signal: interrupts.signal }
  try {
    await uploadAll(transfers)
    const program = await platform.start(info.id, { ...request, terminal: terminal.size }, { signal: interrupts.signal })
    const attached = interrupts.attach({
      interrupt: () => void program.signal('SIGINT').catch(() => undefined),
      kill: () => void program.kill('interrupted twice').catch(() => undefined),
    })
    const code = await Promise.race([sit(program, { terminal, name: argv[0] ?? 'the shell' }), untilAborted(interrupts.signal)])
    attached[Symbol.dispose]()
    await downloadAll(transfers)
    await receipt?.fill(() => platform.receipt(info.id))
    return code
  } finally {
    terminal.takeBack()
    process.stdin.pause()
    await platform.close(info.id)
    await network.tell({ argv })
  }
}

/** The same in a sandbox that lasts, and is there still when it ends. */
export async function shIn(sandbox: string, argv: readonly string[], flags: RunFlags): Promise<number> {
  const { workdir, user, env, timeout } = flags
  const said = programRequest({
    ...(workdir !== undefined && { workdir }),
    ...(user !== undefined && { user }),
    ...(env && { env }),
    ...(timeout !== undefined && { timeout }),
  })
  const isShell = argv.length === 0 || (argv.length === 1 && argv[0] === '--')
  const command = isShell ? shell : commandOf(argv)
  return sitIn({ sandbox, request: { ...said, command }, name: isShell ? 'the shell' : (command[0] ?? '') })
}

interface ParsedShell {
  readonly spec: SpecInput
  readonly request: RunRequest
}

/** As the flags of a run, but that only `--timeout` ends it: neither the wall time of runs nor the lifetime that sandboxes have when nothing is said. */
function parseShellFlags(argv: readonly string[], { timeout, ...flags }: RunFlags, policy: Pick<Policy, 'defaults' | 'ceiling'>): ParsedShell {
  const { spec, request } = parseRunFlags(argv.length === 0 ? ['sh'] : argv, flags, policy)
  const { time } = parseLimitFlags(timeout === undefined ? {} : { timeout })
  const lifetime = Math.min(time === undefined ? mostLifetimeMs : time + createAndCloseMs, policy.ceiling.lifetime ?? mostLifetimeMs)
  return {
    spec: { ...spec, lifetime },
    request: { ...request, ...(argv.length === 0 && { command: shell }), ...(time !== undefined && { timeout: time }), stdin: true },
  }
}
