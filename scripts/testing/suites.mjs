// One suite is one program with a name and a time budget; what it has to say comes back as counts, failures and skips.
import { readFileSync, rmSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { checks } from '../checks/list.mjs'
import { runCommand } from '../command.mjs'

/**
 * @typedef {import('./reporter.mjs').Report} Report
 * @typedef {Report & { name: string, seconds: number, output: string, unsteady?: Report['failures'] }} SuiteResult
 */

/** @param {string} text */
function escapeless(text) {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the escape character is what is searched for
  return text.replace(/\u001b\[[0-9;]*m/g, '')
}

/** @param {string} path @returns {Report | undefined} */
function readReport(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    return undefined
  } finally {
    rmSync(path, { force: true })
  }
}

/**
 * Runs vitest over some paths; with CI set it fails on a missing golden file instead of writing one. A run that dies, hangs or finds nothing is a failure of its own, never a silent zero.
 * @param {{ name: string, root: string, arguments: readonly string[], budgetSeconds: number, prefix?: readonly string[], env?: Record<string, string>, reportPath: string }} suite
 * @returns {Promise<SuiteResult>}
 */
export async function runVitest(suite) {
  const reporter = join(suite.root, 'scripts/testing/reporter.mjs')
  const vitest = [process.execPath, 'node_modules/vitest/vitest.mjs', 'run', '--configLoader', 'runner', '--reporter', 'default', '--reporter', reporter]
  const result = await runCommand([...(suite.prefix ?? []), ...vitest, ...suite.arguments], {
    cwd: suite.root,
    env: { ...suite.env, GLOVEBOX_TEST_REPORT: suite.reportPath, FORCE_COLOR: '0', CI: 'true' },
    timeoutMs: suite.budgetSeconds * 1000,
    keptBytes: 1 << 20,
  })
  const report = readReport(suite.reportPath) ?? { passed: 0, failures: [], skips: [] }
  if (result.timedOut) report.failures.push({ name: suite.name, message: `did not end within its ${suite.budgetSeconds} s` })
  else if (result.code !== 0 && report.failures.length === 0) report.failures.push({ name: suite.name, message: `ended with ${result.code}` })
  return { ...report, name: suite.name, seconds: result.seconds, output: escapeless(result.output) }
}

/** A suite that is one program, passed or not. @param {{ name: string, root: string, argv: readonly string[], budgetSeconds: number }} suite @returns {Promise<SuiteResult>} */
export async function runProgram(suite) {
  const result = await runCommand(suite.argv, { cwd: suite.root, timeoutMs: suite.budgetSeconds * 1000, keptBytes: 1 << 18 })
  const message = result.timedOut ? `did not end within its ${suite.budgetSeconds} s` : `ended with ${result.code}`
  const failures = result.code === 0 && !result.timedOut ? [] : [{ name: suite.name, message: `${message}\n${escapeless(result.output)}` }]
  return { name: suite.name, passed: failures.length === 0 ? 1 : 0, failures, skips: [], seconds: result.seconds, output: '' }
}

/**
 * All checks, as many at once as there are cores, each handed to `onResult` when it ends.
 * @param {string} root @param {(result: SuiteResult) => void} [onResult] @returns {Promise<SuiteResult[]>}
 */
export async function runChecks(root, onResult) {
  const waiting = [...checks]
  /** @type {SuiteResult[]} */
  const results = []
  const work = async () => {
    for (let check = waiting.shift(); check !== undefined; check = waiting.shift()) {
      const result = await runProgram({ ...check, root, budgetSeconds: 300 })
      results.push(result)
      onResult?.(result)
    }
  }
  await Promise.all(Array.from({ length: availableParallelism() }, work))
  return results
}
