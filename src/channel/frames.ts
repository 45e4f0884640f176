/**
 * The frames of the warden's protocol as a pure codec, for both directions.
 *
 * The decoder believes nothing: a header is judged against the rule of its type before a byte of its payload is kept. Frames that carry a
 * program's bytes flow through: their payload is handed over piece by piece as it arrives, as views of the chunk it arrived in. All others are
 * handed over whole, so that what the decoder holds back is one header and one control payload.
 */
import { SandboxError } from '../contract/errors.js'

export const headerBytes = 12
export const protocolVersion = 4
export const windowBytes = 2 * 1024 * 1024
/** Of a connection that a program made: there may be many, and whether they are read is not ours to say, so few have the first. */
export const guestWindows = [262_144, 32_768] as const
export const maxPieceBytes = 256 * 1024
export const maxFilterBytes = 32_768
export const maxRulesBytes = 4 * 2 ** 20
export const maxStartBytes = 4 * 2 ** 20
/** What a program is told with its release is one datagram. */
export const maxToldBytes = 32_768
/** Of DNS, either way. */
export const maxDatagramBytes = 4096
export const maxListenedPorts = 64
/** What a warden tells of its kernel, where nobody else can ask that. */
const maxSaidOfCell = 32_768
const maxSaidOfProgram = 8192

export const frameTypes = {
  hello: 0x01,
  configure: 0x02,
  rules: 0x03,
  start: 0x10,
  stdin: 0x11,
  signal: 0x12,
  kill: 0x13,
  credit: 0x14,
  close: 0x15,
  release: 0x16,
  resize: 0x17,
  connect: 0x18,
  listen: 0x19,
  answer: 0x1a,
  gated: 0x1f,
  started: 0x20,
  failed: 0x21,
  output: 0x22,
  exited: 0x23,
  gone: 0x24,
  connected: 0x25,
  closed: 0x26,
  accepted: 0x27,
  query: 0x28,
  fatal: 0x7f,
} as const

export type FrameName = keyof typeof frameTypes
export type Side = 'engine' | 'warden'

/** 0 where no stream is meant, 1 stdout, 2 stderr, 3 the aside of a run that has one. */
export type StreamNumber = 0 | 1 | 2 | 3

export interface FrameRule {
  readonly name: FrameName
  readonly least: number
  readonly most: number
  /** Payload lengths are multiples of this. */
  readonly unit?: number
  /** Whether the frame speaks of a run; its id is 1 or more exactly then. */
  readonly ofRun: boolean
  readonly ofStream: boolean
  /** The payload is handed over in pieces, as it arrives. */
  readonly flows: boolean
}

function rule(name: FrameName, lengths: readonly [least: number, most: number], traits: Partial<Omit<FrameRule, 'name' | 'least' | 'most'>> = {}): FrameRule {
  return { name, least: lengths[0], most: lengths[1], ofRun: true, ofStream: false, flows: false, ...traits }
}

/** What each side may send. */
export const frameRules: Readonly<Record<Side, readonly FrameRule[]>> = {
  engine: [
    rule('configure', [0, maxFilterBytes], { ofRun: false, unit: 8 }),
    rule('rules', [4, maxRulesBytes], { ofRun: false }),
    rule('start', [0, maxStartBytes]),
    rule('stdin', [0, maxPieceBytes], { flows: true }),
    rule('signal', [4, 4]),
    rule('kill', [0, 0]),
    rule('credit', [4, 4], { ofStream: true }),
    rule('close', [0, 0], { ofRun: false }),
    rule('release', [0, maxToldBytes]),
    rule('resize', [4, 4]),
    rule('connect', [2, 2]),
    rule('listen', [0, maxListenedPorts * 2], { ofRun: false, unit: 2 }),
    rule('answer', [0, maxDatagramBytes]),
  ],
  warden: [
    rule('hello', [8, 8 + maxSaidOfCell], { ofRun: false }),
    rule('credit', [4, 4]),
    rule('gated', [4, 4 + maxSaidOfProgram]),
    rule('started', [4, 4]),
    rule('failed', [8, 264]),
    rule('output', [0, maxPieceBytes], { ofStream: true, flows: true }),
    rule('exited', [48, 48]),
    rule('gone', [0, 0]),
    rule('connected', [0, 0]),
    rule('closed', [4, 4]),
    rule('accepted', [24, 24]),
    rule('query', [1, maxDatagramBytes]),
    rule('fatal', [0, 256], { ofRun: false }),
  ],
}

export interface Frame {
  readonly name: FrameName
  readonly stream: StreamNumber
  readonly run: number
  /** A view that is good only until the receiver returns. Empty only when the whole frame is. */
  readonly payload: Uint8Array
  /** Bytes of this frame that are still to come; more than 0 only in frames that flow. */
  readonly rest: number
}

export interface FrameAddress {
  readonly run?: number
  readonly stream?: StreamNumber
}

export function encodeHeader(name: FrameName, length: number, { run = 0, stream = 0 }: FrameAddress): Buffer {
  const header = Buffer.alloc(headerBytes)
  writeHeader(header, name, { length, run, stream })
  return header
}

export function encodeFrame(name: FrameName, address: FrameAddress, payload?: Uint8Array): Buffer {
  const length = payload?.length ?? 0
  const frame = Buffer.allocUnsafe(headerBytes + length)
  writeHeader(frame, name, { length, run: address.run ?? 0, stream: address.stream ?? 0 })
  if (payload) frame.set(payload, headerBytes)
  return frame
}

/** A frame whose payload is one 32-bit number: SIGNAL, CREDIT, GATED, STARTED. */
export function encodeNumberFrame(name: FrameName, address: FrameAddress, value: number): Buffer {
  const frame = Buffer.allocUnsafe(headerBytes + 4)
  writeHeader(frame, name, { length: 4, run: address.run ?? 0, stream: address.stream ?? 0 })
  frame.writeUInt32LE(value, headerBytes)
  return frame
}

function writeHeader(target: Buffer, name: FrameName, fields: { readonly length: number; readonly run: number; readonly stream: number }): void {
  target.writeUInt32LE(fields.length, 0)
  target[4] = frameTypes[name]
  target[5] = fields.stream
  target[6] = 0
  target[7] = 0
  target.writeUInt32LE(fields.run, 8)
}

const rulesByType: Readonly<Record<Side, readonly (FrameRule | undefined)[]>> = {
  engine: indexRules('engine'),
  warden: indexRules('warden'),
}

function indexRules(side: Side): readonly (FrameRule | undefined)[] {
  const index = new Array<FrameRule | undefined>(256).fill(undefined)
  for (const each of frameRules[side]) index[frameTypes[each.name]] = each
  return index
}

interface Header {
  readonly rule: FrameRule
  readonly stream: StreamNumber
  readonly run: number
  readonly length: number
}

function parseHeader(from: Side, bytes: Uint8Array, at: number): Header {
  const length = readU32(bytes, at)
  const type = bytes[at + 4] as number
  const stream = bytes[at + 5] as number
  const run = readU32(bytes, at + 8)
  const found = rulesByType[from][type]
  if (!found) throw broken(from, `a frame of unknown type 0x${type.toString(16).padStart(2, '0')}`)
  if (length < found.least || length > found.most || length % (found.unit ?? 1) !== 0) throw broken(from, `${found.name} with a payload of ${length} bytes`)
  if (bytes[at + 6] !== 0 || bytes[at + 7] !== 0) throw broken(from, `${found.name} with a reserved field that is not zero`)
  if (found.ofStream ? stream < 1 || stream > 3 : stream !== 0) throw broken(from, `${found.name} for stream ${stream}`)
  if (found.ofRun !== run > 0) throw broken(from, `${found.name} for run ${run}`)
  return { rule: found, stream: stream as StreamNumber, run, length }
}

export function readU32(bytes: Uint8Array, at: number): number {
  return ((bytes[at] as number) | ((bytes[at + 1] as number) << 8) | ((bytes[at + 2] as number) << 16) | ((bytes[at + 3] as number) << 24)) >>> 0
}

function broken(from: Side, what: string): SandboxError {
  return new SandboxError('broken', `the ${from} sent ${what}`)
}

export interface FrameDecoderOptions {
  /** The side whose frames are read. */
  readonly from: Side
  readonly onFrame: (frame: Frame) => void
}

/** Incremental: chunks may be cut anywhere. Throws only SandboxError('broken'), after which it must not be used again. */
export class FrameDecoder {
  readonly #from: Side
  readonly #onFrame: (frame: Frame) => void
  readonly #headerPart = new Uint8Array(headerBytes)
  #headerFill = 0
  #header: Header | undefined
  #payloadPart: Uint8Array | undefined
  #payloadFill = 0

  constructor(options: FrameDecoderOptions) {
    this.#from = options.from
    this.#onFrame = options.onFrame
  }

  /** True while a frame has begun and not ended. */
  get isInsideFrame(): boolean {
    return this.#header !== undefined || this.#headerFill > 0
  }

  push(chunk: Uint8Array): void {
    let at = 0
    while (at < chunk.length) {
      // One step a turn: behind a header that ends its chunk there is no piece yet, and an empty one would read as the end of a stream.
      if (!this.#header) at = this.#readHeader(chunk, at)
      else if (this.#header.rule.flows) at = this.#passOn(this.#header, chunk, at)
      else at = this.#collect(this.#header, chunk, at)
    }
  }

  #readHeader(chunk: Uint8Array, at: number): number {
    if (this.#headerFill === 0 && chunk.length - at >= headerBytes) {
      this.#begin(parseHeader(this.#from, chunk, at))
      return at + headerBytes
    }
    const part = chunk.subarray(at, at + headerBytes - this.#headerFill)
    this.#headerPart.set(part, this.#headerFill)
    this.#headerFill += part.length
    if (this.#headerFill === headerBytes) {
      this.#headerFill = 0
      this.#begin(parseHeader(this.#from, this.#headerPart, 0))
    }
    return at + part.length
  }

  #begin(header: Header): void {
    if (header.length > 0) {
      this.#header = header
      this.#payloadFill = 0
    } else {
      this.#onFrame(frameOf(header, noBytes, 0))
    }
  }

  #passOn(header: Header, chunk: Uint8Array, at: number): number {
    const piece = chunk.subarray(at, at + header.length - this.#payloadFill)
    this.#payloadFill += piece.length
    const rest = header.length - this.#payloadFill
    if (rest === 0) this.#header = undefined
    this.#onFrame(frameOf(header, piece, rest))
    return at + piece.length
  }

  #collect(header: Header, chunk: Uint8Array, at: number): number {
    const part = chunk.subarray(at, at + header.length - this.#payloadFill)
    let whole = part
    if (part.length < header.length) {
      this.#payloadPart ??= new Uint8Array(header.length)
      this.#payloadPart.set(part, this.#payloadFill)
      whole = this.#payloadPart
    }
    this.#payloadFill += part.length
    if (this.#payloadFill === header.length) {
      this.#header = undefined
      this.#payloadPart = undefined
      this.#onFrame(frameOf(header, whole, 0))
    }
    return at + part.length
  }
}

const noBytes = new Uint8Array(0)

function frameOf(header: Header, payload: Uint8Array, rest: number): Frame {
  return { name: header.rule.name, stream: header.stream, run: header.run, payload, rest }
}
