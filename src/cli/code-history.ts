/** What was typed in earlier sessions: a file of ours alone, as long as it is useful. */
import { closeSync, constants, existsSync, openSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { draftIn } from '../compose.js'

const mostEntries = 1000
const mostCharacters = 4096
const mostBytes = 8 * 2 ** 20

/** The newest first, as a line editor wants it. A file that cannot be read is an empty one: nothing depends on it. */
export function readHistory(file: string): string[] {
  try {
    if (!existsSync(file) || statSync(file).size > mostBytes) return []
    const lines = readFileSync(file, 'utf8').split('\n')
    return tidy(lines.reverse())
  } catch {
    return []
  }
}

/** In one step, so that two sessions that end at once leave one of both whole. False when it could not be. */
export function writeHistory(file: string, newestFirst: readonly string[]): boolean {
  const draft = draftIn(dirname(file))
  try {
    const descriptor = openSync(draft, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600)
    try {
      writeFileSync(descriptor, `${tidy(newestFirst).reverse().join('\n')}\n`)
    } finally {
      closeSync(descriptor)
    }
    renameSync(draft, file)
    return true
  } catch {
    rmSync(draft, { force: true })
    return false
  }
}

/** Each once, where it was typed last; nothing blank, nothing endless. */
function tidy(newestFirst: readonly string[]): string[] {
  const usable = newestFirst.filter((line) => line.trim() !== '' && line.length <= mostCharacters && !/[\n\r]/.test(line))
  return [...new Set(usable)].slice(0, mostEntries)
}
