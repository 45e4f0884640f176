/**
 * The expressions that `files.search` takes, as the worker's regcomp understands them: POSIX extended, in bytes. What other dialects write differently
 * and what can be said in this one is translated; what cannot is refused, because regcomp would take much of it for something else.
 */
import { SandboxError } from '../contract/errors.js'
import { printable } from './refusal.js'

const mostBytes = 4095

/** Without the brackets of a set. */
const classes: Readonly<Record<string, string>> = { d: '0-9', w: '[:alnum:]_', s: '[:space:]' }
const characters: Readonly<Record<string, string>> = { t: '\t', r: '\r', f: '\f', v: '\v' }
/** Of GNU: the edges of words. */
const kept = new Set(['b', 'B'])

interface Piece {
  readonly text: string
  /** How much of the expression it stands for. */
  readonly length: number
}

type Refuse = (why: string) => SandboxError

/** Throws SandboxError('invalid') naming the field. */
export function posixExpression(pattern: string, field = 'pattern'): string {
  const refuse: Refuse = (why) => new SandboxError('invalid', `${field}: '${printable(pattern)}' ${why}`)
  const pieces: string[] = []
  for (let at = 0; at < pattern.length; ) {
    const { text, length } = pieceAt(pattern, at, refuse)
    pieces.push(text)
    at += length
  }
  const translated = pieces.join('')
  if (Buffer.byteLength(translated) > mostBytes) throw refuse(`has more than ${mostBytes} bytes, as it is written for the search`)
  return translated
}

/** What regcomp refused. */
export function wrongExpression(pattern: string, field = 'pattern'): SandboxError {
  return new SandboxError('invalid', `${field}: '${printable(pattern)}' is no POSIX extended regular expression`, {
    hint: 'leave out regex to search for the text itself',
  })
}

function pieceAt(pattern: string, at: number, refuse: Refuse): Piece {
  const char = String.fromCodePoint(pattern.codePointAt(at) ?? 0)
  if (char === '\\') return escapeAt(pattern, at, refuse)
  if (char === '[') return setAt(pattern, at, refuse)
  if (char === '(' && pattern[at + 1] === '?') return groupAt(pattern, at, refuse)
  const quantifier = /^(?:[*+?]|\{\d*,?\d*\})/.exec(pattern.slice(at, at + 16))?.[0]
  if (quantifier !== undefined && at > 0) return quantifierAt(pattern, { at, quantifier }, refuse)
  // Each of its bytes is one for the search, and what follows would be said of the last.
  if (char > '\u007F' && /[*+?{]/.test(pattern[at + char.length] ?? '')) return { text: `(${char})`, length: char.length }
  return { text: char, length: char.length }
}

/** How much is taken makes no difference to where a match begins, so a lazy one is like any other. */
function quantifierAt(pattern: string, { at, quantifier }: { readonly at: number; readonly quantifier: string }, refuse: Refuse): Piece {
  const next = pattern[at + quantifier.length]
  if (next === '+') throw refuse('has a possessive quantifier, which a POSIX extended expression has not')
  return { text: quantifier, length: quantifier.length + (next === '?' ? 1 : 0) }
}

function groupAt(pattern: string, at: number, refuse: Refuse): Piece {
  const isPlain = pattern[at + 2] === ':'
  if (!isPlain) throw refuse(`has ${printable(pattern.slice(at, at + 3))}, which a POSIX extended expression has not`)
  if (/\\[1-9]/.test(pattern)) throw refuse('has both (?: and a group that is referred to, which a POSIX extended expression cannot tell apart')
  return { text: '(', length: 3 }
}

function escapeAt(pattern: string, at: number, refuse: Refuse): Piece {
  const next = String.fromCodePoint(pattern.codePointAt(at + 1) ?? 0)
  if (at + 1 >= pattern.length) throw refuse('ends in a backslash')
  const length = 1 + next.length
  const inside = classes[next.toLowerCase()]
  if (inside !== undefined) return { text: next === next.toLowerCase() ? `[${inside}]` : `[^${inside}]`, length }
  const character = characters[next]
  if (character !== undefined) return { text: character, length }
  if (next === 'n') throw refuse('has \\n: a search looks at one line at a time')
  if (/[A-Za-z0]/.test(next) && !kept.has(next)) throw refuse(`has \\${next}, which a POSIX extended expression has not`)
  // Behind a backslash a quote would be an end of the text to regcomp.
  return { text: /[\\^$.[\]|()*+?{}bB<>1-9]/.test(next) ? `\\${next}` : next, length }
}

/** In a set of POSIX a backslash is a character like any other; here it is what everyone means by it. */
function setAt(pattern: string, open: number, refuse: Refuse): Piece {
  const isNegated = pattern[open + 1] === '^'
  const first = open + (isNegated ? 2 : 1)
  const last: string[] = []
  let start = ''
  let body = ''
  let at = first
  for (; pattern[at] !== ']' || at === first; ) {
    const member = memberAt(pattern, at, refuse)
    if (member.text === ']') start = ']'
    else if (member.isEscaped && (member.text === '^' || member.text === '-')) last.push(member.text)
    else body += member.text
    at += member.length
  }
  last.sort((one, other) => (one === other ? 0 : one === '-' ? 1 : -1))
  const text = `${start}${body}${[...new Set(last)].join('')}`
  const length = at + 1 - open
  if (text.startsWith('^') && !isNegated) return { text: text === '^' ? '\\^' : `(\\^|[${text.slice(1)}])`, length }
  return { text: `[${isNegated ? '^' : ''}${text}]`, length }
}

function memberAt(pattern: string, at: number, refuse: Refuse): Piece & { readonly isEscaped: boolean } {
  const char = pattern[at]
  if (char === undefined) throw refuse('has a [ without its ]')
  if (char > '\u007F') throw refuse('has a set with a character that is not ASCII; write (a|b) instead of [ab]')
  const named = /^\[([:.=])[^\]]*\1\]/.exec(pattern.slice(at, at + 24))?.[0]
  if (named !== undefined) return { text: named, length: named.length, isEscaped: false }
  if (char !== '\\') return { text: char, length: 1, isEscaped: false }
  const next = pattern[at + 1] ?? ''
  if ((next === ']' || next === '^') && pattern[at + 2] === '-' && pattern[at + 3] !== ']') throw refuse(`has a range from \\${next}`)
  const text = classes[next] ?? characters[next] ?? next
  if (text === next && !/^[!-/:-@[-`{-~]$/.test(next)) throw refuse(`has a set with \\${printable(next)}, which a POSIX extended expression has not`)
  return { text, length: 2, isEscaped: true }
}
