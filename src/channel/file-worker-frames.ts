/** The frames of warden/FILES.md, requests out and replies in; the replies are taken as bytes, whole or as they flow. */
import { SandboxError } from '../contract/errors.js'

const maxPayloadBytes = 65_536
export const maxContentBytes = 2 ** 20
export const frameHeaderBytes = 8
const maxDataBytes = 4 * maxPayloadBytes - frameHeaderBytes
export const maxPathBytes = 4095

export const requestTypes = {
  stat: 0x01,
  read: 0x02,
  write: 0x03,
  list: 0x04,
  mkdir: 0x05,
  move: 0x06,
  copy: 0x07,
  remove: 0x08,
  symlink: 0x09,
  chmod: 0x0a,
  watch: 0x0b,
  search: 0x0c,
  pack: 0x0d,
  unpack: 0x0e,
  processes: 0x0f,
} as const

export const contentType = 0x40
const endType = 0x41

export const replyTypes = { done: 0x80, error: 0x81, data: 0x82, entry: 0x83, event: 0x84, match: 0x85, process: 0x86 } as const

export type ReplyName = keyof typeof replyTypes

const replyNames = new Map<number, ReplyName>(Object.entries(replyTypes).map(([name, type]) => [type, name as ReplyName]))

export type Field = { readonly u32: number } | { readonly u64: bigint } | { readonly bytes: Uint8Array }

export const u32 = (value: number): Field => ({ u32: value })
export const u64 = (value: bigint): Field => ({ u64: value })
export const text = (bytes: Uint8Array): Field => ({ bytes })

export function encodeRequest(name: keyof typeof requestTypes, fields: readonly Field[]): Uint8Array {
  const length = fields.reduce((sum, field) => sum + ('u32' in field ? 4 : 'u64' in field ? 8 : 4 + field.bytes.length), 0)
  const frame = Buffer.alloc(frameHeaderBytes + length)
  writeHeader(frame, 0, { type: requestTypes[name], length })
  let at = frameHeaderBytes
  for (const field of fields) {
    if ('u64' in field) at = frame.writeBigUInt64LE(field.u64, at)
    else if ('u32' in field) at = frame.writeUInt32LE(field.u32, at)
    else {
      at = frame.writeUInt32LE(field.bytes.length, at)
      frame.set(field.bytes, at)
      at += field.bytes.length
    }
  }
  return frame
}

export const encodeEnd = (): Uint8Array => {
  const frame = Buffer.alloc(frameHeaderBytes)
  writeHeader(frame, 0, { type: endType, length: 0 })
  return frame
}

export function writeHeader(into: Buffer, at: number, header: { readonly type: number; readonly length: number }): void {
  into.writeUInt32LE(header.length, at)
  into.writeUInt32LE(header.type, at + 4)
}

/** What the worker sent, or says of itself. */
export function brokenWorker(what: string): SandboxError {
  return new SandboxError('broken', `the file worker ${what}`)
}

export interface ReplyHeader {
  readonly name: ReplyName
  readonly length: number
}

export function parseReplyHeader(bytes: Uint8Array): ReplyHeader {
  const view = new DataView(bytes.buffer, bytes.byteOffset, frameHeaderBytes)
  const type = view.getUint32(4, true)
  const name = replyNames.get(type)
  if (!name) throw brokenWorker(`sent a frame of unknown type ${type}`)
  const length = view.getUint32(0, true)
  if (length > (name === 'data' ? maxDataBytes : maxPayloadBytes)) throw brokenWorker(`sent ${name} with ${length} bytes`)
  return { name, length }
}
