import { printable } from '../contract/printable.js'
import { HttpError } from './http-error.js'

const mostDepth = 64
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * What a body holds as JSON. Unlike JSON.parse this refuses a name that stands twice in one object, one that would be a prototype, and what is nested beyond any
 * sense: two readers of such a text need not see the same in it.
 */
export function parseJsonBody(bytes: Uint8Array): unknown {
  const text = decodeText(bytes)
  scan(text)
  try {
    return JSON.parse(text) as unknown
  } catch {
    throw new HttpError(400, 'body: is no JSON')
  }
}

function decodeText(bytes: Uint8Array): string {
  let text: string
  try {
    text = decoder.decode(bytes)
  } catch {
    throw new HttpError(400, 'body: is no UTF-8')
  }
  if (text.startsWith('\ufeff')) throw new HttpError(400, 'body: begins with a byte order mark')
  return text
}

/** Whether the names of an object are being read; of an array undefined. */
type Level = Set<string> | undefined

/** Of what is no JSON it may say anything but that it is; that is left to the parser. */
function scan(text: string): void {
  const levels: Level[] = []
  let isName = false
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at]
    if (character === '"') {
      const end = endOfString(text, at)
      const level = levels.at(-1)
      if (isName && level) checkName(text.slice(at, end + 1), level)
      isName = false
      at = end
    } else if (character === '{' || character === '[') {
      if (levels.length >= mostDepth) throw new HttpError(400, `body: is nested more than ${mostDepth} deep`)
      levels.push(character === '{' ? new Set() : undefined)
      isName = character === '{'
    } else if (character === '}' || character === ']') {
      levels.pop()
      isName = false
    } else if (character === ',') isName = levels.at(-1) !== undefined
  }
}

function endOfString(text: string, start: number): number {
  for (let at = start + 1; ; ) {
    const quote = text.indexOf('"', at)
    if (quote === -1) return text.length
    let slashes = 0
    while (text[quote - 1 - slashes] === '\\') slashes += 1
    if (slashes % 2 === 0) return quote
    at = quote + 1
  }
}

function checkName(quoted: string, names: Set<string>): void {
  let name: string
  try {
    name = quoted.includes('\\') ? (JSON.parse(quoted) as string) : quoted.slice(1, -1)
  } catch {
    return
  }
  if (name === '__proto__') throw new HttpError(400, `body: '${name}' is not a possible name`)
  if (names.has(name)) throw new HttpError(400, `body: '${printable(name)}' stands twice in one object`)
  names.add(name)
}
