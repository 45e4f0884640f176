/**
 * Reads tar archives as they arrive. They come out of a cell, or off a disk that may have lied: whatever is not exactly an archive of plain entries, each of
 * them named below the folder that was packed, is refused before anyone sees it.
 */
import { SandboxError } from '../contract/errors.js'
import type { TarHeader, TarType } from './snapshots-tar-writer.js'

const blockBytes = 512
/** A path and a link's target at their longest, and room for numbers. */
const mostPaxBytes = 65_536

export interface TarEntry {
  readonly header: TarHeader
  /** To be read, if at all, before the next entry is asked for. */
  readonly content: AsyncIterable<Uint8Array>
}

const types: Readonly<Record<string, TarType>> = { '0': 'file', '\0': 'file', '1': 'same', '2': 'link', '5': 'folder', '6': 'fifo' }

/** Ends after the archive's end mark; reads the source to its own end. */
export async function* readTar(source: AsyncIterable<Uint8Array>): AsyncGenerator<TarEntry, void, undefined> {
  const bytes = new ByteReader(source)
  try {
    let records: ReadonlyMap<string, string> = new Map()
    for (;;) {
      const block = await bytes.take(blockBytes)
      if (isZero(block)) break
      const raw = parseBlock(block)
      if (raw.flag === 'x') {
        if (raw.size > mostPaxBytes) throw notTar(`an extended header of ${raw.size} bytes`)
        records = parsePax(await bytes.take(raw.size))
        await bytes.skip(paddingOf(raw.size))
        continue
      }
      const header = headerOf(raw, records)
      records = new Map()
      const content = bytes.section(header.size)
      yield { header, content: content.bytes }
      await bytes.skip(content.left() + paddingOf(header.size))
    }
    await bytes.drain()
  } finally {
    await bytes.close()
  }
}

interface RawHeader extends Omit<TarHeader, 'type'> {
  readonly flag: string
}

function parseBlock(block: Buffer): RawHeader {
  const sum = block.reduce((total, byte, at) => total + (at >= 148 && at < 156 ? 32 : byte), 0)
  if (number(block, 148, 8) !== sum) throw notTar('a header whose sum is wrong')
  if (block.toString('latin1', 257, 262) !== 'ustar') throw notTar('a header of another format')
  const prefix = text(block, 345, 155)
  const name = text(block, 0, 100)
  return {
    path: prefix === '' ? name : `${prefix}/${name}`,
    mode: number(block, 100, 8),
    uid: number(block, 108, 8),
    gid: number(block, 116, 8),
    size: number(block, 124, 12),
    mtime: String(number(block, 136, 12)),
    flag: String.fromCharCode(block[156] ?? 0),
    target: text(block, 157, 100),
  }
}

function headerOf(raw: RawHeader, records: ReadonlyMap<string, string>): TarHeader {
  const type = types[raw.flag]
  const path = cleanPath(records.get('path') ?? raw.path)
  if (type === undefined) throw notTar(`an entry of type ${JSON.stringify(raw.flag)}`)
  const target = records.get('linkpath') ?? raw.target
  const mtime = records.get('mtime') ?? raw.mtime
  if (!/^-?\d+(?:\.\d+)?$/.test(mtime)) throw notTar('a time that is none')
  const size = whole(records.get('size')) ?? raw.size
  if (type !== 'file' && size !== 0) throw notTar('content where none can be')
  const owner = { uid: whole(records.get('uid')) ?? raw.uid, gid: whole(records.get('gid')) ?? raw.gid }
  const header = { path, type, mode: raw.mode, ...owner, size, mtime, target: type === 'same' ? cleanPath(target) : target }
  return { ...header, ...markIn(records, header) }
}

function markIn(records: ReadonlyMap<string, string>, { type, size }: Pick<TarHeader, 'type' | 'size'>): Pick<TarHeader, 'mark'> {
  const mark = records.get('GLOVEBOX.mark')
  if (mark === undefined) return {}
  if (mark === 'removed' && type === 'file' && size === 0) return { mark }
  if (mark === 'hides' && type === 'folder') return { mark }
  throw notTar('a mark that means nothing')
}

/** Without `./` in front and a slash behind; the folder itself is empty. Throws for a way out of it. */
function cleanPath(path: string): string {
  const clean = path.replace(/^\.(?:\/|$)/, '').replace(/\/$/, '')
  if (clean === '') return ''
  if (clean.includes('\0') || clean.split('/').some((part) => part === '' || part === '.' || part === '..')) {
    throw notTar(`a path that leads elsewhere: ${JSON.stringify(path.slice(0, 200)).replace(/\p{Cc}/gu, '\uFFFD')}`)
  }
  return clean
}

function parsePax(bytes: Buffer): ReadonlyMap<string, string> {
  const records = new Map<string, string>()
  let at = 0
  while (at < bytes.length) {
    const match = /^(\d{1,6}) /.exec(bytes.toString('latin1', at, at + 8))
    const length = Number(match?.[1] ?? 0)
    const record = bytes.toString('latin1', at + (match?.[0].length ?? 0), at + length)
    const equals = record.indexOf('=')
    if (length === 0 || at + length > bytes.length || equals < 1 || !record.endsWith('\n')) throw notTar('an extended header that is none')
    records.set(record.slice(0, equals), record.slice(equals + 1, -1))
    at += length
  }
  return records
}

function whole(value: string | undefined): number | undefined {
  if (value === undefined) return undefined
  if (!/^\d{1,15}$/.test(value)) throw notTar('a number that is none')
  return Number(value)
}

function number(block: Buffer, at: number, width: number): number {
  const digits = text(block, at, width).trim()
  if (!/^[0-7]*$/.test(digits)) throw notTar('a number that is none')
  return digits === '' ? 0 : Number.parseInt(digits, 8)
}

function text(block: Buffer, at: number, width: number): string {
  const field = block.toString('latin1', at, at + width)
  const end = field.indexOf('\0')
  return end === -1 ? field : field.slice(0, end)
}

function isZero(block: Buffer): boolean {
  return block.every((byte) => byte === 0)
}

function paddingOf(size: number): number {
  return (blockBytes - (size % blockBytes)) % blockBytes
}

function notTar(what: string): SandboxError {
  return new SandboxError('broken', `the archive has ${what}`)
}

/** Bytes of a stream in the portions that are asked for. Holds no more than the chunk that is being read. */
class ByteReader {
  readonly #source: AsyncIterator<Uint8Array>
  #rest: Uint8Array = new Uint8Array()

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]()
  }

  async take(size: number): Promise<Buffer> {
    if (this.#rest.length >= size) return Buffer.from(this.#cut(size))
    const parts: Uint8Array[] = []
    for await (const part of this.section(size).bytes) parts.push(part)
    return Buffer.concat(parts)
  }

  async skip(size: number): Promise<void> {
    let left = size
    while (left > 0) left -= (await this.#next(left)).length
  }

  section(size: number): { readonly bytes: AsyncIterable<Uint8Array>; left(): number } {
    let left = size
    const next = (most: number): Promise<Uint8Array> => this.#next(most)
    async function* bytes(): AsyncGenerator<Uint8Array, void, undefined> {
      while (left > 0) {
        const part = await next(left)
        left -= part.length
        yield part
      }
    }
    return { bytes: bytes(), left: () => left }
  }

  async drain(): Promise<void> {
    this.#rest = new Uint8Array()
    for (let step = await this.#source.next(); step.done !== true; step = await this.#source.next());
  }

  async close(): Promise<void> {
    await this.#source.return?.()
  }

  async #next(most: number): Promise<Uint8Array> {
    while (this.#rest.length === 0) {
      const step = await this.#source.next()
      if (step.done === true) throw notTar('no end')
      this.#rest = step.value
    }
    return this.#cut(most)
  }

  #cut(most: number): Uint8Array {
    const part = this.#rest.subarray(0, most)
    this.#rest = this.#rest.subarray(part.length)
    return part
  }
}
