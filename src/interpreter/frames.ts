/** The frames of runtimes/PROTOCOL.md, both ways. What a kernel writes is a guest's word: whatever breaks a rule is a KernelFault, and ends it. */

export const mostPayloadBytes = 16 * 2 ** 20
const mostLineBytes = 64
const newline = 0x0a

export type RequestType = 'load' | 'cwd' | 'env' | 'option' | 'execute' | 'input' | 'eof'
const replyTypes = ['ready', 'result', 'ask', 'done'] as const
export type ReplyType = (typeof replyTypes)[number]

export interface ReplyFrame {
  readonly type: ReplyType
  /** Undefined where no execution is meant. */
  readonly token: string | undefined
  readonly payload: Uint8Array
}

/** A kernel that does not keep to the protocol is not believed any more. */
export class KernelFault extends Error {
  override readonly name = 'KernelFault'
}

export interface RequestFrame {
  readonly type: RequestType
  /** Of the execution that is meant, where one is. */
  readonly token?: string
  readonly payload?: Uint8Array
}

export function encodeRequest({ type, token = '-', payload = nothing }: RequestFrame): Uint8Array {
  return Buffer.concat([Buffer.from(`${type} ${token} ${payload.length}\n`, 'latin1'), payload])
}

const nothing = new Uint8Array(0)
const headerPattern = /^([a-z]{1,16}) (-|[0-9a-f]{32}) (0|[1-9][0-9]{0,7})$/

/** Frames out of bytes that are cut anywhere. Holds no more than the largest frame and what came with its end. */
export class ReplyDecoder {
  #line: Uint8Array = nothing
  #frame: { readonly type: ReplyType; readonly token: string | undefined; readonly payload: Uint8Array } | undefined
  #filled = 0

  /** Throws when the bytes ended amid a frame. */
  end(): void {
    if (this.#frame || this.#line.length > 0) throw new KernelFault('it ended amid a frame')
  }

  /** Those that are whole now; what is wrong is thrown when it is reached. */
  *push(piece: Uint8Array): Generator<ReplyFrame, void, undefined> {
    for (let rest = piece; rest.length > 0; ) {
      rest = this.#frame ? this.#fill(rest) : this.#readLine(rest)
      if (this.#frame && this.#filled === this.#frame.payload.length) yield this.#finish(this.#frame)
    }
  }

  #readLine(piece: Uint8Array): Uint8Array {
    const at = piece.indexOf(newline)
    const line = Buffer.concat([this.#line, piece.subarray(0, at === -1 ? Math.min(piece.length, mostLineBytes) : at)])
    if (line.length >= mostLineBytes) throw new KernelFault(`it began a frame with a line of more than ${mostLineBytes} bytes`)
    this.#line = line
    if (at === -1) return nothing
    this.#begin(line.toString('latin1'))
    return piece.subarray(at + 1)
  }

  #begin(line: string): void {
    const [, type, token, length] = headerPattern.exec(line) ?? []
    if (type === undefined) throw new KernelFault('it began a frame with a line that is none')
    const known = replyTypes.find((each) => each === type)
    if (known === undefined) throw new KernelFault(`it sent a frame of the unknown type '${type}'`)
    if (Number(length) > mostPayloadBytes) throw new KernelFault(`it sent a frame of ${length} bytes, of which at most ${mostPayloadBytes} are allowed`)
    if ((known === 'ready') !== (token === '-')) throw new KernelFault(`it sent '${known}' ${token === '-' ? 'without' : 'with'} a token`)
    this.#line = nothing
    this.#filled = 0
    // As much as is announced, once: what is not sent is not touched, and so takes no memory.
    this.#frame = { type: known, token: token === '-' ? undefined : token, payload: new Uint8Array(Number(length)) }
  }

  #fill(piece: Uint8Array): Uint8Array {
    const { payload } = this.#frame ?? { payload: nothing }
    const part = piece.subarray(0, payload.length - this.#filled)
    payload.set(part, this.#filled)
    this.#filled += part.length
    return piece.subarray(part.length)
  }

  #finish(frame: ReplyFrame): ReplyFrame {
    this.#frame = undefined
    return frame
  }
}
