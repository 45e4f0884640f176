/**
 * JSON with comments and commas at the end, as editors keep their settings: read with the place of everything in it, so that one member can be put in while
 * every other character stays as it was.
 */
export interface JsoncMember {
  readonly key: string
  readonly value: JsoncNode
}

export interface JsoncNode {
  readonly start: number
  readonly end: number
  readonly value: unknown
  /** Of an object. */
  readonly members?: readonly JsoncMember[]
}

export class JsoncProblem extends Error {}

const blank = /(?:\s|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*/y
const literal = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const quoted = /"(?:[^"\\]|\\[\s\S])*"/y
const mostDepth = 200

export function parseJsonc(text: string): JsoncNode {
  const reader = new Reader(text.startsWith('\ufeff') ? ` ${text.slice(1)}` : text)
  return reader.document()
}

class Reader {
  readonly #text: string
  #at = 0
  #depth = 0

  constructor(text: string) {
    this.#text = text
  }

  document(): JsoncNode {
    const node = this.#value()
    this.#skip()
    if (this.#at < this.#text.length) throw this.#problem('more than one value')
    return node
  }

  #value(): JsoncNode {
    this.#skip()
    const start = this.#at
    const character = this.#text[start]
    this.#depth += 1
    if (this.#depth > mostDepth) throw this.#problem('too many values in one another')
    try {
      if (character === '{') return this.#object(start)
      if (character === '[') return this.#array(start)
      if (character === '"') return { start, value: this.#string(), end: this.#at }
      const word = this.#match(literal)
      if (word === undefined) throw this.#problem('no value')
      return { start, value: JSON.parse(word) as unknown, end: this.#at }
    } finally {
      this.#depth -= 1
    }
  }

  #object(start: number): JsoncNode {
    const members: JsoncMember[] = []
    this.#at += 1
    while (!this.#closes('}')) {
      const key = this.#string()
      this.#skip()
      this.#expect(':')
      members.push({ key, value: this.#value() })
      this.#separator('}')
    }
    const value = Object.fromEntries(members.map((member) => [member.key, member.value.value]))
    return { start, end: this.#at, value, members }
  }

  #array(start: number): JsoncNode {
    const value: unknown[] = []
    this.#at += 1
    while (!this.#closes(']')) {
      value.push(this.#value().value)
      this.#separator(']')
    }
    return { start, end: this.#at, value }
  }

  #closes(bracket: string): boolean {
    this.#skip()
    if (this.#text[this.#at] !== bracket) return false
    this.#at += 1
    return true
  }

  #separator(bracket: string): void {
    this.#skip()
    if (this.#text[this.#at] !== bracket) this.#expect(',')
  }

  #string(): string {
    const raw = this.#match(quoted)
    if (raw === undefined) throw this.#problem('no text in quotes')
    try {
      return JSON.parse(raw) as string
    } catch {
      throw this.#problem('a text that JSON does not allow')
    }
  }

  #expect(character: string): void {
    if (this.#text[this.#at] !== character) throw this.#problem(`no '${character}'`)
    this.#at += 1
  }

  #skip(): void {
    this.#match(blank)
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)?.[0]
    if (found !== undefined) this.#at += found.length
    return found
  }

  #problem(what: string): JsoncProblem {
    const line = this.#text.slice(0, this.#at).split('\n').length
    return new JsoncProblem(`line ${line} has ${what} where one is expected`)
  }
}

export interface Member {
  /** Where it belongs: the keys of the objects above it, and its own. */
  readonly path: readonly [string, ...string[]]
  readonly value: unknown
}

/** The same text with one member put in, or put in the place of the one that was there. Throws JsoncProblem where it cannot be. */
export function withMember(text: string, { path, value }: Member): string {
  const root = text.trim() === '' ? undefined : parseJsonc(text)
  if (root === undefined) return `${JSON.stringify(nested(path, value), undefined, 2)}\n`
  return putInto({ text, node: root, unit: unitOf(text), level: 1 }, path, value)
}

interface Place {
  readonly text: string
  readonly node: JsoncNode
  readonly unit: string
  readonly level: number
}

function putInto({ text, node, unit, level }: Place, [key, ...rest]: readonly string[], value: unknown): string {
  if (node.members === undefined || key === undefined)
    throw new JsoncProblem(`line ${text.slice(0, node.start).split('\n').length} has no object where one is expected`)
  const found = node.members.filter((member) => member.key === key)
  if (found.length > 1) throw new JsoncProblem(`'${key}' is there twice`)
  const [member] = found
  if (member && rest.length > 0) return putInto({ text, node: member.value, unit, level: level + 1 }, rest, value)
  const own = indented(rest.length > 0 ? nested(rest, value) : value, unit, level)
  if (member) return splice(text, member.value, own)
  return insert(text, { node, member: `${JSON.stringify(key)}: ${own}`, indent: unit.repeat(level), outer: unit.repeat(level - 1) })
}

interface Insertion {
  readonly node: JsoncNode
  readonly member: string
  readonly indent: string
  readonly outer: string
}

/** Behind the last member, and before whatever is said behind that. */
function insert(text: string, { node, member, indent, outer }: Insertion): string {
  const last = node.members?.at(-1)
  if (last === undefined) {
    const inside = text.slice(node.start + 1, node.end - 1)
    const kept = inside.trim() === '' ? '' : inside.trimEnd()
    return `${text.slice(0, node.start + 1)}${kept}\n${indent}${member}\n${outer}${text.slice(node.end - 1)}`
  }
  const behind = text.slice(last.value.end, node.end - 1)
  const comma = commaIn(behind)
  if (comma === undefined) return `${text.slice(0, last.value.end)},${behind.trimEnd()}\n${indent}${member}\n${outer}${text.slice(node.end - 1)}`
  return `${text.slice(0, last.value.end)}${behind.trimEnd()}\n${indent}${member}\n${outer}${text.slice(node.end - 1)}`
}

/** Where a comma stands that is not in a comment. */
function commaIn(text: string): number | undefined {
  blank.lastIndex = 0
  const length = blank.exec(text)?.[0].length ?? 0
  return text[length] === ',' ? length : undefined
}

function splice(text: string, { start, end }: JsoncNode, by: string): string {
  return text.slice(0, start) + by + text.slice(end)
}

function nested(path: readonly string[], value: unknown): unknown {
  return path.reduceRight((inner, key) => ({ [key]: inner }), value)
}

function indented(value: unknown, unit: string, level: number): string {
  return JSON.stringify(value, undefined, unit === '' ? 2 : unit).replaceAll('\n', `\n${unit.repeat(level)}`)
}

/** What the file indents with. */
function unitOf(text: string): string {
  return /\n([ \t]+)["/]/.exec(text)?.[1] ?? '  '
}
