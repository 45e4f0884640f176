// What the checks share: reading a tree, and saying what is wrong with it.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'

// `.git` is a file in a linked work tree.
const ignored = ['node_modules', 'dist', 'build', '.git', 'coverage']

/** All files below a folder, relative to it, in a stable order. @param {string} folder @returns {string[]} */
export function filesBelow(folder) {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { withFileTypes: true })
    .flatMap((entry) => {
      const path = join(folder, entry.name)
      if (ignored.includes(entry.name)) return []
      if (entry.isDirectory()) return filesBelow(path).map((name) => join(entry.name, name))
      return [relative(folder, path)]
    })
    .sort()
}

/** @param {string} path */
export function readText(path) {
  return readFileSync(path, 'utf8')
}

/** Prints each problem on a line and ends with 1 if there is one. @param {readonly string[]} problems */
export function report(problems) {
  for (const problem of problems) process.stdout.write(`${problem}\n`)
  process.exitCode = problems.length === 0 ? 0 : 1
}
