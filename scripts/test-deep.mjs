#!/usr/bin/env node
// What takes minutes and needs no run at every change: the same tests as in `npm test`, with the whole number of names, attempts and requests, and all that is asked of slow drivers.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setUp } from './setup/steps.mjs'
import { deepOnly } from './testing/plan.mjs'
import { runProgram, runVitest } from './testing/suites.mjs'
import { countLine, suiteBlock } from './testing/summary.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const leftOut = ['oci-runsc-driver', 'oci-runsc-engine', 'docker-engine', 'fake-client', 'fake-watched']
const conformance = [...leftOut.map((name) => `test/conformance/${name}.test.ts`), ...deepOnly]
const server = ['test/server/killed-bwrap.test.ts', 'test/server/fuzz.test.ts']
const recovery = ['killed-load-bwrap', 'faults-bwrap', 'faults-killed-bwrap'].map((name) => `test/engine/${name}.test.ts`)
const deepTests = ['test/sandbox/many-names.test.ts', 'test/sandbox/swapped-mount.test.ts', ...conformance, ...server, ...recovery]

/** @returns {Promise<number>} the exit code */
async function main() {
  const ready = await setUp({ everything: true })
  if (ready !== 0) return ready
  const reports = mkdtempSync(join(tmpdir(), 'glovebox-reports-'))
  const suite = { name: 'deep', root, arguments: deepTests, budgetSeconds: 3300, env: { GLOVEBOX_DEEP: '1' }, reportPath: join(reports, 'deep.json') }
  try {
    const load = { name: 'ten minutes of mixed load', root, argv: [process.execPath, 'bench/server-load.mjs', '--minutes', '10'], budgetSeconds: 900 }
    const fuzz = { name: 'fuzz', root, argv: [process.execPath, 'scripts/fuzz.mjs', '--seconds', '1080'], budgetSeconds: 1800 }
    const soak = { name: 'soak', root, argv: [process.execPath, 'bench/soak.mjs', '--minutes', '10', '--out', reports], budgetSeconds: 1200 }
    const verify = { name: 'verify', root, argv: [process.execPath, 'dist/cli/main.js', 'verify', '--html', join(reports, 'verify.html')], budgetSeconds: 1800 }
    const results = [await runVitest(suite), await runProgram(verify), await runProgram(load), await runProgram(fuzz), await runProgram(soak)]
    process.stdout.write(`${results.map(suiteBlock).join('\n')}\n${countLine(results)}\n`)
    return results.some(({ failures }) => failures.length > 0) ? 1 : 0
  } finally {
    rmSync(reports, { recursive: true, force: true })
  }
}

process.exitCode = await main()
