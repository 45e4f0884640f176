import type { OutputEvent } from '../contract/run.js'
import { escapeControls } from './print.js'

/** So much of a line without an end is kept; then it is shown as it is. */
const mostCharacters = 65_536

type StreamName = OutputEvent['type']

/** The output of one of several programs, line by line, each with whose it is. What is in a line is escaped: nothing of it can pass for another's. */
export class PrefixedLines {
  readonly #prefix: string
  readonly #pending = { stdout: '', stderr: '' }
  readonly #decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() }

  constructor(name: string) {
    this.#prefix = `${escapeControls(name)} | `
  }

  /** The lines that are whole now. */
  take({ type, bytes }: OutputEvent): string {
    const text = this.#pending[type] + this.#decoders[type].decode(bytes, { stream: true })
    const lines = text.split('\n')
    const last = lines.pop() ?? ''
    const isLong = last.length > mostCharacters
    this.#pending[type] = isLong ? '' : last
    return [...lines, ...(isLong ? [last] : [])].map((line) => this.#lineOf(line)).join('')
  }

  /** What has no end. */
  rest(type: StreamName): string {
    const text = this.#pending[type] + this.#decoders[type].decode()
    this.#pending[type] = ''
    return text === '' ? '' : this.#lineOf(text)
  }

  #lineOf(line: string): string {
    return `${this.#prefix}${escapeControls(line.replace(/\r$/, '')).replaceAll('\\t', '\t')}\n`
  }
}
