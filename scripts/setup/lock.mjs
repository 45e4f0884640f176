// One set-up at a time in one clone, without kernel locks (Node has none) and without a moment in which two can hold it.
//
// The lock is a folder of numbered records. The highest number is the holder; it is free once `<number>.done` lies beside it or its process is gone.
// Taking it means linking a record at the next number, which only one process can do. Only the holder of a higher number removes lower ones, so the highest
// never decreases, and a slow process that linked a number below it sees that it lost.
import { linkSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * A process is named by its pid and the time it started, because pids are used again.
 * @typedef {{ pid: number, started: string }} Owner
 */

/** @param {number} pid @returns {Owner} */
export function ownerOf(pid) {
  return { pid, started: startTime(pid) }
}

/** @param {number} pid */
function startTime(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? ''
  } catch {
    return ''
  }
}

/** @param {Owner} owner */
export function isAlive(owner) {
  try {
    process.kill(owner.pid, 0)
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EPERM') return false
  }
  return owner.started === startTime(owner.pid)
}

/** @param {string} folder */
function highest(folder) {
  const numbers = readdirSync(folder).flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []))
  return Math.max(0, ...numbers)
}

/** @param {string} path @returns {Owner | undefined} */
function readOwner(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    return undefined
  }
}

/** The living holder of a number, if there is one. @param {string} folder @param {number} number */
function holder(folder, number) {
  if (number === 0 || readdirSync(folder).includes(`${number}.done`)) return undefined
  const owner = readOwner(join(folder, String(number)))
  return owner !== undefined && isAlive(owner) ? owner : undefined
}

/** @param {string} folder @param {number} number @returns {boolean} */
function take(folder, number) {
  const draft = join(folder, `draft-${process.pid}`)
  writeFileSync(draft, JSON.stringify(ownerOf(process.pid)))
  try {
    linkSync(draft, join(folder, String(number)))
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === 'EEXIST') return false
    throw error
  } finally {
    rmSync(draft, { force: true })
  }
  if (highest(folder) === number) return true
  rmSync(join(folder, String(number)), { force: true })
  return false
}

/** @param {string} folder @param {number} number */
function removeBelow(folder, number) {
  for (const name of readdirSync(folder)) {
    if (Number.parseInt(name, 10) < number) rmSync(join(folder, name), { force: true })
  }
}

/**
 * Waits until the lock is ours and returns its release.
 * @param {string} folder @param {{ onWait: (owner: Owner) => void, pauseMs?: number }} options @returns {Promise<() => void>}
 */
export async function takeLock(folder, options) {
  mkdirSync(folder, { recursive: true })
  let waitedFor = 0
  for (;;) {
    const number = highest(folder)
    const owner = holder(folder, number)
    if (owner === undefined && take(folder, number + 1)) {
      removeBelow(folder, number + 1)
      return () => writeFileSync(join(folder, `${number + 1}.done`), '')
    }
    if (owner !== undefined && owner.pid !== waitedFor) {
      waitedFor = owner.pid
      options.onWait(owner)
    }
    await sleep(options.pauseMs ?? 100)
  }
}
