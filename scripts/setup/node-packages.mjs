// Whether node_modules holds what a lock file says, without asking npm, which takes a second to say yes.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * @typedef {{ version?: string, dev?: boolean, optional?: boolean, devOptional?: boolean, peer?: boolean }} LockedPackage
 * @typedef {Record<string, LockedPackage>} LockedPackages
 */

/** @param {string} path @returns {LockedPackages | undefined} */
function readPackages(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8')).packages
  } catch {
    return undefined
  }
}

/**
 * npm writes node_modules/.package-lock.json last, so an installation that was cut off counts as none.
 * @param {string} folder @param {'all' | 'running'} extent
 */
export function isInstalled(folder, extent) {
  const locked = readPackages(join(folder, 'package-lock.json'))
  const installed = readPackages(join(folder, 'node_modules/.package-lock.json'))
  if (locked === undefined || installed === undefined) return false
  return Object.entries(locked).every(([path, entry]) => {
    if (path === '' || entry.optional || entry.devOptional) return true
    if (extent === 'running' && entry.dev) return true
    return installed[path]?.version === entry.version && existsSync(join(folder, path, 'package.json'))
  })
}

/** Whether someone installed the development tools here: they must survive a set-up for running. @param {string} folder */
export function hasDevelopmentTools(folder) {
  return existsSync(join(folder, 'node_modules/typescript/package.json'))
}
