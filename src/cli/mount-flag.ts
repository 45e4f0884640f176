import { basename, resolve } from 'node:path'
import type { Mount } from '../contract/spec.js'
import { mountModes } from '../contract/spec-words.js'
import { splitAtColons } from './colon-parts.js'
import { refuseFlag } from './flag-values.js'

const form = 'SRC[:DST][:ro|rw|overlay]'

/**
 * 'data', 'data:rw', 'data:/mnt/d', 'data:/mnt/d:rw' as a mount. SRC may be relative to where we were started; DST is where the cell shows it. A colon
 * that belongs to a path is written \:, and a backslash before a colon \\.
 */
export function parseMountFlag(text: string): Mount {
  const flag = `--mount ${text.slice(0, 80)}`
  const parts = splitAtColons(text)
  const [source = '', ...rest] = parts
  const mode = mountModes.find((name) => name === rest.at(-1))
  const [target, ...tooMany] = mode === undefined ? rest : rest.slice(0, -1)
  if (source === '') throw refuseFlag(flag, `names no folder; expected ${form}`)
  if (tooMany.length > 0) throw refuseFlag(flag, `expected ${form}; a colon that belongs to a path is written \\:`)
  if (target !== undefined && !target.startsWith('/')) {
    throw refuseFlag(flag, `expected ${form}, where DST is an absolute path, got '${target.slice(0, 40)}'; a colon that belongs to a path is written \\:`)
  }
  const path = resolve(source)
  if (target === undefined && basename(path) === '') throw refuseFlag(flag, 'has no name of its own, so DST must be stated')
  return { source: path, target: target ?? `/mnt/${basename(path)}`, mode: mode ?? 'ro' }
}
