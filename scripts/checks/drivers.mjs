#!/usr/bin/env node
// Holds the matrix of docs/drivers.md to what is in the sources: each driver that the conformance suite is held against, each group, each case by its name.
// node scripts/checks/drivers.mjs [root]
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { beginning, ending, escaped } from '../drivers/block.mjs'
import { driverNames, groupsOf, loadCases } from '../drivers/declared.mjs'
import { readText, report } from './tree.mjs'

const page = 'docs/drivers.md'

/** @param {{ what: string, told: readonly string[], declared: readonly string[] }} found @returns {string[]} */
function differences({ what, told, declared }) {
  return [
    ...declared.filter((name) => !told.includes(name)).map((name) => `${page}: lacks ${what} ${name}; npm run drivers`),
    ...told.filter((name) => !declared.includes(name)).map((name) => `${page}: tells of ${what} ${name}, which there is not; npm run drivers`),
  ]
}

/** @param {string} block @returns {string[]} */
function driversTold(block) {
  const head = block.split('\n').find((line) => line.startsWith('| group |')) ?? ''
  return [...new Set([...head.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name))]
}

/** @param {string} root @returns {Promise<string[]>} */
export async function driverProblems(root) {
  const text = existsSync(join(root, page)) ? readText(join(root, page)) : ''
  const block = text.split(beginning)[1]?.split(ending)[0]
  if (block === undefined) return [`${page}: has no generated matrix; npm run drivers`]
  const cases = await loadCases(root)
  const groups = [...block.matchAll(/^<details><summary>([a-z-]+): \d+<\/summary>$/gm)].map(([, name = '']) => name)
  const told = [...block.matchAll(/^\| `([a-z0-9-]+\/[^`]+)` \| (.+?) \| /gm)].map(([, id, name]) => `${id}: ${name}`)
  return [
    ...differences({ what: 'the driver', told: driversTold(block), declared: driverNames(root) }),
    ...differences({ what: 'the group', told: groups, declared: groupsOf(cases) }),
    ...differences({ what: 'the case', told, declared: cases.map(({ id, name }) => `${id}: ${escaped(name)}`) }),
  ]
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) report(await driverProblems(process.argv[2] ?? '.'))
