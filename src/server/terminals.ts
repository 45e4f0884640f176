/**
 * Terminals over WebSockets. The first message says what is meant: `{"type":"start", "command"?, "cols"?, "rows"?, …}` or `{"type":"attach", "process": 7 | "tag", "replay"?}`.
 * After it, binary messages are what is typed and what is shown; text is JSON: `resize`, `signal`, `kill` one way, `started`, `ended`, `error` the other.
 */
import { type RawData, type WebSocket, WebSocketServer } from 'ws'
import * as z from 'zod'
import { SandboxError } from '../contract/errors.js'
import { parseWith } from '../contract/refusal.js'
import type { Platform, PlatformProcess } from '../contract/platform.js'
import { terminalSizeSchema, type RunRequest, type SignalName } from '../contract/run.js'
import { asSandboxError, errorInJson } from './http-error.js'
import { parseJsonBody } from './json-body.js'
import { leaving } from './leaving.js'
import type { Upgrade } from './upgrades.js'

const protocolName = 'glovebox.v1'
const mostMessageBytes = 2 ** 20
const firstWordMs = 10_000
const pingMs = 30_000
/** So much may wait to be sent before the program is held back. */
const mostWaitingBytes = 2 ** 20

const beginSchema = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('start'), cols: z.int().default(80), rows: z.int().default(24) }),
  z.strictObject({ type: z.literal('attach'), process: z.union([z.int(), z.string()]), replay: z.boolean().optional() }),
])

const actSchema = z.discriminatedUnion('type', [
  terminalSizeSchema.extend({ type: z.literal('resize') }),
  z.strictObject({ type: z.literal('signal'), signal: z.string().max(20) }),
  z.strictObject({ type: z.literal('kill') }),
  z.strictObject({ type: z.literal('end') }),
])

export interface TerminalPlace {
  readonly platform: Platform
  readonly sandbox: string
  readonly signal: AbortSignal
}

const anyShell = ['sh', '-c', 'if command -v bash >/dev/null; then exec bash; else exec sh; fi']

export class Terminals {
  readonly #server = new WebSocketServer({
    noServer: true,
    maxPayload: mostMessageBytes,
    perMessageDeflate: false,
    clientTracking: false,
    handleProtocols: (offered) => (offered.has(protocolName) ? protocolName : false),
  })

  /** Resolves when it is over. */
  async open({ request, socket, head }: Upgrade, place: TerminalPlace): Promise<void> {
    await place.platform.info(place.sandbox, { signal: place.signal })
    const web = await new Promise<WebSocket | undefined>((resolve) => {
      // What is no handshake is answered there, and nothing comes of it.
      socket.once('close', () => resolve(undefined))
      this.#server.handleUpgrade(request, socket, Buffer.from(head), resolve)
    })
    if (!web) return
    const talk = new Talk(web, place)
    await talk.over
  }
}

/** One WebSocket and what it is for. */
class Talk {
  readonly over: Promise<void>
  readonly #web: WebSocket
  readonly #place: TerminalPlace
  readonly #left = new AbortController()
  #process: PlatformProcess | undefined
  /** Messages are dealt with in their order. */
  #last: Promise<void> = Promise.resolve()
  #isAlive = true

  constructor(web: WebSocket, place: TerminalPlace) {
    this.#web = web
    this.#place = place
    const late = setTimeout(() => this.#fail(new SandboxError('invalid', `nothing was asked for within ${firstWordMs} ms`)), firstWordMs)
    const beat = setInterval(() => this.#beat(), pingMs)
    web.on('pong', () => {
      this.#isAlive = true
    })
    web.on('error', () => web.terminate())
    place.signal.addEventListener('abort', () => this.#fail(place.signal.reason), { once: true })
    web.on('message', (data, isBinary) => {
      clearTimeout(late)
      // What is typed waits until it is taken.
      web.pause()
      this.#last = this.#last.then(() => this.#hear(bytesOf(data), isBinary ? 'bytes' : 'text')).catch((error: unknown) => this.#fail(error))
      void this.#last.then(() => web.resume())
    })
    this.over = new Promise((resolve) => {
      web.on('close', () => {
        clearTimeout(late)
        clearInterval(beat)
        this.#left.abort()
        resolve()
      })
    })
  }

  async #hear(bytes: Uint8Array, kind: 'bytes' | 'text'): Promise<void> {
    if (!this.#process) return this.#begin(parseWith(beginSchema, kind === 'bytes' ? undefined : parseJsonBody(bytes), 'message'))
    if (kind === 'bytes') return this.#process.write(bytes)
    const act = parseWith(actSchema, parseJsonBody(bytes), 'message')
    switch (act.type) {
      case 'resize':
        return this.#process.resize({ cols: act.cols, rows: act.rows })
      case 'signal':
        return this.#process.signal(act.signal as SignalName)
      case 'kill':
        return this.#process.kill()
      case 'end':
        return this.#process.endInput()
    }
  }

  async #begin(wanted: z.output<typeof beginSchema>): Promise<void> {
    const { platform, sandbox } = this.#place
    if (wanted.type === 'attach') {
      const { process, replay } = wanted
      this.#process = await platform.processes.attach(sandbox, process, replay === undefined ? {} : { replay })
    } else {
      const { type: _, cols, rows, ...rest } = wanted
      const request = { command: anyShell, ...rest, stdin: true, background: true, terminal: { cols, rows } } as RunRequest
      this.#process = await platform.start(sandbox, request)
    }
    this.#say({ type: 'started', pid: this.#process.pid })
    void this.#show(this.#process)
  }

  /** Leaving the WebSocket leaves the program as it is: it is kept, and can be attached to again. */
  async #show(process: PlatformProcess): Promise<void> {
    try {
      for await (const { bytes } of leaving(process.output, this.#left.signal)) await this.#send(bytes)
      if (this.#left.signal.aborted) return
      this.#say({ type: 'ended', ending: await process.ended })
      this.#web.close(1000)
    } catch (error) {
      this.#fail(error)
    }
  }

  #send(bytes: Uint8Array): Promise<void> | undefined {
    const waits = this.#web.bufferedAmount > mostWaitingBytes
    if (!waits) {
      this.#web.send(bytes)
      return undefined
    }
    return new Promise((resolve) => this.#web.send(bytes, () => resolve()))
  }

  #say(message: Readonly<Record<string, unknown>>): void {
    this.#web.send(JSON.stringify(message))
  }

  #fail(error: unknown): void {
    if (this.#web.readyState !== this.#web.OPEN) return
    this.#say({ type: 'error', error: errorInJson(asSandboxError(error)) })
    this.#web.close(1008)
  }

  /** One that answers no more is gone. */
  #beat(): void {
    if (!this.#isAlive) this.#web.terminate()
    this.#isAlive = false
    if (this.#web.readyState === this.#web.OPEN) this.#web.ping()
  }
}

function bytesOf(data: RawData): Uint8Array {
  return Array.isArray(data) ? Buffer.concat(data) : data instanceof ArrayBuffer ? new Uint8Array(data) : data
}
