/**
 * Patterns for paths: `*` and `?` within one name, `[a-z]` and `[!a-z]`, `{ts,js}`, and `**` for any number of folders. A pattern comes from whoever
 * asks and is matched against names that a guest chose, so nothing here takes more than about pattern × path steps.
 */
import { SandboxError } from '../contract/errors.js'
import { printable } from './refusal.js'

export interface Glob {
  /** How many folders deep something can be that matches; Infinity with `**`. */
  readonly depth: number
  /** A path below the folder that was asked for, such as `src/index.ts`. */
  matches(path: string): boolean
}

type Token =
  | { readonly kind: 'text'; readonly code: number }
  | { readonly kind: 'any-one' }
  | { readonly kind: 'any' }
  | { readonly kind: 'set'; readonly isNegated: boolean; readonly ranges: readonly (readonly [from: number, to: number])[] }

/** `**`, or one name. */
type Segment = 'folders' | readonly Token[]

const mostCharacters = 1024
const mostAlternatives = 64
/** Of all that it stands for, together. */
const mostExpanded = 2048

/** Throws SandboxError('invalid') naming the field. */
export function parseGlob(pattern: string, field = 'glob'): Glob {
  const refuse = (why: string): SandboxError => new SandboxError('invalid', `${field}: '${printable(pattern)}' ${why}`)
  if (pattern === '') throw new SandboxError('invalid', `${field}: must not be empty`)
  if (pattern.length > mostCharacters) throw refuse(`has ${pattern.length} characters; at most ${mostCharacters} are possible`)
  if (pattern.startsWith('/')) throw refuse('begins with /; it is matched against the path below the folder')
  const alternatives = expandBraces(pattern, refuse).map((each) => parseSegments(each, refuse))
  return {
    depth: Math.max(...alternatives.map((segments) => (segments.includes('folders') ? Infinity : segments.length))),
    matches: (path) => {
      const names = path.split('/').map((name) => Array.from(name, (char) => char.codePointAt(0) ?? 0))
      return alternatives.some((segments) => matchSegments(segments, names))
    },
  }
}

/** `a{b,c{d,e}}` as every text it stands for. */
function expandBraces(pattern: string, refuse: (why: string) => SandboxError): string[] {
  const done: string[] = []
  const waiting = [pattern]
  for (let text = waiting.pop(); text !== undefined; text = waiting.pop()) {
    const braces = findBraces(text, refuse)
    if (braces) waiting.push(...braces.parts.map((part) => text.slice(0, braces.from) + part + text.slice(braces.to)))
    else done.push(text)
    if (done.length + waiting.length > mostAlternatives) throw refuse(`stands for more than ${mostAlternatives} patterns`)
  }
  const different = [...new Set(done)]
  const characters = different.reduce((sum, { length }) => sum + length, 0)
  if (characters > mostExpanded) throw refuse(`stands for patterns of ${characters} characters; at most ${mostExpanded} are possible`)
  return different
}

interface Braces {
  readonly from: number
  readonly to: number
  readonly parts: readonly string[]
}

/** The first pair, with what its commas divide. */
function findBraces(text: string, refuse: (why: string) => SandboxError): Braces | undefined {
  let depth = 0
  let from = -1
  let partAt = 0
  const parts: string[] = []
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at]
    if (char === '\\') at += 1
    else if (char === '[' && closingOf(text, at) !== undefined) at = closingOf(text, at) ?? at
    else if (char === '{') {
      depth += 1
      if (depth === 1) [from, partAt] = [at, at + 1]
    } else if (depth > 0 && (char === '}' || (char === ',' && depth === 1))) {
      if (char === '}') depth -= 1
      if (depth > 0 && char === '}') continue
      parts.push(text.slice(partAt, at))
      partAt = at + 1
      if (depth === 0) return { from, to: at + 1, parts }
    }
  }
  if (depth > 0) throw refuse('has a { without its }')
  return undefined
}

/** Where the set that opens here is closed; a `]` right behind the opening is part of it. */
function closingOf(text: string, open: number): number | undefined {
  const first = open + (text[open + 1] === '!' || text[open + 1] === '^' ? 2 : 1)
  const end = text.indexOf(']', first + 1)
  return end === -1 || text.slice(open, end).includes('/') ? undefined : end
}

function parseSegments(pattern: string, refuse: (why: string) => SandboxError): Segment[] {
  const segments = pattern
    .split('/')
    .filter((part, index, all) => part !== '' || (index !== all.length - 1 && all.length > 1))
    .map((part): Segment => {
      if (part === '' || part === '.' || part === '..') throw refuse(`has an empty name, . or .. in it, which no path below a folder has`)
      return part === '**' ? 'folders' : parseName(part, refuse)
    })
  if (segments.length === 0) throw refuse('stands for an empty pattern')
  // At the end it stands for what is in the folders, not for the folder itself.
  return segments.at(-1) === 'folders' ? [...segments, [{ kind: 'any' }]] : segments
}

function parseName(part: string, refuse: (why: string) => SandboxError): Token[] {
  const tokens: Token[] = []
  for (let at = 0; at < part.length; ) {
    const char = String.fromCodePoint(part.codePointAt(at) ?? 0)
    const end = char === '[' ? closingOf(part, at) : undefined
    if (char === '[' && end === undefined) throw refuse('has a [ without its ]')
    if (char === '\\') {
      const next = part.codePointAt(at + 1)
      if (next === undefined) throw refuse('ends in a backslash')
      tokens.push({ kind: 'text', code: next })
      at += 1 + String.fromCodePoint(next).length
    } else if (end === undefined) {
      if (char !== '*' || tokens.at(-1)?.kind !== 'any')
        tokens.push(char === '*' ? { kind: 'any' } : char === '?' ? { kind: 'any-one' } : { kind: 'text', code: char.codePointAt(0) ?? 0 })
      at += char.length
    } else {
      tokens.push(parseSet(part.slice(at + 1, end)))
      at = end + 1
    }
  }
  return tokens
}

function parseSet(text: string): Token {
  const isNegated = text.startsWith('!') || text.startsWith('^')
  const chars = Array.from(isNegated ? text.slice(1) : text, (char) => char.codePointAt(0) ?? 0)
  const ranges: (readonly [number, number])[] = []
  for (let at = 0; at < chars.length; at += 1) {
    const from = chars[at] as number
    const to = chars[at + 1] === 0x2d ? chars[at + 2] : undefined
    ranges.push([from, to ?? from])
    if (to !== undefined) at += 2
  }
  return { kind: 'set', isNegated, ranges }
}

/** The latest `**` takes one folder more whenever what follows it does not fit. Each name is held against each part of the pattern once. */
function matchSegments(segments: readonly Segment[], names: readonly (readonly number[])[]): boolean {
  const known = new Map<number, boolean>()
  const fits = (segment: number, name: number): boolean => {
    const place = segment * names.length + name
    const found = known.get(place) ?? matchName(segments[segment] as readonly Token[], names[name] as readonly number[])
    known.set(place, found)
    return found
  }
  let [part, wildAt, takenTo] = [0, -1, 0]
  for (let item = 0; item < names.length; ) {
    if (segments[part] === 'folders') {
      wildAt = part
      takenTo = item
      part += 1
    } else if (part < segments.length && fits(part, item)) {
      part += 1
      item += 1
    } else if (wildAt === -1) {
      return false
    } else {
      takenTo += 1
      item = takenTo
      part = wildAt + 1
    }
  }
  return segments.slice(part).every((segment) => segment === 'folders')
}

/** The same of `*` within one name. Written out, because whoever asks may make it long. */
function matchName(tokens: readonly Token[], name: readonly number[]): boolean {
  let [part, wildAt, takenTo] = [0, -1, 0]
  for (let item = 0; item < name.length; ) {
    const token = tokens[part]
    if (token?.kind === 'any') {
      wildAt = part
      takenTo = item
      part += 1
    } else if (token !== undefined && fitsToken(token, name[item] as number)) {
      part += 1
      item += 1
    } else if (wildAt === -1) {
      return false
    } else {
      takenTo += 1
      item = takenTo
      part = wildAt + 1
    }
  }
  return tokens.slice(part).every(({ kind }) => kind === 'any')
}

function fitsToken(token: Token, code: number): boolean {
  switch (token.kind) {
    case 'text':
      return token.code === code
    case 'any-one':
      return true
    case 'any':
      return false
    case 'set':
      return token.isNegated !== token.ranges.some(([from, to]) => from <= code && code <= to)
  }
}
