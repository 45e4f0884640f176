import { createPlatform } from '../../compose.js'
import { SandboxError } from '../../contract/errors.js'
import type { Platform, SandboxInfo } from '../../contract/platform.js'
import { codeInOne } from '../demo-code.js'
import { liveInOne } from '../demo-living.js'
import { reachOne } from '../demo-network.js'
import { type DemoStage, plantStage } from '../demo-stage.js'
import { type DemoStep, demoSteps, type Observed, type Verdict } from '../demo-steps.js'
import type { CreateOptions } from '../../sandbox/index.js'
import { exitCodes } from '../exit-codes.js'
import { watchInterrupts } from '../interrupts.js'
import { spawnPlainly } from '../plain-spawn.js'
import { type Colors, colorsFor, escapeControls, ownName, printJson } from '../print.js'
import { parseRunFlags, type RunFlags } from '../run-flags.js'
import { captureOutput, writeOut } from '../streams.js'
import { durationInWords, roundTimes } from '../words.js'

/** The PATH that programs have inside a cell: beside it, a plain spawn has to find the very same ones. */
const cellPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

const refusalMissing = 1

export type DemoFlags = Pick<RunFlags, 'driver' | 'minTier' | 'json'>

interface StepReport {
  readonly name: string
  readonly title: string
  readonly result: 'ok' | 'failed' | 'not-run'
  readonly seen: string
  readonly sandboxMs: number
  /** Of the same done plainly; a sandbox that is lived in has nothing beside it. */
  readonly plain?: string
  readonly plainMs?: number
}

interface Ground {
  readonly platform: Platform
  readonly stage: DemoStage
  readonly flags: DemoFlags
  readonly signal: AbortSignal
}

/** Runs every step in a fresh sandbox and plainly beside it. Resolves to 1 when something did not go as it should. */
export async function demo(flags: DemoFlags): Promise<number> {
  using interrupts = watchInterrupts()
  await using platform = createPlatform()
  await using stage = await plantStage()
  const ground = { platform, stage, flags, signal: interrupts.signal }
  const colors = colorsFor(process.stdout)
  const { driver, tier, unenforced } = await firstSandbox(ground)
  if (!flags.json) await writeOut(renderHead({ driver, tier, unenforced }, colors))
  const reports: StepReport[] = []
  for (const step of demoSteps) {
    const report = await showWaiting(step.title, ground, () => perform(step, ground))
    reports.push(report)
    if (!flags.json) await writeOut(renderStep(report, colors))
  }
  for (const { title, act, name } of kept) {
    const report = await showWaiting(title, ground, () => performKept({ name, title, act }, ground))
    reports.push(report)
    if (!flags.json) await writeOut(renderStep(report, colors))
  }
  const failed = reports.filter((report) => report.result === 'failed')
  const proof = await takeReceipt(ground)
  if (flags.json) await printJson({ driver, tier, unenforced, ok: failed.length === 0, steps: reports.map((report) => roundTimes(report)), receipt: proof })
  else await writeOut(renderSummary(reports, colors) + renderProof(proof))
  return failed.length === 0 ? exitCodes.ok : refusalMissing
}

/** Says on a terminal what is being waited for, and takes it away again however that ends. */
async function showWaiting(title: string, { flags }: Ground, act: () => Promise<StepReport>): Promise<StepReport> {
  if (flags.json || !process.stdout.isTTY) return act()
  await writeOut(colorsFor(process.stdout).dim(`  … ${title}`))
  try {
    return await act()
  } finally {
    await writeOut('\r\u001b[K')
  }
}

/** Learns which driver is chosen, and takes the engine's first-time costs out of the first step. */
async function firstSandbox({ platform, flags, signal }: Ground) {
  const info = await platform.create(parseRunFlags(['true'], flags).spec, { signal })
  await platform.close(info.id)
  return info
}

type Proof = { readonly controls: number; readonly proven: number; readonly notEnforced: number } | { readonly why: string }

/** What a receipt says of a sandbox like the others; where no key can be kept there is none, and the demo goes on. */
async function takeReceipt({ platform, flags, signal }: Ground): Promise<Proof> {
  const { spec, request } = parseRunFlags(['true'], flags)
  const { id } = await platform.create(spec, { signal })
  try {
    const program = await platform.start(id, { ...request, output: {} }, { signal })
    await Promise.all([captureOutput(program), program.ended])
    const { controls } = await platform.receipt(id, { signal })
    const asked = controls.filter(({ verdict }) => verdict !== 'not-asked')
    const count = (wanted: string): number => asked.filter(({ verdict }) => verdict === wanted).length
    return { controls: asked.length, proven: count('proven'), notEnforced: count('not-enforced') }
  } catch (error) {
    if (!(error instanceof SandboxError) || error.code !== 'unavailable') throw error
    return { why: error.message }
  } finally {
    await platform.close(id)
  }
}

async function perform(step: DemoStep, ground: Ground): Promise<StepReport> {
  const sandboxMs: number[] = []
  const plainMs: number[] = []
  let verdict: Verdict = { ok: false, seen: '' }
  let plain = ''
  let missing: string | undefined
  for (let round = 0; round < step.rounds; round += 1) {
    const unprotected = await spawnPlainly((step.plainArgv ?? step.argv)(ground.stage), { stopAfterMs: step.timeMs, path: cellPath, signal: ground.signal })
    plain = unprotected.missing ?? (await step.judgePlain(unprotected, ground.stage))
    plainMs.push(unprotected.ms)
    const startedAt = performance.now()
    const observed = await runSandboxed(step, ground)
    sandboxMs.push(performance.now() - startedAt)
    if (observed.outcome.kind === 'not-started') missing = observed.outcome.reason
    verdict = await step.judge(observed, ground.stage)
    if (!verdict.ok) break
  }
  const result = missing !== undefined ? 'not-run' : verdict.ok ? 'ok' : 'failed'
  const seen = missing === undefined ? verdict.seen : `not run: ${missing}`
  return { name: step.name, title: step.title, result, seen, plain, sandboxMs: median(sandboxMs), plainMs: median(plainMs) }
}

async function runSandboxed(step: DemoStep, { platform, stage, flags, signal }: Ground): Promise<Observed> {
  const { spec, request } = parseRunFlags(step.argv(stage), { ...flags, timeout: `${step.timeMs}ms` })
  const { id } = await platform.create(spec, { signal })
  try {
    const program = await platform.start(id, { ...request, output: {} }, { signal })
    const [captured, ending] = await Promise.all([captureOutput(program), program.ended])
    return { outcome: ending.outcome, stdout: captured.stdout.toString(), stderr: captured.stderr.toString() }
  } finally {
    await platform.close(id)
  }
}

/** What takes a sandbox that is kept for more than one thing. */
interface KeptStep {
  readonly name: string
  readonly title: string
  readonly act: (options: CreateOptions, stage: DemoStage) => Promise<Verdict | { readonly missing: string }>
}

const kept: readonly KeptStep[] = [
  { name: 'live', title: 'Living in one: file, process, diff', act: liveInOne },
  { name: 'code', title: 'Code in a context that remembers', act: codeInOne },
  { name: 'network', title: 'Reaching one host by name, and no other', act: reachOne },
]

async function performKept({ name, title, act }: KeptStep, { platform, flags, signal, stage }: Ground): Promise<StepReport> {
  const startedAt = performance.now()
  const verdict = await act({ ...parseRunFlags(['true'], flags).spec, platform, signal }, stage)
  const sandboxMs = performance.now() - startedAt
  if ('missing' in verdict) return { name, title, result: 'not-run', seen: `not run: ${verdict.missing}`, sandboxMs }
  return { name, title, result: verdict.ok ? 'ok' : 'failed', seen: verdict.seen, sandboxMs }
}

const marks = { ok: '✓', failed: '✗', 'not-run': '–' } as const
const leftWidth = 53

/** Two columns: what happened in the sandbox, and what a plain spawn of the same did. */
function renderRow(left: string, right: string, colors: Colors): string {
  return `${left} ${colors.dim(`│ ${right}`.trimEnd())}\n`
}

function renderHead({ driver, tier, unenforced }: Pick<SandboxInfo, 'driver' | 'tier' | 'unenforced'>, colors: Colors): string {
  const lacking = unenforced.length === 0 ? '' : `, without limits on ${unenforced.map(({ limit }) => limit).join(', ')}`
  const columns = renderRow(colors.dim('    in a fresh sandbox each'.padEnd(leftWidth)), 'as a plain spawn', colors)
  return `${colors.bold('glovebox demo')}  driver ${driver}, tier ${tier}${lacking}\n\n${columns}`
}

function renderStep(report: StepReport, colors: Colors): string {
  const paint = { ok: colors.green, failed: colors.red, 'not-run': colors.yellow }[report.result]
  const took = report.result === 'not-run' ? '' : durationInWords(report.sandboxMs)
  const title = `${paint(marks[report.result])} ${report.title.padEnd(leftWidth - 4 - took.length)}${took}`
  const seen = paint(escapeControls(report.seen).padEnd(leftWidth - 6))
  const plainMs = report.plainMs === undefined ? '' : durationInWords(report.plainMs)
  return renderRow(`  ${title}`, plainMs, colors) + renderRow(`    ${colors.dim('→')} ${seen}`, escapeControls(report.plain ?? ''), colors)
}

function renderSummary(reports: readonly StepReport[], colors: Colors): string {
  const count = (result: StepReport['result']): number => reports.filter((report) => report.result === result).length
  const notRun = count('not-run') === 0 ? '' : `, ${count('not-run')} not run`
  const failed = count('failed')
  if (failed > 0) return `\n${colors.red(`${failed} of ${reports.length} did not go as they should${notRun}.`)}\n`
  return `\n${count('ok')} of ${reports.length} went as they should${notRun}. Now yours: ${ownName()} run -- python3 -c 'print(6*7)'\nOr one that lasts: ${ownName()} create --name box, then ${ownName()} sh box\n`
}

function renderProof(proof: Proof): string {
  if ('why' in proof) return `No receipt: ${escapeControls(proof.why)}\n`
  const lacking = proof.notEnforced === 0 ? '' : `, ${proof.notEnforced} not enforced`
  return `And proof: ${proof.proven} of ${proof.controls} controls read back from the kernel${lacking}. Look:\n  ${ownName()} run --receipt r.json -- true && ${ownName()} receipt show r.json\n`
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? 0
}
