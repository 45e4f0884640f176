#!/usr/bin/env node
// Holds what we ship to its sizes: a file 300 lines, a function 50 lines, three positional parameters, none of them boolean.
// node scripts/checks/sizes.mjs [folder that contains src, warden, runtimes, web]
import { extname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { longFunctionsInC } from './c-functions.mjs'
import { longFunctionsInPython } from './python-functions.mjs'
import { filesBelow, readText, report } from './tree.mjs'
import { typescriptProblems } from './typescript-functions.mjs'

const folders = ['src', 'warden', 'runtimes', 'web']
const sources = ['.ts', '.tsx', '.js', '.mjs', '.c', '.h', '.py', '.sh', '.css']

export const limits = { fileLines: 300, functionLines: 50, parameters: 3 }

/** @typedef {{ line: number, text: string }} Problem */

/** @param {string} path @param {string} text @returns {Problem[]} */
function problemsOf(path, text) {
  const lines = text.replace(/\n$/, '').split('\n').length
  const problems = lines > limits.fileLines ? [{ line: limits.fileLines + 1, text: `the file has ${lines} lines, and ${limits.fileLines} are the limit` }] : []
  const extension = extname(path)
  if (['.ts', '.tsx', '.js', '.mjs'].includes(extension)) return [...problems, ...typescriptProblems(path, text, limits)]
  if (['.c', '.h'].includes(extension)) return [...problems, ...longFunctionsInC(text, limits.functionLines)]
  if (extension === '.py') return [...problems, ...longFunctionsInPython(text, limits.functionLines)]
  return problems
}

/** @param {string} root @returns {string[]} */
export function sizeProblems(root) {
  return folders.flatMap((folder) =>
    filesBelow(join(root, folder))
      .filter((path) => sources.includes(extname(path)))
      .flatMap((path) => problemsOf(path, readText(join(root, folder, path))).map(({ line, text }) => `${folder}/${path}:${line}: ${text}`)),
  )
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) report(sizeProblems(process.argv[2] ?? '.'))
