/** One header of a tar archive in the pax format, both ways. */
import { SandboxError } from '../contract/errors.js'

export const blockBytes = 512

export type TarType = 'file' | 'hard-link' | 'link' | 'folder' | 'device' | 'fifo' | 'pax' | 'pax-global' | 'gnu-name' | 'gnu-target'

const letters: Readonly<Record<string, TarType>> = {
  '\0': 'file',
  '0': 'file',
  '7': 'file',
  '1': 'hard-link',
  '2': 'link',
  '3': 'device',
  '4': 'device',
  '5': 'folder',
  '6': 'fifo',
  x: 'pax',
  g: 'pax-global',
  L: 'gnu-name',
  K: 'gnu-target',
}

/** Those whose content is told by their size; what other types say of it is nothing. */
const sized: readonly TarType[] = ['file', 'pax', 'pax-global', 'gnu-name', 'gnu-target']

export interface TarHeader {
  readonly type: TarType
  readonly name: Buffer
  readonly target: Buffer
  /** Permission bits, set-id bits included. */
  readonly mode: number
  readonly size: number
  readonly modifiedAtMs: number
}

const slash = Buffer.from('/')

/** Undefined for a block of zeros, which ends an archive. */
export function parseHeader(block: Buffer): TarHeader | undefined {
  if (block.every((byte) => byte === 0)) return undefined
  if (checksumOf(block) !== octal(block, 148, 8)) throw malformed('a header whose sum is wrong')
  const letter = block.toString('latin1', 156, 157)
  const type = letters[letter]
  if (type === undefined) throw malformed(`an entry of unknown type '${letter.replace(/[^ -~]/, '?')}'`)
  const prefix = block.toString('latin1', 257, 262) === 'ustar' ? field(block, 345, 155) : Buffer.alloc(0)
  const name = field(block, 0, 100)
  return {
    type,
    name: prefix.length === 0 ? name : Buffer.concat([prefix, slash, name]),
    target: field(block, 157, 100),
    mode: octal(block, 100, 8) & 0o7777,
    size: sized.includes(type) ? octal(block, 124, 12) : 0,
    modifiedAtMs: octal(block, 136, 12) * 1000,
  }
}

/** What a pax header says of the entry behind it. */
export type PaxFields = ReadonlyMap<string, Buffer>

export function parsePax(content: Buffer): PaxFields {
  const fields = new Map<string, Buffer>()
  for (let at = 0; at < content.length; ) {
    const space = content.indexOf(0x20, at)
    const length = space === -1 ? Number.NaN : Number(content.toString('latin1', at, space))
    const end = at + length
    if (!Number.isInteger(length) || end > content.length || end <= space + 1 || content[end - 1] !== 0x0a) throw malformed('a pax header that cannot be read')
    const record = content.subarray(space + 1, end - 1)
    const equals = record.indexOf(0x3d)
    if (equals < 1) throw malformed('a pax header that cannot be read')
    fields.set(record.toString('utf8', 0, equals), record.subarray(equals + 1))
    at = end
  }
  return fields
}

/** The entry as both its headers tell it. */
export function withPax(header: TarHeader, fields: PaxFields): TarHeader {
  // Its content is a list of pieces, which nobody here puts together.
  if ([...fields.keys()].some((key) => key.startsWith('GNU.sparse'))) throw malformed('a sparse file')
  const size = fields.get('size')
  const modified = fields.get('mtime')
  return {
    ...header,
    name: fields.get('path') ?? header.name,
    target: fields.get('linkpath') ?? header.target,
    ...(size !== undefined && header.type === 'file' && { size: decimal(size) }),
    ...(modified !== undefined && { modifiedAtMs: seconds(modified) * 1000 }),
  }
}

/** The block, with a pax header before it where it does not hold the whole truth. */
export function encodeHeader(header: TarHeader): Buffer {
  const { type, name, target, mode, size, modifiedAtMs } = header
  const whole = Math.floor(modifiedAtMs / 1000)
  const fields: [string, Buffer][] = []
  if (name.length > 100) fields.push(['path', name])
  if (target.length > 100) fields.push(['linkpath', target])
  if (size > 0o77777777777) fields.push(['size', Buffer.from(String(size))])
  if (whole * 1000 !== modifiedAtMs || whole < 0) fields.push(['mtime', Buffer.from(String(modifiedAtMs / 1000))])
  const main = encodeBlock(header, type === 'folder' ? '5' : type === 'link' ? '2' : '0', { mode, size, seconds: Math.max(0, whole) })
  if (fields.length === 0) return main
  const content = Buffer.concat(fields.map(([key, value]) => paxRecord(key, value)))
  const pax = encodeBlock({ ...header, name: Buffer.from('pax'), target: Buffer.alloc(0) }, 'x', { mode: 0o644, size: content.length, seconds: 0 })
  return Buffer.concat([pax, content, Buffer.alloc(paddingOf(content.length)), main])
}

export function paddingOf(size: number): number {
  return (blockBytes - (size % blockBytes)) % blockBytes
}

interface BlockNumbers {
  readonly mode: number
  readonly size: number
  readonly seconds: number
}

function encodeBlock({ name, target }: Pick<TarHeader, 'name' | 'target'>, letter: string, numbers: BlockNumbers): Buffer {
  const block = Buffer.alloc(blockBytes)
  name.copy(block, 0, 0, 100)
  block.write(`${numbers.mode.toString(8).padStart(7, '0')}\0`, 100, 'latin1')
  block.write('0000000\0'.repeat(2), 108, 'latin1')
  block.write(`${Math.min(numbers.size, 0o77777777777).toString(8).padStart(11, '0')} `, 124, 'latin1')
  block.write(`${Math.min(numbers.seconds, 0o77777777777).toString(8).padStart(11, '0')} `, 136, 'latin1')
  block.write(letter, 156, 'latin1')
  target.copy(block, 157, 0, 100)
  block.write('ustar\0' + '00', 257, 'latin1')
  block.write(`${checksumOf(block).toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return block
}

/** `LENGTH key=value\n`, where the length counts itself. */
function paxRecord(key: string, value: Buffer): Buffer {
  const rest = Buffer.concat([Buffer.from(` ${key}=`), value, Buffer.from('\n')])
  let length = rest.length
  while (String(length).length + rest.length !== length) length = String(length).length + rest.length
  return Buffer.concat([Buffer.from(String(length)), rest])
}

/** The sum of all bytes, its own field taken as spaces. */
function checksumOf(block: Buffer): number {
  let sum = 8 * 0x20
  for (let at = 0; at < blockBytes; at += 1) if (at < 148 || at >= 156) sum += block[at] as number
  return sum
}

function field(block: Buffer, at: number, length: number): Buffer {
  const whole = block.subarray(at, at + length)
  const end = whole.indexOf(0)
  return Buffer.from(end === -1 ? whole : whole.subarray(0, end))
}

/** Octal digits, or what GNU writes of a number with too many of them: its bytes. */
function octal(block: Buffer, at: number, length: number): number {
  if (((block[at] as number) & 0x80) !== 0) return binary(block.subarray(at, at + length))
  const text = field(block, at, length).toString('latin1').trim()
  if (!/^[0-7]{0,12}$/.test(text)) throw malformed('a number that is none')
  return text === '' ? 0 : Number.parseInt(text, 8)
}

function binary(bytes: Buffer): number {
  const number = bytes.reduce((sum, byte, index) => sum * 256 + (index === 0 ? byte & 0x7f : byte), 0)
  if (!Number.isSafeInteger(number)) throw malformed('a number that is none')
  return number
}

function decimal(text: Buffer): number {
  const number = Number(text.toString('latin1'))
  if (!/^\d{1,16}$/.test(text.toString('latin1')) || !Number.isSafeInteger(number)) throw malformed('a size that is none')
  return number
}

function seconds(text: Buffer): number {
  const number = Number(text.toString('latin1'))
  if (!/^-?\d{1,12}(\.\d{1,12})?$/.test(text.toString('latin1'))) throw malformed('a time that is none')
  return number
}

export function malformed(what: string): SandboxError {
  return new SandboxError('conflict', `the archive has ${what}`)
}
