/**
 * Messages of DNS, as far as a cell may use them: one question of the Internet's class in, addresses or a refusal out. The question is read strictly and
 * handed back byte by byte, so that a client that checks the case of its letters finds them; whatever else a message carries is not looked at.
 */
import type { Address } from '../contract/network.js'
import { bytesOfAddress } from '../policy/network-address.js'

export const queryTypes = { a: 1, aaaa: 28 } as const
export const responseCodes = { ok: 0, malformed: 1, unknownName: 3, notImplemented: 4, refused: 5 } as const

const headBytes = 12
const mostQueryBytes = 4096
const mostNameBytes = 255

export interface Query {
  readonly id: number
  readonly wantsRecursion: boolean
  /** In lower case, without the closing dot; empty for the root. */
  readonly name: string
  readonly type: number
  /** As it was sent. */
  readonly question: Uint8Array
}

/** `silence`: what gets no answer at all, since it is none to a question. */
export function parseQuery(bytes: Uint8Array): Query | 'silence' | { readonly id: number; readonly code: number } {
  if (bytes.length < headBytes || bytes.length > mostQueryBytes) return 'silence'
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const flags = view.getUint16(2)
  if ((flags & 0x8000) !== 0) return 'silence'
  const id = view.getUint16(0)
  if ((flags & 0x7800) !== 0) return { id, code: responseCodes.notImplemented }
  const [questions, answers, authorities, additional] = [4, 6, 8, 10].map((at) => view.getUint16(at))
  if (questions !== 1 || answers !== 0 || authorities !== 0 || (additional ?? 0) > 1) return { id, code: responseCodes.malformed }
  const read = readName(bytes, headBytes)
  if (read === undefined || read.end + 4 > bytes.length) return { id, code: responseCodes.malformed }
  if (view.getUint16(read.end + 2) !== 1) return { id, code: responseCodes.refused }
  const question = bytes.slice(headBytes, read.end + 4)
  return { id, wantsRecursion: (flags & 0x0100) !== 0, name: read.name, type: view.getUint16(read.end), question }
}

/** Labels only: a question has nothing to point back to. */
function readName(bytes: Uint8Array, start: number): { readonly name: string; readonly end: number } | undefined {
  const labels: string[] = []
  let at = start
  for (;;) {
    const length = bytes[at]
    if (length === undefined || length > 63 || at + 1 + length - start > mostNameBytes) return undefined
    at++
    if (length === 0) return { name: labels.join('.').toLowerCase(), end: at }
    const label = bytes.subarray(at, at + length)
    // A dot inside of a label would make it two when it is written.
    if (label.length < length || label.some((byte) => byte <= 0x20 || byte >= 0x7f || byte === 0x2e)) return undefined
    labels.push(String.fromCharCode(...label))
    at += length
  }
}

const ttlSeconds = 60

/** No addresses and `ok`: there is such a name, with nothing of this type. */
export function writeReply({ id, wantsRecursion, question }: Omit<Query, 'name' | 'type'>, code: number, addresses: readonly Address[] = []): Uint8Array {
  const answers = addresses.map(answerBytes)
  const head = new Uint8Array(headBytes)
  const view = new DataView(head.buffer)
  view.setUint16(0, id)
  view.setUint16(2, 0x8080 | (wantsRecursion ? 0x0100 : 0) | code)
  view.setUint16(4, question.length === 0 ? 0 : 1)
  view.setUint16(6, answers.length)
  return Uint8Array.from([...head, ...question, ...answers.flatMap((answer) => [...answer])])
}

/** Of the name that was asked for, which stands right behind the head. */
function answerBytes(address: Address): Uint8Array {
  const bytes = bytesOfAddress(address)
  const answer = new Uint8Array(12 + bytes.length)
  const view = new DataView(answer.buffer)
  view.setUint16(0, 0xc000 | headBytes)
  view.setUint16(2, address.family === 4 ? queryTypes.a : queryTypes.aaaa)
  view.setUint16(4, 1)
  view.setUint32(6, ttlSeconds)
  view.setUint16(10, bytes.length)
  answer.set(bytes, 12)
  return answer
}
