#!/usr/bin/env node
// Runs the conformance suite for every driver with walls, as root and as an ordinary user, and writes what came of it into docs/drivers.md.
//   --from DIR   of what such runs recorded there, without running anything
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { beginning, ending, matrixBlock } from './drivers/block.mjs'
import { driverNames, heldDrivers, loadCases } from './drivers/declared.mjs'
import { borrowOrdinaryUser } from './testing/ordinary-user.mjs'
import { runVitest } from './testing/suites.mjs'

/** @typedef {import('./drivers/block.mjs').ConformanceRecord} ConformanceRecord */

const root = fileURLToPath(new URL('..', import.meta.url))
const page = join(root, 'docs/drivers.md')
const budgetSeconds = 3600

/** @param {string} folder @returns {ConformanceRecord[]} */
function readRecords(folder) {
  return readdirSync(folder).map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')))
}

/** @param {{ name: string, tree: string, prefix?: readonly string[], folder: string }} run @returns {Promise<ConformanceRecord[]>} */
async function record({ name, tree, prefix = [], folder }) {
  const { passed, failures, seconds } = await runVitest({
    name,
    root: tree,
    arguments: heldDrivers(root).map(({ file }) => file),
    budgetSeconds,
    prefix,
    env: { GLOVEBOX_CONFORMANCE_RECORD: join(folder, 'record'), GLOVEBOX_DEEP: '1' },
    reportPath: join(folder, 'report.json'),
  })
  process.stdout.write(`${name}: ${passed} passed in ${seconds.toFixed(0)} s\n`)
  for (const { name: failed, message } of failures) process.stdout.write(`FAILED ${failed}: ${message}\n`)
  if (failures.length > 0) throw new Error(`${failures.length} cases failed: nothing is written`)
  return readRecords(join(folder, 'record'))
}

/** @returns {Promise<ConformanceRecord[]>} */
async function recordAll() {
  const user = borrowOrdinaryUser(root)
  if (typeof user === 'string') throw new Error(`both root and an ordinary user are asked: ${user}`)
  const folder = mkdtempSync(join(tmpdir(), 'glovebox-drivers-'))
  try {
    const asRoot = await record({ name: 'as root', tree: root, folder })
    return [...asRoot, ...(await record({ name: 'as an ordinary user', tree: user.root, prefix: user.prefix, folder: user.home }))]
  } finally {
    user.remove()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Every driver at both depths, as root. @param {readonly ConformanceRecord[]} records @param {readonly string[]} drivers */
function refuseGaps(records, drivers) {
  for (const driver of drivers) {
    for (const depth of ['driver', 'engine']) {
      const found = records.find((each) => each.driver === driver && each.depth === depth && each.isRoot)
      if (found === undefined || found.absent !== undefined) throw new Error(`${driver} at ${depth} depth: ${found?.absent ?? 'was not recorded'}`)
    }
  }
}

const { values } = parseArgs({ options: { from: { type: 'string' } } })
const records = values.from === undefined ? await recordAll() : readRecords(values.from)
const drivers = driverNames(root)
refuseGaps(records, drivers)
const block = matrixBlock({ records, cases: await loadCases(root), drivers })
const text = readFileSync(page, 'utf8')
const [before = '', rest = ''] = text.split(beginning)
writeFileSync(page, `${before}${block}${rest.split(ending)[1] ?? '\n'}`)
process.stdout.write(`docs/drivers.md: ${drivers.join(', ')}\n`)
