#!/usr/bin/env node
// Holds the documents to the code: the error table, links to files, an entry for this version in the changelog, and words that tell of someone's machine.
// node scripts/checks/docs.mjs [root]
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { transformSync } from 'esbuild'
import { filesBelow, readText, report } from './tree.mjs'

/** @typedef {Record<string, { status: number, exitCode: number, retryable: boolean, means: string }>} ErrorTable */

const bannedWords = [
  { pattern: /(?<![\w.])\/work(?![\w-])/, why: 'a path of one machine' },
  { pattern: /\bissue (?:#|\d)/i, why: 'a number of a tracker readers cannot see' },
  { pattern: /registry\.npmjs\.org|"resolved": "http/, why: 'a registry host; everyone has their own' },
]
const exempt = ['scripts/checks/docs.mjs', 'test/checks/docs.test.ts']

/** @param {string} root @returns {Promise<ErrorTable>} */
async function loadErrorTable(root) {
  const { code } = transformSync(readText(join(root, 'src/contract/errors.ts')), { loader: 'ts', format: 'esm' })
  return (await import(`data:text/javascript;base64,${Buffer.from(code).toString('base64')}`)).errorTable
}

/** The rows of a Markdown table whose first cell is a code in backticks. @param {string} text @returns {Map<string, string[]>} */
function tableRows(text) {
  const rows = text.split('\n').flatMap((line) => {
    const cells = line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim())
    const [, code] = cells[0]?.match(/^`([a-z-]+)`$/) ?? []
    return code === undefined ? [] : [/** @type {[string, string[]]} */ ([code, cells.slice(1)])]
  })
  return new Map(rows)
}

/** @param {string} root @returns {Promise<string[]>} */
async function errorProblems(root) {
  const page = 'docs/errors.md'
  if (!existsSync(join(root, page))) return [`${page}: is missing`]
  const table = await loadErrorTable(root)
  const rows = tableRows(readText(join(root, page)))
  const unknown = [...rows.keys()].filter((code) => !(code in table)).map((code) => `${page}: ${code} is not in the error table`)
  const wrong = Object.entries(table).flatMap(([code, { status, exitCode, retryable, means }]) => {
    const expected = [String(status), String(exitCode), retryable ? 'yes' : 'no', means]
    const found = rows.get(code)
    const line = `| \`${code}\` | ${expected.join(' | ')} |`
    if (found === undefined) return [`${page}: lacks the row ${line}`]
    return expected.every((cell, index) => cell === found[index]) ? [] : [`${page}: ${code} must read ${line}`]
  })
  return [...unknown, ...wrong]
}

/** @param {string} root @param {string} path @returns {string[]} */
function linkProblems(root, path) {
  const text = readText(join(root, path)).replace(/```[\s\S]*?```/g, '')
  return [...text.matchAll(/\]\(([^)\s#]+)(?:#[^)\s]*)?\)/g)].flatMap(([, target = '']) => {
    if (/^[a-z]+:/.test(target) || existsSync(join(root, dirname(path), target))) return []
    return [`${path}: links to ${target}, which does not exist`]
  })
}

/** @param {string} root @returns {string[]} */
function changelogProblems(root) {
  const { version } = JSON.parse(readText(join(root, 'package.json')))
  const path = join(root, 'CHANGELOG.md')
  if (!existsSync(path)) return ['CHANGELOG.md: is missing']
  return readText(path).includes(`## [${version}]`) ? [] : [`CHANGELOG.md: has no entry "## [${version}]"`]
}

/** @param {string} root @param {string} path @returns {string[]} */
function wordProblems(root, path) {
  if (exempt.includes(path)) return []
  return readText(join(root, path))
    .split('\n')
    .flatMap((line, index) =>
      bannedWords.flatMap(({ pattern, why }) => (pattern.test(line) ? [`${path}:${index + 1}: ${line.match(pattern)?.[0]} is ${why}`] : [])),
    )
}

/** @param {string} root @returns {Promise<string[]>} */
export async function docProblems(root) {
  const files = filesBelow(root)
  const pages = files.filter((path) => path.endsWith('.md'))
  return [
    ...(await errorProblems(root)),
    ...pages.flatMap((path) => linkProblems(root, path)),
    ...changelogProblems(root),
    ...files.flatMap((path) => wordProblems(root, path)),
  ]
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) report(await docProblems(process.argv[2] ?? '.'))
