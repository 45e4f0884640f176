import { SandboxError } from './errors.js'
import { printable } from './printable.js'

const space = /[ \t\n\r]*/y
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON's strings may not contain them
const string = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y
const scalar = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y
const deepest = 100

/**
 * A file that people write, as the value it holds. Unlike JSON.parse this says in which line it is broken, and refuses a key that stands twice in one
 * object: one of the two would be passed over, and nobody could say which its author meant.
 */
export function parseJson(text: string, name: string): unknown {
  const json = text.replace(/^\uFEFF/, '')
  const scan = new Scan(json, name)
  scan.value(0)
  scan.end()
  return JSON.parse(json)
}

class Scan {
  readonly #text: string
  readonly #name: string
  #at = 0

  constructor(text: string, name: string) {
    this.#text = text
    this.#name = name
  }

  value(depth: number): void {
    if (depth > deepest) throw this.#refusal('is nested too deeply')
    this.#take(space)
    if (this.#takes('{')) this.#object(depth)
    else if (this.#takes('[')) this.#items(']', () => this.value(depth + 1))
    else if (this.#take(string) === undefined && this.#take(scalar) === undefined) throw this.#unexpected('a value')
    this.#take(space)
  }

  end(): void {
    if (this.#at < this.#text.length) throw this.#unexpected('the end')
  }

  #object(depth: number): void {
    const keys = new Set<string>()
    this.#items('}', () => {
      this.#take(space)
      const start = this.#at
      const quoted = this.#take(string)
      if (quoted === undefined) throw this.#unexpected('a name in double quotes')
      const key = JSON.parse(quoted) as string
      if (keys.has(key) || key === '__proto__') {
        this.#at = start
        throw this.#refusal(keys.has(key) ? `'${printable(key)}' stands here twice` : `'${key}' is not a possible name`)
      }
      keys.add(key)
      this.#take(space)
      if (!this.#takes(':')) throw this.#unexpected("':'")
      this.value(depth + 1)
    })
  }

  #items(close: string, item: () => void): void {
    this.#take(space)
    if (this.#takes(close)) return
    do {
      item()
      this.#take(space)
    } while (this.#takes(','))
    if (!this.#takes(close)) throw this.#unexpected(`',' or '${close}'`)
  }

  #takes(character: string): boolean {
    if (this.#text[this.#at] !== character) return false
    this.#at += 1
    return true
  }

  #take(pattern: RegExp): string | undefined {
    const sticky = new RegExp(pattern)
    sticky.lastIndex = this.#at
    const found = sticky.exec(this.#text)?.[0]
    this.#at += found?.length ?? 0
    return found
  }

  #unexpected(expected: string): SandboxError {
    const found = this.#text.slice(this.#at, this.#at + 12).split('\n')[0] ?? ''
    return this.#refusal(`expected ${expected}, got ${this.#at >= this.#text.length ? 'the end of the file' : `'${printable(found)}'`}`)
  }

  #refusal(problem: string): SandboxError {
    const lines = this.#text.slice(0, this.#at).split('\n')
    const column = (lines.at(-1) ?? '').length + 1
    return new SandboxError('invalid', `${this.#name}: line ${lines.length}, column ${column}: ${problem}`)
  }
}
