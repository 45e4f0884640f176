/** What an execution prints and shows, where a person or a program sees it. */
import type { CodeEnding, CodeEvent, CodeResult } from '../contract/code.js'
import type { OutFolder } from './code-out.js'
import { harmlessLines, tracebackText } from './code-traceback.js'
import { colorsFor, printJson, say } from './print.js'
import { type Cursor, startLine, writeOut, writeTo } from './streams.js'
import { imageProtocol, inlineImage } from './terminal-image.js'
import { durationInWords, explainOutcome } from './words.js'

export type ShownEvent = Exclude<CodeEvent, { readonly type: 'ask' }>

export interface Showing {
  show(event: ShownEvent): Promise<void>
  end(ending: CodeEnding, name: string): Promise<void>
}

export interface ShowOptions {
  readonly out: OutFolder | undefined
  readonly quiet: boolean
}

/** For a person: text as it comes, values as text, pictures in the terminal or as the path of a file. */
export class ShownToPerson implements Showing {
  readonly cursor: Cursor = { isMidLine: false }
  readonly #out: OutFolder | undefined
  readonly #quiet: boolean
  readonly #protocol = imageProtocol({ isTerminal: process.stdout.isTTY, env: process.env })
  #unseen = 0

  constructor({ out, quiet }: ShowOptions) {
    this.#out = out
    this.#quiet = quiet
  }

  async show(event: ShownEvent): Promise<void> {
    if (event.type === 'result') return this.#showResult(event.result)
    const stream = process[event.type]
    if (stream.isTTY && event.bytes.length > 0) this.cursor.isMidLine = event.bytes.at(-1) !== 0x0a
    const written = writeTo(stream, event.bytes)
    await (event.type === 'stdout' ? written : written.catch(() => undefined))
  }

  async #showResult(result: CodeResult): Promise<void> {
    this.#startLine()
    const paths = this.#out?.addResult(result) ?? []
    const picture = pictureOf(result)
    const inline = picture && this.#protocol && inlineImage(picture, this.#protocol)
    if (inline !== undefined) await writeOut(inline)
    const plain = result.data['text/plain']
    const isSeen = inline !== undefined || (picture !== undefined && paths.length > 0)
    if (typeof plain === 'string' && !isSeen) await writeOut(`${process.stdout.isTTY ? harmlessLines(plain) : plain}\n`)
    if (picture !== undefined && !isSeen) this.#unseen += 1
    if (!this.#quiet) for (const path of paths) say(`wrote ${path}`)
    if (result.cut.length > 0) say(`a result was cut: ${result.cut.join(', ')}`)
  }

  async end(ending: CodeEnding, name: string): Promise<void> {
    const trace = ending.error && tracebackText(ending.error, colorsFor(process.stderr))
    const line = explainEnding(ending, name)
    if (trace !== undefined || line !== undefined) this.#startLine()
    if (trace !== undefined) await writeTo(process.stderr, trace).catch(() => undefined)
    if (line !== undefined) say(line)
    if (this.#unseen > 0 && !this.#quiet)
      say(`${this.#unseen === 1 ? 'a picture was' : `${this.#unseen} pictures were`} made; --out DIR writes ${this.#unseen === 1 ? 'it' : 'them'}`)
    this.#unseen = 0
  }

  #startLine(): void {
    startLine(this.cursor)
  }
}

function pictureOf({ data }: CodeResult): Buffer | undefined {
  const encoded = data['image/png'] ?? data['image/jpeg']
  return typeof encoded === 'string' ? Buffer.from(encoded, 'base64') : undefined
}

/** The one line about code that did not end by itself. */
function explainEnding({ status, outcome, wallMs, isStateKept }: CodeEnding, name: string): string | undefined {
  const memory = isStateKept ? '' : '; its variables are gone'
  if (status === 'timed-out') return `${name} was stopped after ${durationInWords(wallMs)} (--timeout)${memory}`
  if (status === 'interrupted') return isStateKept ? undefined : `${name} was interrupted${memory}`
  if (status !== 'crashed') return undefined
  const how =
    outcome === undefined ? undefined : outcome.kind === 'exited' ? `its interpreter ended with exit code ${outcome.code}` : explainOutcome(outcome, name)
  return `${how ?? `${name}: its interpreter ended`}${memory}`
}

/** For a program: one JSON object a line. */
export class ShownAsJson implements Showing {
  readonly #out: OutFolder | undefined
  readonly #decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() }

  constructor({ out }: Pick<ShowOptions, 'out'>) {
    this.#out = out
  }

  async show(event: ShownEvent): Promise<void> {
    if (event.type === 'result') {
      const files = this.#out?.addResult(event.result)
      await printJson({ ...event, ...(files && { files }) })
      return
    }
    const text = this.#decoders[event.type].decode(event.bytes, { stream: true })
    if (text !== '') await printJson({ type: event.type, text })
  }

  async end(ending: CodeEnding, name: string): Promise<void> {
    for (const type of ['stdout', 'stderr'] as const) {
      const rest = this.#decoders[type].decode()
      if (rest !== '') await printJson({ type, text: rest })
    }
    await printJson({ type: 'end', source: name, ...ending })
  }
}
