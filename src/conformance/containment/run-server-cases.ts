import { CaseFailure, show } from '../check.js'
import type { CaseResult } from '../run-cases.js'
import type { ServerCase, ServerView } from './server-view.js'

export interface ServerCasesOptions {
  readonly cases: readonly ServerCase[]
  readonly signal?: AbortSignal
  readonly onResult?: (result: CaseResult) => void
}

/** One after the other; what went wrong with one is in its result. */
export async function runServerCases(server: ServerView, { cases, signal, onResult }: ServerCasesOptions): Promise<CaseResult[]> {
  const results: CaseResult[] = []
  for (const { id, run } of cases) {
    signal?.throwIfAborted()
    const startedAt = performance.now()
    const result = await run(server).then(
      (observed): CaseResult => ({ id, verdict: 'passed', reason: '', observed, ms: performance.now() - startedAt }),
      (error: unknown): CaseResult => {
        const isFailure = error instanceof CaseFailure
        return {
          id,
          verdict: 'failed',
          reason: isFailure ? error.message : 'broke off',
          observed: isFailure ? error.observed : show(error),
          ms: performance.now() - startedAt,
        }
      },
    )
    results.push(result)
    onResult?.(result)
  }
  return results
}
