/**
 * How events travel to a client of ours: frames of a type (1 byte), a length (4 bytes, big-endian) and so many bytes. Output is carried as it is; everything else
 * is JSON. Any other client asks for NDJSON or Server-Sent Events, in which output is base64.
 */

export const frameTypes = { json: 0, stdout: 1, stderr: 2, stdoutDropped: 3, stderrDropped: 4, data: 5, end: 6 } as const
type FrameType = (typeof frameTypes)[keyof typeof frameTypes]

export interface WireFrame {
  readonly type: number
  readonly payload: Uint8Array
}

const headBytes = 5
/** Longer ones are no frames of ours. */
const mostFrameBytes = 2 ** 26

export function encodeFrame(type: FrameType, payload: Uint8Array): Uint8Array {
  const frame = new Uint8Array(headBytes + payload.length)
  frame[0] = type
  new DataView(frame.buffer).setUint32(1, payload.length)
  frame.set(payload, headBytes)
  return frame
}

/** Puts frames together again from pieces that were cut anywhere. */
export class FrameReader {
  #held: Uint8Array[] = []
  #heldBytes = 0
  readonly #most: number

  /** Longer ones than `most` are none. */
  constructor(most = mostFrameBytes) {
    this.#most = most
  }

  /** All frames that are whole with this. Throws when what comes is no frame. */
  push(piece: Uint8Array): readonly WireFrame[] {
    this.#held.push(piece)
    this.#heldBytes += piece.length
    const frames: WireFrame[] = []
    for (let frame = this.#take(); frame; frame = this.#take()) frames.push(frame)
    return frames
  }

  /** Whether a frame has begun that is not whole. */
  get isWithin(): boolean {
    return this.#heldBytes > 0
  }

  #take(): WireFrame | undefined {
    if (this.#heldBytes < headBytes) return undefined
    const head = this.#front(headBytes)
    const length = new DataView(head.buffer, head.byteOffset).getUint32(1)
    if (length > this.#most || (head[0] ?? 255) > frameTypes.end) throw new Error('what came is no frame')
    if (this.#heldBytes < headBytes + length) return undefined
    const whole = this.#front(headBytes + length)
    this.#drop(headBytes + length)
    return { type: whole[0] ?? 0, payload: whole.subarray(headBytes, headBytes + length) }
  }

  /** The first piece, made long enough. */
  #front(bytes: number): Uint8Array {
    const [first] = this.#held
    if (first && first.length >= bytes) return first
    const joined = joinBytes(this.#held)
    this.#held = [joined]
    return joined
  }

  #drop(bytes: number): void {
    const [first, ...rest] = this.#held
    if (!first) return
    this.#held = first.length === bytes ? rest : [first.subarray(bytes), ...rest]
    this.#heldBytes -= bytes
  }
}

export function joinBytes(pieces: readonly Uint8Array[]): Uint8Array {
  const joined = new Uint8Array(pieces.reduce((total, { length }) => total + length, 0))
  let at = 0
  for (const piece of pieces) {
    joined.set(piece, at)
    at += piece.length
  }
  return joined
}

/** A count before the bytes that follow a gap of so many. */
export function encodeGap(dropped: number, bytes: Uint8Array): Uint8Array {
  const payload = new Uint8Array(8 + bytes.length)
  new DataView(payload.buffer).setFloat64(0, dropped)
  payload.set(bytes, 8)
  return payload
}

/** Throws when what came says no number of bytes. */
export function decodeGap(payload: Uint8Array): { readonly dropped: number; readonly bytes: Uint8Array } {
  // Of this payload alone: what lies behind it is of another frame.
  const dropped = payload.length < 8 ? Number.NaN : new DataView(payload.buffer, payload.byteOffset, 8).getFloat64(0)
  if (!Number.isSafeInteger(dropped) || dropped < 0) throw new Error('what came is no gap')
  return { dropped, bytes: payload.subarray(8) }
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

/** Without anything that only one platform has. */
export function toBase64(bytes: Uint8Array): string {
  let text = ''
  for (let at = 0; at < bytes.length; at += 3) {
    const [first = 0, second = 0, third = 0] = bytes.subarray(at, at + 3)
    const bits = (first << 16) | (second << 8) | third
    const left = bytes.length - at
    text += (alphabet[bits >> 18] ?? '') + (alphabet[(bits >> 12) & 63] ?? '')
    text += (left > 1 ? (alphabet[(bits >> 6) & 63] ?? '') : '=') + (left > 2 ? (alphabet[bits & 63] ?? '') : '=')
  }
  return text
}

/** Undefined for what is none. */
export function fromBase64(text: string): Uint8Array | undefined {
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return undefined
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
}
