#!/usr/bin/env node
// The one command before a commit: every check and the tests that need no machine of their own, a line each.
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Interrupted } from './command.mjs'
import { runChecks, runVitest } from './testing/suites.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))

/** @param {import('./testing/suites.mjs').SuiteResult} result */
function sayResult({ name, passed, failures, seconds }) {
  const verdict = failures.length === 0 ? 'ok    ' : 'FAILED'
  const count = passed + failures.length > 1 ? `  ${passed} of ${passed + failures.length}` : ''
  process.stdout.write(`${verdict}  ${name.padEnd(18)} ${seconds.toFixed(1).padStart(6)} s${count}\n`)
  for (const { name: failed, message } of failures) process.stdout.write(`\n${failed}: ${message}\n\n`)
}

/** Those that start no cell: everything beside the real conformance runs, the packaging and the documents' examples. */
function runFastTests() {
  const slow = [
    'test/conformance/bwrap*',
    'test/conformance/docker*',
    'test/conformance/oci*',
    'test/conformance/*mutants*',
    'test/**/*-bwrap.test.ts',
    'test/packaging/**',
    'test/docs/**',
    'test/cli/**',
    'test/drivers/bwrap/**',
    'test/drivers/docker/**',
    'test/drivers/oci/**',
    'test/templates/**',
  ]
  return runVitest({
    name: 'fast tests',
    root,
    arguments: slow.flatMap((path) => ['--exclude', path]),
    budgetSeconds: 1800,
    reportPath: join(root, `build/ok-${process.pid}.json`),
  })
}

try {
  const results = await runChecks(root, sayResult)
  const tests = await runFastTests()
  sayResult(tests)
  const failed = [...results, tests].filter(({ failures }) => failures.length > 0).map(({ name }) => name)
  process.stdout.write(failed.length === 0 ? 'ok\n' : `failed: ${failed.join(', ')}\n`)
  process.exitCode = failed.length === 0 ? 0 : 1
} catch (error) {
  if (!(error instanceof Interrupted)) throw error
  process.exitCode = 130
}
