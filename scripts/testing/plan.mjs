// The suites of `npm test`, in their order. Budgets are some times what a slow two-core machine takes: they catch a hang, not a slow day.
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { borrowOrdinaryUser } from './ordinary-user.mjs'
import { runChecks, runProgram, runVitest } from './suites.mjs'
import { suiteBlock } from './summary.mjs'
import { repeatUnsteady } from './unsteady.mjs'

/** @typedef {import('./suites.mjs').SuiteResult} SuiteResult */

// These have a suite of their own; every other folder of test/ is a unit suite, so that a new room is not forgotten.
const ownSuites = ['conformance', 'packaging', 'checks', 'docs', 'warden']
// What an ordinary user can do differently from root.
const userFolders = ['conformance', 'drivers', 'sys', 'cli', 'sandbox', 'docs', 'audit']
// Elsewhere only what opens real cells.
const userFiles = 'bwrap.test.ts'
// That the cases catch cells which lie, what the driver without walls does, and what lies between a client and its server, is the same for everyone.
const alikeForAll = ['test/conformance/*mutants*', 'test/conformance/fake*', 'test/conformance/*client*']

// That the cases notice what is wrong with files and liners is asked when the cases change; of the engine over crun, what is not the same over runc.
export const deepOnly = ['bwrap-file-mutants', 'bwrap-liner-mutants', 'oci-crun-engine'].map((name) => `test/conformance/${name}.test.ts`)
// What is fuzzed in TypeScript has its seeds and its findings in the unit suite; all of it, for long, is in `npm run test:deep`.
const nativeBriefly = ['--seconds', '15', '--blind', ...['warden-', 'files-', 'launcher-', 'filter-'].flatMap((part) => ['--only', part])]
const withoutDeep = deepOnly.flatMap((path) => ['--exclude', path])

/** @param {string} root @param {readonly string[]} names */
function existing(root, names) {
  return names.map((name) => `test/${name}`).filter((path) => existsSync(join(root, path)) && readdirSync(join(root, path)).length > 0)
}

/** @param {string} root */
function unitFolders(root) {
  const folders = readdirSync(join(root, 'test'), { withFileTypes: true }).filter((entry) => entry.isDirectory())
  return folders.map(({ name }) => name).filter((name) => !ownSuites.includes(name))
}

/** @param {string} root @param {string} reports */
function vitestSuites(root, reports) {
  const suites = [
    { name: 'native', folders: ['warden'], budgetSeconds: 600 },
    { name: 'unit', folders: unitFolders(root), budgetSeconds: 1500 },
    { name: 'checks that catch', folders: ['checks'], budgetSeconds: 600 },
    { name: 'conformance', folders: ['conformance'], budgetSeconds: 1500 },
    { name: 'examples and README', folders: ['docs'], budgetSeconds: 600 },
    { name: 'packaging', folders: ['packaging'], budgetSeconds: 900 },
  ]
  return suites.map(({ name, folders, budgetSeconds }) => ({
    name,
    root,
    arguments: [...existing(root, folders).map((folder) => `${folder}/`), ...(name === 'conformance' ? withoutDeep : [])],
    budgetSeconds,
    reportPath: join(reports, `${name}.json`),
  }))
}

/** @param {Parameters<typeof runVitest>[0]} suite @returns {Promise<SuiteResult>} */
async function runSteadily(suite) {
  return await repeatUnsteady(await runVitest(suite), (files) => runVitest({ ...suite, arguments: files }))
}

/** @param {string} root @returns {Promise<SuiteResult>} */
async function runAsOrdinaryUser(root) {
  const name = 'as an ordinary user'
  const user = borrowOrdinaryUser(root)
  if (typeof user === 'string') return { name, passed: 0, failures: [], skips: [{ name, reason: user }], seconds: 0, output: '' }
  const folders = [
    ...existing(root, userFolders).map((folder) => `${folder}/`),
    userFiles,
    ...alikeForAll.flatMap((path) => ['--exclude', path]),
    ...withoutDeep,
  ]
  try {
    return await runSteadily({
      name,
      root: user.root,
      arguments: folders,
      budgetSeconds: 1800,
      prefix: user.prefix,
      reportPath: join(user.home, 'report.json'),
    })
  } finally {
    user.remove()
  }
}

/** @param {string} root @returns {Promise<SuiteResult>} */
async function runAllChecks(root) {
  const results = await runChecks(root)
  return {
    name: 'checks',
    passed: results.reduce((sum, { passed }) => sum + passed, 0),
    failures: results.flatMap(({ failures }) => failures),
    skips: [],
    seconds: Math.max(...results.map(({ seconds }) => seconds)),
    output: '',
  }
}

/** @param {string} root @returns {Promise<SuiteResult[]>} */
export async function runSuites(root) {
  const reports = mkdtempSync(join(tmpdir(), 'glovebox-reports-'))
  /** @type {SuiteResult[]} */
  const results = []
  const run = async (/** @type {Promise<SuiteResult>} */ pending) => {
    const result = await pending
    results.push(result)
    process.stdout.write(suiteBlock(result))
  }
  try {
    await run(runAllChecks(root))
    for (const suite of vitestSuites(root, reports)) await run(runSteadily(suite))
    await run(runAsOrdinaryUser(root))
    await run(runProgram({ name: 'fuzz', root, argv: [process.execPath, 'scripts/fuzz.mjs', ...nativeBriefly], budgetSeconds: 120 }))
    return results
  } finally {
    rmSync(reports, { recursive: true, force: true })
  }
}
