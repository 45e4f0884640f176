import type { Entry, FileCalls, ReadOptions, WriteOptions } from '../contract/files.js'
import { bytesOf, text } from './check.js'
import { withSandbox } from './guest.js'
import type { Subject, SubjectSandbox } from './subject.js'
import type { SpecInput } from '../contract/spec.js'

/** A sandbox with its files, in the words that cases need. */
export interface FilesOf {
  readonly sandbox: SubjectSandbox
  readonly files: FileCalls
  readonly read: (path: string | Uint8Array, options?: ReadOptions) => Promise<Uint8Array>
  readonly readText: (path: string | Uint8Array) => Promise<string>
  readonly write: (path: string | Uint8Array, content: string | Uint8Array, options?: WriteOptions) => Promise<Entry>
}

export async function withFiles<T>(subject: Subject, use: (of: FilesOf) => Promise<T>, spec?: SpecInput): Promise<T> {
  return withSandbox(subject, (sandbox) => use(filesOf(sandbox)), ...(spec ? ([spec] as const) : []))
}

function filesOf(sandbox: SubjectSandbox): FilesOf {
  const { files } = sandbox
  const read = async (path: string | Uint8Array, options: ReadOptions = {}): Promise<Uint8Array> => gather((await files.read(path, options)).bytes)
  return {
    sandbox,
    files,
    read,
    readText: async (path) => text(await read(path)),
    write: (path, content, options = {}) => files.write(path, pieces(typeof content === 'string' ? bytesOf(content) : content), options),
  }
}

export async function gather(source: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const parts: Uint8Array[] = []
  let length = 0
  for await (const part of source) {
    parts.push(part)
    length += part.length
  }
  const whole = new Uint8Array(length)
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

export async function* namesIn(entries: AsyncIterable<Entry>): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const { name } of entries) yield bytesOf(name)
}

// eslint-disable-next-line @typescript-eslint/require-await -- an async generator is the shortest way to an async iterable
export async function* pieces(...parts: readonly Uint8Array[]): AsyncGenerator<Uint8Array, void, undefined> {
  yield* parts
}

export interface ArchiveEntry {
  readonly name: string
  /** The letter of its type; a file when not given. */
  readonly type?: string
  readonly content?: string
  readonly target?: string
  readonly mode?: number
}

/** A tar archive as someone who wants out would write it. */
export function archiveOf(entries: readonly ArchiveEntry[]): Uint8Array {
  const blocks = [...entries.flatMap(({ content = '', ...entry }) => [headerOf({ content, ...entry }), padded(bytesOf(content))]), new Uint8Array(1024)]
  const archive = new Uint8Array(blocks.reduce((sum, block) => sum + block.length, 0))
  let at = 0
  for (const block of blocks) {
    archive.set(block, at)
    at += block.length
  }
  return archive
}

function headerOf({ name, type = '0', content = '', target = '', mode = 0o644 }: ArchiveEntry): Uint8Array {
  const block = new Uint8Array(512)
  const put = (value: string, at: number): void => block.set(bytesOf(value), at)
  const octal = (value: number, length: number): string => value.toString(8).padStart(length, '0')
  put(name, 0)
  put(octal(mode, 7), 100)
  put(octal(0, 7), 108)
  put(octal(0, 7), 116)
  put(octal(bytesOf(content).length, 11), 124)
  put(octal(0, 11), 136)
  put('        ', 148)
  put(type, 156)
  put(target, 157)
  put('ustar\x0000', 257)
  put(octal(1, 7), 329)
  put(octal(3, 7), 337)
  put(
    `${octal(
      block.reduce((sum, byte) => sum + byte, 0),
      6,
    )}\0 `,
    148,
  )
  return block
}

function padded(bytes: Uint8Array): Uint8Array {
  const whole = new Uint8Array(Math.ceil(bytes.length / 512) * 512)
  whole.set(bytes)
  return whole
}
