// How root runs a suite again as an ordinary user: another uid without groups, a home of its own, and a copy of the tree where it may not read this one.
import { spawnSync } from 'node:child_process'
import { chownSync, cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isOnPath } from '../command.mjs'

// Linux's `nobody`: an account that exists everywhere and owns nothing.
const ordinaryId = 65_534

/**
 * @typedef {object} OrdinaryUser
 * @property {string} root the tree it reads
 * @property {readonly string[]} prefix what is put before a command
 * @property {string} home
 * @property {() => void} remove
 */

/** @param {string} root @param {readonly string[]} prefix */
function canRead(root, prefix) {
  const [file = '', ...args] = [...prefix, process.execPath, '-e', 'fs.readdirSync("node_modules/vitest"), fs.readFileSync("package.json")']
  return spawnSync(file, args, { cwd: root, stdio: 'ignore' }).status === 0
}

/** @param {string} from @param {string} to */
function copyTree(from, to) {
  const left = [join(from, '.git'), join(from, 'build')]
  cpSync(from, to, { recursive: true, verbatimSymlinks: true, filter: (path) => !left.includes(path) })
  spawnSync('chown', ['-R', `${ordinaryId}:${ordinaryId}`, to])
}

/** @param {string} root @returns {OrdinaryUser | string} the user, or why there is none */
export function borrowOrdinaryUser(root) {
  if (process.getuid?.() !== 0) return 'this run is an ordinary user already'
  if (!isOnPath('setpriv')) return 'setpriv is not on PATH (apt-get install util-linux)'
  const place = mkdtempSync(join(tmpdir(), 'glovebox-user-'))
  const home = join(place, 'home')
  mkdirSync(home)
  for (const folder of [place, home]) chownSync(folder, ordinaryId, ordinaryId)
  const account = ['setpriv', '--reuid', String(ordinaryId), '--regid', String(ordinaryId), '--clear-groups', '--']
  const prefix = [...account, 'env', '-u', 'XDG_RUNTIME_DIR', '-u', 'XDG_CACHE_HOME', `HOME=${home}`, `TMPDIR=${place}`, 'USER=nobody', 'LOGNAME=nobody']
  const remove = () => rmSync(place, { recursive: true, force: true })
  if (canRead(root, prefix)) return { root, prefix, home, remove }
  const copy = join(place, 'tree')
  copyTree(root, copy)
  if (canRead(copy, prefix)) return { root: copy, prefix, home, remove }
  remove()
  return `uid ${ordinaryId} cannot start ${process.execPath}`
}
