/** Words of a Dockerfile: quotes, escapes, and variables in them. */

export type Lookup = (name: string) => string | undefined

export interface WordOptions {
  readonly escape: string
  /** Not given: variables stay as they are written. */
  readonly lookup?: Lookup
}

/** Split at spaces outside of quotes; what comes out of a variable is not split again. */
export function splitWords(text: string, options: WordOptions): string[] {
  const lexer = new Lexer(text, options)
  return lexer.words()
}

/** One text with its variables replaced and its quotes taken away. */
export function expandText(text: string, options: WordOptions): string {
  return new Lexer(text, options).whole()
}

/** Variables only: quotes stay, as in a here-document. */
export function expandVariables(text: string, options: WordOptions): string {
  return new Lexer(text, options).variables()
}

/** `["a", "b"]`; undefined for what is no such list. */
export function jsonWords(text: string): string[] | undefined {
  if (!text.startsWith('[')) return undefined
  try {
    const list: unknown = JSON.parse(text)
    return Array.isArray(list) && list.every((each): each is string => typeof each === 'string') ? list : undefined
  } catch {
    return undefined
  }
}

const isSpace = (character: string): boolean => /\s/.test(character)

class Lexer {
  readonly #text: string
  readonly #options: WordOptions
  #at = 0

  constructor(text: string, options: WordOptions) {
    this.#text = text
    this.#options = options
  }

  words(): string[] {
    const words: string[] = []
    while (this.#at < this.#text.length) {
      if (isSpace(this.#peek())) this.#at += 1
      else words.push(this.#until(isSpace))
    }
    return words
  }

  whole(): string {
    return this.#until(() => false)
  }

  variables(): string {
    let out = ''
    while (this.#at < this.#text.length) {
      if (this.#peek() === this.#options.escape && this.#text[this.#at + 1] === '$') {
        out += '$'
        this.#at += 2
      } else out += this.#peek() === '$' ? this.#variable() : this.#take()
    }
    return out
  }

  #until(isEnd: (character: string) => boolean): string {
    let out = ''
    while (this.#at < this.#text.length && !isEnd(this.#peek())) {
      const character = this.#peek()
      if (character === "'") out += this.#single()
      else if (character === '"') out += this.#double()
      else if (character === this.#options.escape) out += this.#escaped()
      else if (character === '$') out += this.#variable()
      else out += this.#take()
    }
    return out
  }

  #single(): string {
    const end = this.#text.indexOf("'", this.#at + 1)
    if (end === -1) return this.#take()
    const inner = this.#text.slice(this.#at + 1, end)
    this.#at = end + 1
    return inner
  }

  #double(): string {
    if (!this.#text.includes('"', this.#at + 1)) return this.#take()
    this.#at += 1
    let out = ''
    while (this.#at < this.#text.length && this.#peek() !== '"') {
      const next = this.#text[this.#at + 1] ?? ''
      if (this.#peek() === this.#options.escape && ['"', '$', this.#options.escape].includes(next)) {
        out += next
        this.#at += 2
      } else out += this.#peek() === '$' ? this.#variable() : this.#take()
    }
    this.#at += 1
    return out
  }

  #escaped(): string {
    this.#at += 1
    return this.#at < this.#text.length ? this.#take() : this.#options.escape
  }

  /** `$NAME`, `${NAME}`, `${NAME:-else}`, `${NAME:+then}`, and the last two without the colon. */
  #variable(): string {
    const { lookup } = this.#options
    const rest = this.#text.slice(this.#at)
    const plain = /^\$([A-Za-z_]\w*)/.exec(rest)
    if (plain) {
      this.#at += plain[0].length
      return lookup === undefined ? plain[0] : (lookup(plain[1] ?? '') ?? '')
    }
    const braced = /^\$\{([A-Za-z_]\w*)(?:(:?[-+])((?:[^{}]|\{[^{}]*\})*))?\}/.exec(rest)
    if (!braced) return this.#take()
    this.#at += braced[0].length
    if (lookup === undefined) return braced[0]
    const [, name = '', operator = '', word = ''] = braced
    const value = lookup(name)
    const isSet = value !== undefined && (value !== '' || !operator.startsWith(':'))
    const other = (): string => expandText(word, this.#options)
    if (operator.endsWith('-')) return isSet ? value : other()
    if (operator.endsWith('+')) return isSet ? other() : ''
    return value ?? ''
  }

  #peek(): string {
    return this.#text[this.#at] ?? ''
  }

  #take(): string {
    this.#at += 1
    return this.#text[this.#at - 1] ?? ''
  }
}
