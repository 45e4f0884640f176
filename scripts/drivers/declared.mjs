// What the published matrix must tell of, read from the sources: the cases, and the drivers that the conformance suite is held against.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import { readText } from '../checks/tree.mjs'

/** @typedef {{ id: string, name: string }} NamedCase */

/** @param {string} root @returns {Promise<readonly NamedCase[]>} */
export async function loadCases(root) {
  const { outputFiles } = await build({
    entryPoints: [join(root, 'src/conformance/all-cases.ts')],
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    logLevel: 'error',
  })
  const code = Buffer.from(outputFiles[0]?.contents ?? '').toString('base64')
  const { allCases } = await import(`data:text/javascript;base64,${code}`)
  return allCases.map((/** @type {NamedCase} */ { id, name }) => ({ id, name }))
}

/** The test files that hold a driver with walls to the cases, and whom: one at each depth. @param {string} root @returns {{ file: string, driver: string }[]} */
export function heldDrivers(root) {
  const folder = join(root, 'test/conformance')
  return readdirSync(folder)
    .filter((file) => /-(?:driver|engine)\.test\.ts$/.test(file))
    .sort()
    .flatMap((file) => {
      const driver = /^hold\('([^']+)',/m.exec(readText(join(folder, file)))?.[1]
      return driver === undefined || driver === 'fake' ? [] : [{ file: `test/conformance/${file}`, driver }]
    })
}

/** @param {string} root @returns {string[]} */
export function driverNames(root) {
  return [...new Set(heldDrivers(root).map(({ driver }) => driver))]
}

/** @param {string} id */
export function groupOf(id) {
  return id.slice(0, id.indexOf('/'))
}

/** @param {readonly NamedCase[]} cases @returns {string[]} in the order of the cases */
export function groupsOf(cases) {
  return [...new Set(cases.map(({ id }) => groupOf(id)))]
}
