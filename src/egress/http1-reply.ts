import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Answer } from './carrier.js'
import type { Reply } from './forward.js'
import type { Waiting } from './front-setting.js'
import type { Header, Word } from './front-words.js'
import { joinBoth, onBreak } from './front-stream.js'

export interface Http1ReplyOptions {
  /** The program sends its body only when it is told to. */
  readonly awaitsGo?: boolean
  /** The connection, when it is to be another than HTTP from then on. */
  readonly upgrade?: Duplex
}

/** An answer of HTTP/1.1. */
export class Http1Reply implements Reply {
  readonly #response: ServerResponse
  readonly #options: Http1ReplyOptions
  readonly #gone = new AbortController()
  /** The other side broke off: that the program's connection ends with it is not its doing. */
  #isBroken = false
  /** Resolves when it is over, well or not. */
  readonly over: Promise<void>

  constructor(response: ServerResponse, waiting: Waiting, options: Http1ReplyOptions = {}) {
    this.#response = response
    this.#options = options
    // The other side says when its answer is from.
    response.sendDate = false
    response.on('error', () => undefined)
    this.over = new Promise((resolve) => {
      response.once('finish', () => {
        waiting.begin()
        resolve()
      })
      response.once('close', () => {
        if (!response.writableFinished && !this.#isBroken) this.#gone.abort(new Error('the program went away'))
        resolve()
      })
      // One that has only borrowed its connection is not told of its end.
      options.upgrade?.once('close', () => {
        if (!response.writableFinished) this.#gone.abort(new Error('the program went away'))
        resolve()
      })
    })
  }

  get gone(): AbortSignal {
    return this.#gone.signal
  }

  get isBegun(): boolean {
    return this.#response.headersSent
  }

  begin(): void {
    if (this.#options.awaitsGo === true && !this.isBegun) this.#response.writeContinue()
  }

  async pass({ status, statusText, headers, body, upgraded }: Answer): Promise<void> {
    const { upgrade } = this.#options
    if (upgraded && upgrade) {
      await this.#join(upgrade, { status, statusText, headers, upgraded })
      return
    }
    this.#response.writeHead(status, statusText, linesOf(headers))
    onBreak(body, () => (this.#isBroken ||= !this.#response.destroyed))
    await pipeline(body, this.#response)
  }

  async #join(guest: Duplex, { status, statusText, headers, upgraded }: Omit<Answer, 'body' | 'trailers'> & { upgraded: Duplex }): Promise<void> {
    const answer: Header[] = [...headers, ['Connection', 'Upgrade'], ['Upgrade', 'websocket']]
    this.#response.writeHead(status, statusText, linesOf(answer))
    this.#response.flushHeaders()
    this.#response.detachSocket(guest as never)
    await joinBoth(guest, upgraded)
  }

  say({ status, headers, body }: Word): void {
    if (this.isBegun || this.#response.destroyed) return
    this.#response.writeHead(status, linesOf(headers))
    this.#response.end(body)
  }

  /** And nothing more on this connection: what comes after it cannot be trusted. */
  sayLast(word: Word): void {
    this.#response.shouldKeepAlive = false
    this.say({ ...word, headers: [...word.headers, ['connection', 'close']] })
  }

  breakOff(): void {
    this.#response.destroy()
    this.#options.upgrade?.destroy()
  }
}

function linesOf(headers: readonly Header[]): string[] {
  return headers.flat()
}
