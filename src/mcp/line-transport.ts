/**
 * JSON-RPC messages, one a line, on a pair of byte streams. It believes nothing of its peer: a line that is too long is passed over without being kept, what is
 * no message is answered with the error that JSON-RPC has for it, more requests than can be under way at once are refused, and while the peer does not take
 * what we send, nothing more of it is read.
 */
import type { Readable, Writable } from 'node:stream'
import { isJSONRPCRequest, type JSONRPCMessage, parseJSONRPCMessage, type Transport } from '@modelcontextprotocol/server'

const mostLineBytes = 24 * 2 ** 20
const mostUnderWay = 256
const lastAnswersMs = 1000
const newline = 0x0a

const parseError = -32_700
const invalidRequest = -32_600
const tooMany = -32_000

type Id = string | number

export interface LineStreams {
  readonly input: Readable
  readonly output: Writable
}

export class LineTransport implements Transport {
  onmessage?: (message: JSONRPCMessage) => void
  onerror?: (error: Error) => void
  onclose?: () => void
  readonly #streams: LineStreams
  readonly #underWay = new Set<Id>()
  #pieces: Buffer[] = []
  #bytes = 0
  #isSkipping = false
  #isClosed = false
  #whenIdle: (() => void) | undefined

  constructor(streams: LineStreams) {
    this.#streams = streams
  }

  start(): Promise<void> {
    const { input, output } = this.#streams
    input.on('data', this.#take)
    input.on('end', this.#end)
    input.on('close', this.#end)
    input.on('error', this.#end)
    output.on('error', this.#fail)
    if (input.readableEnded || input.destroyed) setImmediate(this.#end)
    return Promise.resolve()
  }

  send(message: JSONRPCMessage): Promise<void> {
    if (this.#isClosed) return Promise.resolve()
    if (!('method' in message) && message.id !== undefined) this.#settle(message.id)
    return this.#write(message)
  }

  close(): Promise<void> {
    if (this.#isClosed) return Promise.resolve()
    this.#isClosed = true
    const { input, output } = this.#streams
    input.off('data', this.#take)
    input.off('end', this.#end)
    input.off('close', this.#end)
    input.pause()
    output.off('error', this.#fail)
    this.#pieces = []
    this.onclose?.()
    return Promise.resolve()
  }

  readonly #fail = (): void => void this.close()

  /** Whoever sends its questions and then closes its side still gets the answers that are nearly there. */
  readonly #end = (): void => {
    if (this.#underWay.size === 0) return void this.close()
    const timer = setTimeout(() => void this.close(), lastAnswersMs)
    this.#whenIdle = () => {
      clearTimeout(timer)
      void this.close()
    }
  }

  #settle(id: Id): void {
    this.#underWay.delete(id)
    // The answer itself is still to be written.
    if (this.#underWay.size === 0 && this.#whenIdle) setImmediate(this.#whenIdle)
  }

  #write(message: unknown): Promise<void> {
    const { input, output } = this.#streams
    return new Promise((resolve, reject) => {
      const isTaken = output.write(`${JSON.stringify(message)}\n`, (error) => (error ? reject(error) : resolve()))
      if (isTaken || this.#isClosed) return
      input.pause()
      output.once('drain', () => {
        if (!this.#isClosed) input.resume()
      })
    })
  }

  readonly #take = (chunk: Buffer): void => {
    let start = 0
    while (start < chunk.length) {
      const end = chunk.indexOf(newline, start)
      this.#keep(chunk.subarray(start, end === -1 ? chunk.length : end))
      if (end === -1) return
      this.#finishLine()
      start = end + 1
    }
  }

  #keep(piece: Buffer): void {
    this.#bytes += piece.length
    if (this.#bytes > mostLineBytes) {
      this.#isSkipping = true
      this.#pieces = []
    }
    if (!this.#isSkipping && piece.length > 0) this.#pieces.push(piece)
  }

  #finishLine(): void {
    const line = this.#isSkipping ? undefined : Buffer.concat(this.#pieces)
    this.#pieces = []
    this.#bytes = 0
    this.#isSkipping = false
    if (line === undefined) this.#refuse(null, { code: invalidRequest, message: `a message may have at most ${mostLineBytes} bytes` })
    else if (line.some((byte) => byte > 0x20)) this.#deliver(line)
  }

  #deliver(line: Buffer): void {
    const parsed = parse(line)
    if ('problem' in parsed) {
      this.#refuse(parsed.id, parsed.problem)
      return
    }
    const { message } = parsed
    if (isJSONRPCRequest(message)) {
      const { id } = message
      const problem = this.#problemWith(id)
      if (problem) {
        this.#refuse(id, problem)
        return
      }
      this.#underWay.add(id)
    }
    this.onmessage?.(message)
    // Nobody answers what was called off.
    if ('method' in message && message.method === 'notifications/cancelled') {
      const id = message.params?.requestId
      if (typeof id === 'string' || typeof id === 'number') this.#settle(id)
    }
  }

  #problemWith(id: Id): Problem | undefined {
    if (this.#underWay.has(id)) return { code: invalidRequest, message: 'a request with this id is under way' }
    if (this.#underWay.size < mostUnderWay) return undefined
    return { code: tooMany, message: `${mostUnderWay} requests are under way; send this one again when one of them is answered` }
  }

  #refuse(id: Id | null, error: Problem): void {
    this.onerror?.(new Error(error.message))
    this.#write({ jsonrpc: '2.0', id, error }).catch(() => undefined)
  }
}

interface Problem {
  readonly code: number
  readonly message: string
}

type Parsed = { readonly message: JSONRPCMessage } | { readonly id: Id | null; readonly problem: Problem }

function parse(line: Buffer): Parsed {
  let value: unknown
  try {
    value = JSON.parse(line.toString())
  } catch {
    return { id: null, problem: { code: parseError, message: 'a message must be one line of JSON' } }
  }
  if (Array.isArray(value))
    return { id: null, problem: { code: invalidRequest, message: 'several messages in one array are not taken; send each on a line of its own' } }
  try {
    return { message: parseJSONRPCMessage(value) }
  } catch {
    return {
      id: idOf(value),
      problem: { code: invalidRequest, message: 'this is no JSON-RPC message: expected jsonrpc "2.0", a method, and an id that is text or a whole number' },
    }
  }
}

function idOf(value: unknown): Id | null {
  const id: unknown = typeof value === 'object' && value !== null && 'id' in value ? value.id : null
  return typeof id === 'string' || Number.isSafeInteger(id) ? (id as Id) : null
}
