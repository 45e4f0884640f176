import { setTimeout as sleep } from 'node:timers/promises'
import { loadReceiptKey, policyInForce, readPolicy } from '../../compose.js'
import type { ChangeSet } from '../../contract/changes.js'
import { reworded, type SandboxError } from '../../contract/errors.js'
import type { NetworkSummary } from '../../contract/network.js'
import type { PlatformProcess, SandboxInfo } from '../../contract/platform.js'
import type { Ending } from '../../contract/run.js'
import { PolicyRefusal } from '../../policy/policy-refusal.js'
import { orStopped, textOf } from '../attached-program.js'
import { choosePlatform, isRemote } from '../choose-platform.js'
import { explainClamped } from '../clamped-line.js'
import { exitCodeOf, signalExitCode } from '../exit-codes.js'
import { asHere, changesReport, checkHere, type Ended as HereEnded, type Here, keepChanges, sayChanges, withHere } from '../here.js'
import { openInput } from '../input.js'
import { Stopped, watchInterrupts } from '../interrupts.js'
import { openNetworkReport } from '../network-report.js'
import { inShell, printJson, say } from '../print.js'
import { openReceiptFile } from '../receipt-file.js'
import { parseRunFlags, type RunFlags } from '../run-flags.js'
import { type Captured, type Cursor, captureOutput, ReaderGone, startLine, streamOutput } from '../streams.js'
import { checkTransfers, downloadAll, uploadAll } from '../transfers.js'
import { wantedSpec } from '../wanted-spec.js'
import { explainOutcome, explainUnenforced, roundTimes } from '../words.js'

/** A fresh sandbox, one program, gone. Resolves to our exit code when nothing of it is left. */
export async function run(argv: readonly string[], flags: RunFlags): Promise<number> {
  try {
    return await runOnce(argv, flags)
  } catch (error) {
    throw error instanceof PolicyRefusal ? shownAs(error, flags.policy) : error
  }
}

/** What a run with this policy is held to, the operator's included, is what `policy show` prints of it. */
function shownAs(error: PolicyRefusal, policy: string | undefined): SandboxError {
  return reworded(error, error.message, `glovebox policy show${policy === undefined ? '' : ` ${inShell(policy)}`}`)
}

async function runOnce(argv: readonly string[], flags: RunFlags): Promise<number> {
  const own = flags.policy === undefined ? undefined : readPolicy(flags.policy)
  const parsed = parseRunFlags(argv, flags, policyInForce(own))
  const { request } = parsed
  const here = flags.here ? withHere(parsed.spec) : undefined
  const spec = here?.spec ?? parsed.spec
  checkTransfers(flags)
  using receipt = flags.receipt === undefined ? undefined : openReceiptFile(flags.receipt)
  // A key that cannot be had is told before the program has run for nothing.
  if (receipt && !isRemote()) await loadReceiptKey()
  using network = openNetworkReport(flags)
  const input = openInput()
  using interrupts = watchInterrupts()
  const { platform: chosen, where } = await choosePlatform({ wants: here ? 'here' : 'fresh', signal: interrupts.signal })
  await using platform = chosen
  const info = await platform.create(wantedSpec({ spec, own, where }), { ...network.creation, signal: interrupts.signal }).catch((error: unknown) => {
    throw here ? asHere(error) : error
  })
  if (here) checkHere(info)
  network.watch(platform, info)
  if (!flags.json && !flags.quiet) sayIfAny(explainUnenforced(info.unenforced))
  if (!flags.json) sayIfAny(explainClamped(info.clamped))

  const cursor = { isMidLine: false }
  const takeReceipt = async (): Promise<void> => receipt?.fill(() => platform.receipt(info.id))
  let program: PlatformProcess | undefined
  try {
    const setting = { flags, platform, id: info.id, signal: interrupts.signal }
    await uploadAll(setting)
    program = await platform.start(info.id, { ...request, stdin: input !== undefined, output: {} }, { signal: interrupts.signal })
    const keep = here && keeper(here, { platform, info, command: argv, program })
    const reached = async () => (info.spec.network === false ? undefined : platform.network.summary(info.id, { settled: true }))
    const finished = finish({ program, info, flags, cursor, takeReceipt, keep, reached, signal: interrupts.signal, name: argv[0] ?? '' })
    const code = await orStopped(finished, { interrupts, program, input })
    await downloadAll(setting)
    return code
  } catch (error) {
    if (!(error instanceof Stopped)) startLine(cursor)
    if (receipt) await takeReceiptOf(program, { takeReceipt, error })
    throw error
  } finally {
    input?.close()
    await platform.close(info.id)
    await network.tell({ argv, first: () => startLine(cursor) })
  }
}

const lastWordsMs = 1000

/** Whatever ended the run, there was a sandbox. What is told is what went wrong first, and a receipt that there is none. */
async function takeReceiptOf(
  program: PlatformProcess | undefined,
  { takeReceipt, error }: { takeReceipt: () => Promise<void>; error: unknown },
): Promise<void> {
  try {
    await program?.kill(error instanceof Error ? error.message : String(error))
    // Its ending is part of the receipt; but our reader may have stopped reading, and then it has none yet.
    await Promise.race([program?.ended.catch(() => undefined), sleep(lastWordsMs, undefined, { ref: false })])
    await takeReceipt()
  } catch (failure) {
    if (failure !== error) say(`there is no receipt: ${failure instanceof Error ? failure.message : String(failure)}`)
  }
}

interface Running {
  readonly program: PlatformProcess
  readonly info: SandboxInfo
  readonly flags: RunFlags
  readonly cursor: Cursor
  readonly takeReceipt: () => Promise<void>
  /** Keeps what was written over the folder we were started in. */
  readonly keep: (() => Promise<ChangeSet | undefined>) | undefined
  /** What it did by its network, if it has one. */
  readonly reached: () => Promise<NetworkSummary | undefined>
  /** Once told to stop, nothing more is said of the program. */
  readonly signal: AbortSignal
  readonly name: string
}

async function finish({ program, info, flags, cursor, takeReceipt, keep, reached, signal, name }: Running): Promise<number> {
  if (flags.json) {
    const [captured, ending] = await Promise.all([captureOutput(program), program.ended])
    signal.throwIfAborted()
    await takeReceipt()
    const kept = await keep?.()
    const summary = await reached()
    await printJson({ ...toReport(info, ending, captured), ...(summary && { network: summary }), ...(keep && { changes: kept ? changesReport(kept) : null }) })
    return exitCodeOf(ending.outcome)
  }
  const streamed = streamOutput(program, cursor)
  try {
    const [ending] = await Promise.all([program.ended, streamed])
    signal.throwIfAborted()
    const explanation = explainOutcome(ending.outcome, name)
    if (explanation !== undefined) startLine(cursor)
    sayIfAny(explanation)
    await takeReceipt()
    if (keep) {
      const kept = await keep()
      startLine(cursor)
      await sayChanges(kept, { quiet: flags.quiet === true, timeMs: info.spec.limits.timeMs })
    }
    return exitCodeOf(ending.outcome)
  } catch (error) {
    if (!(error instanceof ReaderGone)) throw error
    program.ended.catch(() => undefined)
    await program.kill('its reader is gone')
    await takeReceipt()
    return signalExitCode('SIGPIPE')
  }
}

/** What the program left running may write no more while that is read. */
function keeper(here: Here, { program, ...ended }: HereEnded & { readonly program: PlatformProcess }): () => Promise<ChangeSet | undefined> {
  return async () => {
    await program.kill('its command is over')
    return keepChanges(here, ended)
  }
}

function toReport(info: SandboxInfo, ending: Ending, captured: Captured) {
  return {
    id: info.id,
    outcome: ending.outcome,
    ...textOf('stdout', captured.stdout),
    ...textOf('stderr', captured.stderr),
    truncated: ending.truncated,
    usage: roundTimes(ending.usage),
    driver: info.driver,
    tier: info.tier,
    unenforced: info.unenforced,
    clamped: info.clamped,
  }
}

function sayIfAny(line: string | undefined): void {
  if (line !== undefined) say(line)
}
