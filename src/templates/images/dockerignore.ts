/** What a .dockerignore keeps out of a build: patterns, the last that fits decides, one with ! in front lets in again. */
import { join } from 'node:path'
import { SandboxError } from '../../contract/errors.js'
import { printed } from './entry-path.js'
import { readOrdinary } from './ordinary-file.js'

export type Ignored = (path: string) => boolean

const mostPatterns = 10_000
const anyFolders = '(?:[^/]+/)*'

/** `path` is below the folder, without a slash in front. */
export function parseIgnore(text: string): Ignored {
  const rules = text
    .split(/\r?\n/)
    .slice(0, mostPatterns)
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => ({ lets: line.startsWith('!'), pattern: patternOf(line.replace(/^!/, '').trim()) }))
  return (path) => {
    const parts = path.split('/')
    // A folder that is kept out keeps out all that is in it.
    const paths = parts.map((_, index) => parts.slice(0, index + 1).join('/'))
    return rules.reduce((isOut, { lets, pattern }) => (paths.some((each) => pattern.test(each)) ? !lets : isOut), false)
  }
}

/** That of a folder; one that there is not keeps out nothing. One that cannot be read or understood keeps everything from being built. */
export function readIgnore(folder: string, file: string): Ignored {
  for (const name of [`${file}.dockerignore`, '.dockerignore']) {
    const text = readOrdinary(join(folder, name))
    if (text !== undefined) return parseIgnore(text)
  }
  return () => false
}

/** `*` is anything but a slash, `**` anything, `?` one character, `[…]` one of these. */
export function patternOf(glob: string): RegExp {
  const clean = glob.replace(/^\/+|\/+$/g, '').replace(/^\.\//, '')
  let source = ''
  for (let at = 0; at < clean.length; at += 1) {
    const rest = clean.slice(at)
    const list = /^\[(\^?)([^\]/]+)\]/.exec(rest)
    if (rest.startsWith('**/')) {
      // Said twice it means the same, and takes much longer.
      if (!source.endsWith(anyFolders)) source += anyFolders
      at += 2
    } else if (rest.startsWith('**')) {
      source += '.*'
      at += 1
    } else if (rest.startsWith('*')) source += '[^/]*'
    else if (rest.startsWith('?')) source += '[^/]'
    else if (list) {
      source += `[${list[1]}${(list[2] ?? '').replace(/[\\[\]^]/g, '\\$&')}]`
      at += list[0].length - 1
    } else if (rest.startsWith('\\') && rest.length > 1) {
      source += escaped(rest[1] ?? '')
      at += 1
    } else source += escaped(rest[0] ?? '')
  }
  try {
    return new RegExp(`^${source}$`, 'u')
  } catch {
    throw new SandboxError('invalid', `.dockerignore: the pattern "${printed(glob)}" means nothing`)
  }
}

function escaped(character: string): string {
  return /[.*+?^${}()|[\]\\/]/.test(character) ? `\\${character}` : character
}
