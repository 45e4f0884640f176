import type { ProgramLook, ReceiptFacts } from '../receipt/index.js'

/** Where nobody looks at programs, the latest is told with nothing found of it. */
export function unseenPrograms(runs: ReceiptFacts['runs']): ProgramLook[] {
  const run = runs.at(-1)
  return run ? [{ run, expectations: [], postures: [] }] : []
}
