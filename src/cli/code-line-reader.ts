/** Lines of whoever sits at the terminal: one editor for the whole session, whose keys are the session's between executions and the terminal's own during them. */
import { createInterface, type Interface } from 'node:readline'
import { Writable } from 'node:stream'

export type Line = { readonly type: 'line'; readonly text: string; readonly isPasted: boolean } | { readonly type: 'interrupted' } | { readonly type: 'end' }

const bracketsOn = '\x1b[?2004h'
const bracketsOff = '\x1b[?2004l'

export class LineReader {
  readonly #history: string[]
  readonly #ready: Line[] = []
  readonly #output = new QuietableOutput()
  #reader: Interface | undefined
  #waiting: ((line: Line) => void) | undefined
  #isPasting = false
  #isRemembered = true

  /** `history` has the newest first. */
  constructor(history: readonly string[]) {
    this.#history = [...history]
  }

  get history(): readonly string[] {
    return this.#history
  }

  async next(prompt: string, { isSecret = false, isRemembered = true } = {}): Promise<Line> {
    const ready = this.#ready.shift()
    if (ready) return ready
    this.#isRemembered = isRemembered && !isSecret
    const reader = this.#open()
    process.stdin.setRawMode(true)
    process.stdout.write(bracketsOn)
    reader.setPrompt(prompt)
    reader.resume()
    reader.prompt(true)
    this.#output.isQuiet = isSecret
    try {
      return await new Promise((resolve) => {
        this.#waiting = resolve
      })
    } finally {
      this.#output.isQuiet = false
    }
  }

  /** The terminal is its own again: Ctrl-C is a signal, and what is typed waits. */
  rest(): void {
    this.#reader?.pause()
    process.stdin.setRawMode(false)
    process.stdout.write(bracketsOff)
  }

  close(): void {
    const reader = this.#reader
    this.#reader = undefined
    reader?.close()
    this.rest()
    process.stdin.pause()
  }

  #open(): Interface {
    if (this.#reader) return this.#reader
    const reader = createInterface({
      input: process.stdin,
      output: this.#output,
      terminal: true,
      history: [...this.#history],
      historySize: 1000,
      removeHistoryDuplicates: true,
    })
    this.#reader = reader
    reader.on('history', (history: string[]) => {
      // What code asked for is no code.
      if (!this.#isRemembered) history.shift()
      this.#history.splice(0, this.#history.length, ...history)
    })
    reader.on('line', (text) => this.#give({ type: 'line', text, isPasted: this.#isPasting }))
    reader.on('SIGINT', () => {
      // Away from what was typed, which is dropped.
      this.#output.write('^C\n')
      reader.write(null, { ctrl: true, name: 'e' })
      reader.write(null, { ctrl: true, name: 'u' })
      this.#give({ type: 'interrupted' })
    })
    reader.on('close', () => {
      if (this.#reader !== reader) return
      // Ctrl-D closes an editor for good; the next question opens another one.
      this.#reader = undefined
      this.#give({ type: 'end' })
    })
    process.stdin.on('keypress', this.#onKey)
    return reader
  }

  readonly #onKey = (_text: string | undefined, key: { readonly name?: string } | undefined): void => {
    if (key?.name === 'paste-start') this.#isPasting = true
    if (key?.name === 'paste-end') this.#isPasting = false
  }

  #give(line: Line): void {
    const waiting = this.#waiting
    this.#waiting = undefined
    if (waiting) waiting(line)
    else this.#ready.push(line)
  }
}

/** Our stdout, which a line editor draws on unless what is typed is nobody's business. */
class QuietableOutput extends Writable {
  isQuiet = false

  constructor() {
    super()
    process.stdout.on('resize', () => this.emit('resize'))
  }

  get columns(): number {
    return process.stdout.columns
  }

  /** At once, so that quiet is what comes after it is asked for, and nothing before. */
  override write(chunk: string | Uint8Array): boolean {
    return this.isQuiet || process.stdout.write(chunk)
  }
}
