import { allCases } from './all-cases.js'
import { CaseFailure, show } from './check.js'
import { lackOf } from './needs.js'
import type { Case, Subject, SubjectSandbox } from './subject.js'

export interface CaseResult {
  readonly id: string
  readonly verdict: 'passed' | 'failed' | 'skipped'
  /** Why it was skipped or failed; empty when it passed. */
  readonly reason: string
  readonly observed: string
  readonly ms: number
}

export interface RunCasesOptions {
  /** All there are when not given. */
  readonly cases?: readonly Case[]
  readonly filter?: (candidate: Case) => boolean
  /** A case that takes longer has failed; what it opened is closed. */
  readonly caseTimeoutMs?: number
  readonly onResult?: (result: CaseResult) => void
}

/** How long a case may take that says nothing else: it is there for what hangs, and far more than any takes on a quiet machine. */
export const usualPatienceMs = 120_000

/** Runs the cases one after the other. Never rejects because of a case: what went wrong is in its result. */
export async function runCases(subject: Subject, options: RunCasesOptions = {}): Promise<CaseResult[]> {
  const results: CaseResult[] = []
  for (const candidate of options.cases ?? allCases) {
    if (options.filter && !options.filter(candidate)) continue
    const result = await runCase(subject, candidate, options.caseTimeoutMs ?? candidate.patienceMs ?? usualPatienceMs)
    results.push(result)
    options.onResult?.(result)
  }
  return results
}

async function runCase(subject: Subject, candidate: Case, timeoutMs: number): Promise<CaseResult> {
  const { id } = candidate
  const lacking = candidate.needs?.map((need) => lackOf(need, subject)).find((lack) => lack !== undefined)
  if (lacking !== undefined) return { id, verdict: 'skipped', reason: lacking, observed: '', ms: 0 }
  const tracked = trackSandboxes(subject)
  const startedAt = performance.now()
  try {
    const observed = await within(candidate.run(tracked.subject), timeoutMs, tracked.underWay)
    return { id, verdict: 'passed', reason: '', observed, ms: performance.now() - startedAt }
  } catch (error) {
    const observed = error instanceof CaseFailure ? error.observed : show(error)
    return { id, verdict: 'failed', reason: error instanceof CaseFailure ? error.message : 'broke off', observed, ms: performance.now() - startedAt }
  } finally {
    await tracked.closeAll()
  }
}

async function within<T>(promise: Promise<T>, timeoutMs: number, seen: () => string): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new CaseFailure(`must end within ${timeoutMs} ms`, `it did not; ${seen()}`)), timeoutMs)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

/** What only some depths have. */
function extrasOf(sandbox: SubjectSandbox): Pick<SubjectSandbox, 'limit' | 'usage' | 'receipt' | 'snapshots' | 'processes' | 'code'> {
  return {
    ...(sandbox.limit && { limit: sandbox.limit.bind(sandbox) }),
    ...(sandbox.usage && { usage: sandbox.usage.bind(sandbox) }),
    ...(sandbox.receipt && { receipt: sandbox.receipt.bind(sandbox) }),
    ...(sandbox.snapshots && { snapshots: sandbox.snapshots }),
    ...(sandbox.processes && { processes: sandbox.processes }),
    ...(sandbox.code && { code: sandbox.code }),
  }
}

interface Tracked {
  readonly subject: Subject
  /** What was asked of its sandboxes and not answered yet. */
  readonly underWay: () => string
  closeAll(): Promise<void>
}

/** A case that breaks off leaves its sandboxes open; the next case must not see them. */
function trackSandboxes(subject: Subject): Tracked {
  const opened = new Set<SubjectSandbox>()
  const pending = new Map<symbol, string>()
  const during = <T>(what: string, act: Promise<T>): Promise<T> => {
    const key = Symbol(what)
    pending.set(key, what)
    return act.finally(() => pending.delete(key))
  }
  const underWay = (): string => (pending.size === 0 ? 'nothing was asked of a sandbox then' : `under way: ${[...pending.values()].join(', ')}`)
  const open: Subject['open'] = async (spec, options) => {
    const sandbox = await during('open', subject.open(spec, options))
    opened.add(sandbox)
    return {
      run: (command, runOptions) => during(`run ${show(command)}`, sandbox.run(command, runOptions)),
      start: (command, startOptions) => during(`start ${show(command)}`, sandbox.start(command, startOptions)),
      pause: (pauseOptions) => during('pause', sandbox.pause(pauseOptions)),
      resume: () => during('resume', sandbox.resume()),
      exchange: (port, bytes) => during(`exchange with port ${port}`, sandbox.exchange(port, bytes)),
      files: sandbox.files,
      ...extrasOf(sandbox),
      close: async () => {
        await during('close', sandbox.close())
        opened.delete(sandbox)
      },
    }
  }
  return {
    subject: {
      name: subject.name,
      depth: subject.depth,
      probe: subject.probe,
      host: subject.host,
      open,
      ...(subject.pool && { pool: subject.pool.bind(subject) }),
      ...(subject.lined && { lined: subject.lined.bind(subject) }),
    },
    underWay,
    closeAll: async () => {
      const closing = [...opened].map((sandbox) => sandbox.close().catch(() => undefined))
      await within(Promise.all(closing), 20_000, underWay).catch(() => undefined)
    },
  }
}
