import { basename, resolve } from 'node:path'
import { splitAtColons } from './colon-parts.js'
import { refuseFlag } from './flag-values.js'

export interface Transfer {
  /** As it was typed, for messages. */
  readonly flag: string
  readonly from: string
  readonly to: string
  /** SRC was typed with a slash at its end: it is a folder. */
  readonly isFolder: boolean
}

export interface TransferFlags {
  readonly upload?: readonly string[]
  readonly download?: readonly string[]
}

const form = 'SRC[:DST]'

/** SRC is of this machine, DST of the sandbox: below its working folder unless it is absolute. */
export function parseUploadFlag(text: string): Transfer {
  const { flag, source, target } = parse('--upload', text)
  const from = resolve(source)
  if (target === undefined && basename(from) === '') throw refuseFlag(flag, 'has no name of its own, so DST must be stated')
  return { flag, from, to: target ?? basename(from), isFolder: source.endsWith('/') }
}

/** SRC is of the sandbox, DST of this machine: here unless it is stated. */
export function parseDownloadFlag(text: string): Transfer {
  const { flag, source, target } = parse('--download', text)
  const name = basename(source)
  if (target === undefined && (name === '' || name === '.' || name === '..' || name === '~')) {
    throw refuseFlag(flag, 'has no name of its own, so DST must be stated')
  }
  return { flag, from: source, to: resolve(target ?? name), isFolder: source.endsWith('/') }
}

function parse(name: string, text: string): { readonly flag: string; readonly source: string; readonly target: string | undefined } {
  const flag = `${name} ${text.slice(0, 80)}`
  const [source = '', target, ...tooMany] = splitAtColons(text)
  if (source === '' || target === '') throw refuseFlag(flag, `expected ${form}`)
  if (tooMany.length > 0) throw refuseFlag(flag, `expected ${form}; a colon that belongs to a path is written \\:`)
  return { flag, source, target }
}
