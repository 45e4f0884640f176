/** What a file is to the kernel and to a dynamic loader: a program, a script, or neither. Only its first bytes and its tables are read. */
import { closeSync, openSync, readSync } from 'node:fs'

export type ProgramFile =
  /** Can be started by itself; `interpreter` is the loader that the kernel starts for it, where it needs one. */
  | { readonly kind: 'program'; readonly interpreter: string | undefined }
  /** Starts with `#!`. */
  | { readonly kind: 'script'; readonly interpreter: string; readonly argument: string }
  /** Libraries too: some have an entry of their own, but print a version there and nothing else. */
  | { readonly kind: 'other' }

const other: ProgramFile = { kind: 'other' }
/** As much of a first line as the kernel looks at. */
const scriptBytes = 255
const headBytes = 4096
const mostTableBytes = 65_536

const fileType = { executable: 2, shared: 3 } as const
const segment = { dynamic: 2, interpreter: 3 } as const
const dynamicTag = { end: 0n, soname: 14n, flags1: 0x6ffffffbn } as const
/** DF_1_PIE: a program, though its file type is that of a library. */
const pieFlag = 0x08000000n

/** Throws what the system says when the file cannot be read. */
export function readProgramFile(path: string): ProgramFile {
  const file = openSync(path, 'r')
  try {
    const head = Buffer.allocUnsafe(headBytes)
    const length = readSync(file, head, 0, headBytes, 0)
    return judge(head.subarray(0, length), (offset, bytes) => readAt(file, offset, bytes))
  } finally {
    closeSync(file)
  }
}

type ReadAt = (offset: number, bytes: number) => Buffer

function readAt(file: number, offset: number, bytes: number): Buffer {
  const buffer = Buffer.alloc(Math.min(bytes, mostTableBytes))
  return buffer.subarray(0, readSync(file, buffer, 0, buffer.length, offset))
}

function judge(head: Buffer, read: ReadAt): ProgramFile {
  if (head.length >= 2 && head.readUInt16BE(0) === 0x2321) return scriptOf(head)
  if (head.length < 52 || head.readUInt32BE(0) !== 0x7f454c46) return other
  try {
    return judgeElf(new Elf(head, read))
  } catch (error) {
    // A table that leads beyond the end: nothing that starts, and if it did, better taken for a program than not.
    if (error instanceof RangeError) return { kind: 'program', interpreter: undefined }
    throw error
  }
}

function scriptOf(head: Buffer): ProgramFile {
  const line = head.subarray(2, scriptBytes).toString('latin1').split('\n', 1)[0] ?? ''
  const [, interpreter = '', argument = ''] = /^[ \t]*([^ \t\0]*)[ \t]*([^\0]*)/.exec(line) ?? []
  return interpreter === '' ? other : { kind: 'script', interpreter, argument: argument.trimEnd() }
}

function judgeElf(elf: Elf): ProgramFile {
  if (elf.type !== fileType.executable && elf.type !== fileType.shared) return other
  const segments = elf.segments()
  const named = segments.find(({ type }) => type === segment.interpreter)
  const interpreter = named === undefined ? undefined : elf.text(named)
  if (elf.type === fileType.executable) return { kind: 'program', interpreter }
  const table = segments.find(({ type }) => type === segment.dynamic)
  const tags = table === undefined ? new Map<bigint, bigint>() : elf.dynamic(table)
  const isPie = ((tags.get(dynamicTag.flags1) ?? 0n) & pieFlag) !== 0n
  return isPie || (named !== undefined && !tags.has(dynamicTag.soname)) ? { kind: 'program', interpreter } : other
}

interface Segment {
  readonly type: number
  readonly offset: number
  readonly bytes: number
}

/** The few fields of an ELF file that are needed here, of either word size and byte order. */
class Elf {
  readonly type: number
  readonly #head: Buffer
  readonly #read: ReadAt
  readonly #isWide: boolean
  readonly #isLittle: boolean

  constructor(head: Buffer, read: ReadAt) {
    this.#head = head
    this.#read = read
    this.#isWide = head[4] === 2
    this.#isLittle = head[5] !== 2
    this.type = this.#half(head, 16)
  }

  segments(): Segment[] {
    const [start, size, count] = this.#isWide
      ? [this.#word(this.#head, 32), this.#half(this.#head, 54), this.#half(this.#head, 56)]
      : [this.#word(this.#head, 28), this.#half(this.#head, 42), this.#half(this.#head, 44)]
    const table = this.#bytes(Number(start), size * count)
    return Array.from({ length: count }, (_, index) => this.#segment(table.subarray(index * size, (index + 1) * size)))
  }

  text({ offset, bytes }: Segment): string {
    return this.#bytes(offset, Math.min(bytes, 4096)).toString('latin1').split('\0', 1)[0] ?? ''
  }

  dynamic({ offset, bytes }: Segment): Map<bigint, bigint> {
    const width = this.#isWide ? 8 : 4
    const table = this.#read(offset, bytes)
    const tags = new Map<bigint, bigint>()
    for (let at = 0; at + 2 * width <= table.length; at += 2 * width) {
      const tag = this.#word(table, at)
      if (tag === dynamicTag.end) break
      tags.set(tag, this.#word(table, at + width))
    }
    return tags
  }

  #segment(row: Buffer): Segment {
    const [offsetAt, bytesAt] = this.#isWide ? [8, 32] : [4, 16]
    const type = this.#isLittle ? row.readUInt32LE(0) : row.readUInt32BE(0)
    return { type, offset: Number(this.#word(row, offsetAt)), bytes: Number(this.#word(row, bytesAt)) }
  }

  #bytes(offset: number, bytes: number): Buffer {
    if (offset + bytes <= this.#head.length) return this.#head.subarray(offset, offset + bytes)
    return this.#read(offset, bytes)
  }

  #half(from: Buffer, at: number): number {
    return this.#isLittle ? from.readUInt16LE(at) : from.readUInt16BE(at)
  }

  #word(from: Buffer, at: number): bigint {
    if (this.#isWide) return this.#isLittle ? from.readBigUInt64LE(at) : from.readBigUInt64BE(at)
    return BigInt(this.#isLittle ? from.readUInt32LE(at) : from.readUInt32BE(at))
  }
}
