import { loadReceiptKey, policyInForce, readPolicy } from '../../compose.js'
import type { CodeEnding, Language } from '../../contract/code.js'
import { defaultLimits } from '../../contract/limit-words.js'
import type { Platform, SandboxInfo } from '../../contract/platform.js'
import type { Policy } from '../../contract/policy.js'
import type { SpecInput } from '../../contract/spec.js'
import { choosePlatform, isRemote } from '../choose-platform.js'
import { explainClamped } from '../clamped-line.js'
import { type Answers, openAnswers } from '../code-input.js'
import { parseLanguage } from '../code-language.js'
import type { CodeFlags } from '../code-options.js'
import { OutFolder } from '../code-out.js'
import { CodeSession } from '../code-session.js'
import { ShownAsJson, type Showing, ShownToPerson } from '../code-show.js'
import { type Source, sourcesOf } from '../code-sources.js'
import { exitCodeOf, exitCodes, signalExitCode } from '../exit-codes.js'
import { type Interrupts, watchInterrupts } from '../interrupts.js'
import { openNetworkReport } from '../network-report.js'
import { printJson, say } from '../print.js'
import { openReceiptFile, type ReceiptFile } from '../receipt-file.js'
import { parseRunFlags } from '../run-flags.js'
import { ReaderGone } from '../streams.js'
import { checkTransfers, downloadAll, uploadAll } from '../transfers.js'
import { wantedSpec } from '../wanted-spec.js'
import { explainUnenforced } from '../words.js'

const createAndCloseMs = 60_000
const mostLifetimeMs = 30 * 86_400_000

/** Code in a fresh sandbox, which is gone afterwards. Resolves to our exit code. */
export async function code(files: readonly string[], flags: CodeFlags): Promise<number> {
  const language = flags.language === undefined ? undefined : parseLanguage(flags.language)
  const codes = flags.code ?? []
  const isSession = files.length + codes.length === 0 && process.stdin.isTTY && process.stdout.isTTY && !flags.json
  const sources = isSession ? [] : sourcesOf({ files, codes, language })
  const own = flags.policy === undefined ? undefined : readPolicy(flags.policy)
  const policy = policyInForce(own)
  const { spec, request } = parseRunFlags(['code'], flags, policy)
  checkTransfers(flags)
  // Read before there is a sandbox: what cannot be read costs nothing.
  const pieces = await Promise.all(sources.map(async (source) => ({ ...source, code: await source.read() })))
  const out = flags.out === undefined ? undefined : new OutFolder(flags.out, { force: flags.force === true })
  using receipt = flags.receipt === undefined ? undefined : openReceiptFile(flags.receipt)
  if (receipt && !isRemote()) await loadReceiptKey()
  using network = openNetworkReport(flags)
  using interrupts = watchInterrupts()
  const { platform: chosen, where } = await choosePlatform({ wants: 'fresh', signal: interrupts.signal })
  await using platform = chosen
  const living = { ...spec, ...lifetimeFor({ spec, policy, count: isSession ? undefined : pieces.length }) }
  const info = await platform.create(wantedSpec({ spec: living, own, where }), { ...network.creation, signal: interrupts.signal })
  network.watch(platform, info)
  remark(info, flags)
  const setting: Setting = { platform, info, flags, interrupts, out, cwd: request.cwd, receipt }
  try {
    await uploadAll({ flags, platform, id: info.id, signal: interrupts.signal })
    const result = isSession ? await converse(setting, language ?? 'python') : await runAll(setting, pieces)
    await downloadAll({ flags, platform, id: info.id, signal: interrupts.signal })
    await receipt?.fill(() => platform.receipt(info.id))
    return result
  } finally {
    await platform.close(info.id)
    await network.tell()
  }
}

/** Every piece has its time, and the sandbox must not expire before. A session is over when its user says so. */
function lifetimeFor({
  spec,
  policy,
  count,
}: {
  readonly spec: SpecInput
  readonly policy: Pick<Policy, 'defaults' | 'ceiling'>
  readonly count: number | undefined
}): { lifetime?: number } {
  const most = policy.ceiling.lifetime ?? mostLifetimeMs
  const timeMs = Number(spec.limits?.time ?? policy.defaults.limits?.time ?? defaultLimits.timeMs)
  if (count === 1) return {}
  return { lifetime: Math.min(most, mostLifetimeMs, count === undefined ? mostLifetimeMs : timeMs * count + createAndCloseMs) }
}

function remark(info: SandboxInfo, { json, quiet }: CodeFlags): void {
  const remarks = [quiet ? undefined : explainUnenforced(info.unenforced), explainClamped(info.clamped)]
  if (!json) for (const line of remarks) if (line !== undefined) say(line)
}

export interface Setting {
  readonly platform: Platform
  readonly info: SandboxInfo
  readonly flags: CodeFlags
  readonly interrupts: Interrupts
  readonly out: OutFolder | undefined
  readonly cwd: string | undefined
  readonly receipt: ReceiptFile | undefined
}

async function converse(setting: Setting, language: Language): Promise<number> {
  const { converse: begin } = await import('../code-repl.js')
  return begin(setting, language)
}

async function runAll(setting: Setting, pieces: readonly (Source & { readonly code: string })[]): Promise<number> {
  const { platform, info, flags, interrupts, out, cwd } = setting
  const options = { out, quiet: flags.quiet === true }
  const showing: Showing = flags.json ? new ShownAsJson(options) : new ShownToPerson(options)
  const answers: Answers | undefined = pieces.some(({ name }) => name === 'stdin') ? undefined : openAnswers()
  const session = new CodeSession({ platform, id: info.id, interrupts, showing, answers, cwd })
  let exitCode: number = exitCodes.ok
  const written: string[] = []
  try {
    for (const piece of pieces) {
      exitCode = codeOf(await session.run(piece))
      if (exitCode !== exitCodes.ok) break
    }
    if (out) await session.writeArtifacts(out, { quiet: flags.quiet === true || flags.json === true, onFile: (path) => written.push(path) })
  } catch (error) {
    if (!(error instanceof ReaderGone)) throw error
    return signalExitCode('SIGPIPE')
  } finally {
    answers?.close()
  }
  if (flags.json)
    await printJson({
      type: 'done',
      code: exitCode,
      id: info.id,
      driver: info.driver,
      tier: info.tier,
      unenforced: info.unenforced,
      clamped: info.clamped,
      files: written,
    })
  return exitCode
}

/** As the system cuts what a program ends with; a number that is too large for any is no success. */
function cutCode(code: number): number {
  return Number.isSafeInteger(code) ? code & 255 : 255
}

/** As a shell would tell it of a program. */
function codeOf({ status, code: own, outcome }: CodeEnding): number {
  switch (status) {
    case 'ok':
      return exitCodes.ok
    case 'error':
      return cutCode(own ?? 1) || 1
    case 'exit':
      return cutCode(own ?? 0)
    case 'interrupted':
      return signalExitCode('SIGINT')
    case 'timed-out':
      return exitCodes.timedOut
    case 'crashed':
      return outcome === undefined ? exitCodes.killed : exitCodeOf(outcome)
  }
}
