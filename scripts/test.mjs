#!/usr/bin/env node
// Everything real, from an empty clone: sets up with all tools, runs the suites one after the other, and ends with a table and one line of counts.
import { fileURLToPath } from 'node:url'
import { Interrupted } from './command.mjs'
import { setUp } from './setup/steps.mjs'
import { runSuites } from './testing/plan.mjs'
import { countLine, summaryTable } from './testing/summary.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))

/** @returns {Promise<number>} the exit code */
async function main() {
  const ready = await setUp({ everything: true })
  if (ready !== 0) return ready
  const results = await runSuites(root)
  process.stdout.write(`\n${summaryTable(results)}\n\n${countLine(results)}\n`)
  return results.some(({ failures }) => failures.length > 0) ? 1 : 0
}

try {
  process.exitCode = await main()
} catch (error) {
  if (!(error instanceof Interrupted)) throw error
  process.stderr.write('interrupted; what was running has been stopped\n')
  process.exitCode = 130
}
