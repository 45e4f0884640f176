#!/usr/bin/env node
// Fuzzes every parser of what others write, for a bounded time, and prints a table of what was done. What is found is kept below build/fuzz/found, and ends it with exit code 1.
// --seconds N (120) of all targets together, in equal parts of at least one; --executions N (no bound) of each; --only NAME, again for more (a part of a name is enough); --seed N (random; printed); --blind: C without coverage; --list.
import { randomInt } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { buildNative, fuzzNative, nativeTargets } from './fuzz/native.mjs'

/** @typedef {import('./fuzz/scripted.mjs').Row} Row */

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '120' },
    executions: { type: 'string', default: `${2 ** 31 - 1}` },
    seed: { type: 'string', default: `${randomInt(2 ** 31)}` },
    only: { type: 'string', multiple: true, default: [] },
    blind: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
  },
})
const say = (/** @type {string} */ line) => process.stdout.write(`fuzz: ${line}\n`)

/** @param {string} problem @returns {never} */
function refuse(problem) {
  process.stderr.write(`fuzz: ${problem}\n`)
  process.exit(2)
}

/** Those of TypeScript are a file each. */
function scriptedNames() {
  try {
    return readdirSync(join(root, 'test/fuzz/targets'))
      .map((file) => file.replace(/\.ts$/, ''))
      .sort()
  } catch {
    return []
  }
}

/** @param {readonly string[]} names */
function chosen(names) {
  return names.filter((name) => values.only.length === 0 || values.only.some((part) => name.includes(part)))
}

/** @param {readonly Row[]} rows */
function table(rows) {
  const cells = rows.map(({ name, kind, executions, seconds, corpus, coverage, findings }) => [
    name,
    kind,
    `${executions}`,
    `${Math.round(executions / Math.max(seconds, 0.001))}`,
    `${corpus}`,
    coverage,
    `${findings.length}`,
  ])
  const lines = [['target', 'in', 'executions', 'per second', 'corpus', 'coverage', 'findings'], ...cells]
  const widths = lines[0]?.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0))) ?? []
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

async function main() {
  for (const name of /** @type {const} */ (['seconds', 'executions', 'seed']))
    if (!/^\d{1,10}$/.test(values[name])) refuse(`--${name} is no number: ${values[name]}`)
  const native = chosen(nativeTargets)
  const scripted = chosen(scriptedNames())
  if (values.list) return process.stdout.write(`${[...native, ...scripted].join('\n')}\n`), 0
  if (native.length + scripted.length === 0)
    refuse(`--only ${values.only.join(', ')}: there is no such target; there are ${[...nativeTargets, ...scriptedNames()].join(', ')}`)
  const seconds = Math.max(1, Math.floor(Number(values.seconds) / (native.length + scripted.length)))
  const order = { root, seconds, executions: Number(values.executions), seed: Number(values.seed), isBlind: values.blind, say }
  say(`seed ${values.seed}, ${seconds} s for each of ${native.length + scripted.length} targets`)
  /** @type {Row[]} */
  const rows = []
  if (native.length > 0) {
    const programs = buildNative(order)
    if (!programs) return 2
    for (const name of native) rows.push(fuzzNative({ ...order, name, programs }))
  }
  if (scripted.length > 0) {
    const { fuzzScripted } = await import('./fuzz/scripted.mjs')
    for (const name of scripted) rows.push(await fuzzScripted({ ...order, name }))
  }
  process.stdout.write(`${table(rows)}\n`)
  const findings = rows.flatMap((row) => row.findings)
  if (findings.length > 0) say(`again with --seed ${values.seed}; found:\n${findings.join('\n')}`)
  return findings.length === 0 ? 0 : 1
}

process.exitCode = await main()
