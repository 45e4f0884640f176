import { callOptionsRefusal } from '../contract/call-options.js'
import { SandboxError } from '../contract/errors.js'
import type {
  CopyOptions,
  Entry,
  FileCalls,
  FileOptions,
  FilePath,
  ListOptions,
  ReadOptions,
  RemoveOptions,
  SearchOptions,
  SearchResult,
  WatchOptions,
  WriteOptions,
} from '../contract/files.js'
import { kindOf, plainObjectRefusal } from '../contract/plain-object.js'
import type { LocalFiles } from '../contract/transfer.js'
import { type FileContent, gather, piecesOf, toStream } from './files-content.js'
import { download, type DownloadOptions, type Transferred, upload, type UploadOptions } from './files-transfer.js'
import { FileWatch } from './files-watch.js'

export interface FilesOrigin {
  readonly files: FileCalls
  /** The local disk, where this process has one. */
  readonly local: LocalFiles | undefined
}

/**
 * The files of a sandbox. Everything is done inside its cell with the rights of its user (or of `user` in the options), so a path means what it means to
 * a program there: `/workspace/a`, `a` below the working folder, `~/a`.
 */
export class SandboxFiles {
  readonly #origin: FilesOrigin

  constructor(origin: FilesOrigin) {
    this.#origin = origin
  }

  /** As UTF-8; what is not is replaced by U+FFFD. */
  async read(path: FilePath, options: ReadOptions = {}): Promise<string> {
    return new TextDecoder('utf-8', { ignoreBOM: true }).decode(await this.#gather('files.read', path, options))
  }

  async readBytes(path: FilePath, options: ReadOptions = {}): Promise<Uint8Array> {
    return this.#gather('files.readBytes', path, options)
  }

  /** As fast as it is read. Cancelling ends it. */
  async stream(path: FilePath, options: ReadOptions = {}): Promise<ReadableStream<Uint8Array>> {
    return toStream((await this.#origin.files.read(path, options)).bytes)
  }

  /** Makes the folders above, too. Replaces what is there unless `exclusive` or `append` is set. */
  async write(path: FilePath, content: FileContent, options: WriteOptions = {}): Promise<Entry> {
    return this.#origin.files.write(path, piecesOf(content), options)
  }

  async append(path: FilePath, content: FileContent, options: Omit<WriteOptions, 'append' | 'atomic'> = {}): Promise<Entry> {
    const refusal = callOptionsRefusal(options)
    if (refusal) throw refusal
    return this.write(path, content, { ...options, append: true })
  }

  /** `{ 'a.txt': 'text', 'src/b.ts': bytes }`. Resolves when all are written; after a failure some may be. */
  async writeMany(contents: Readonly<Record<string, FileContent>>, options: WriteOptions = {}): Promise<readonly Entry[]> {
    const refusal = plainObjectRefusal(contents, 'contents')
    if (refusal) throw refusal
    const written = await Promise.allSettled(Object.entries(contents).map(([path, content]) => this.write(path, content, options)))
    return written.map((result) => {
      if (result.status === 'rejected') throw result.reason
      return result.value
    })
  }

  /** The entries of a folder, sorted by name. For very large ones there is `walk`. */
  async list(path: FilePath = '.', options: ListOptions = {}): Promise<readonly Entry[]> {
    const entries: Entry[] = []
    for await (const entry of this.#origin.files.list(path, options)) entries.push(entry)
    return entries.sort((one, other) => (one.path < other.path ? -1 : one.path > other.path ? 1 : 0))
  }

  /** All that is beneath, as it is found. */
  walk(path: FilePath = '.', options: ListOptions = {}): AsyncIterable<Entry> {
    const refusal = callOptionsRefusal(options)
    if (refusal) throw refusal
    return this.#origin.files.list(path, { depth: Infinity, ...options })
  }

  /** Of a link itself; null when there is nothing. */
  async stat(path: FilePath, options: FileOptions = {}): Promise<Entry | null> {
    return this.#origin.files.stat(path, options)
  }

  async exists(path: FilePath, options: FileOptions = {}): Promise<boolean> {
    return (await this.stat(path, options)) !== null
  }

  /** With the folders above; one that is there is quiet. */
  async mkdir(path: FilePath, options: FileOptions & { readonly mode?: number } = {}): Promise<Entry> {
    return this.#origin.files.mkdir(path, options)
  }

  async move(from: FilePath, to: FilePath, options: CopyOptions = {}): Promise<Entry> {
    return this.#origin.files.move(from, to, options)
  }

  /** A folder with all in it; links are copied as links. */
  async copy(from: FilePath, to: FilePath, options: CopyOptions = {}): Promise<Entry> {
    return this.#origin.files.copy(from, to, options)
  }

  /** False when there was nothing. */
  async remove(path: FilePath, options: RemoveOptions = {}): Promise<boolean> {
    return this.#origin.files.remove(path, options)
  }

  async symlink(target: FilePath, path: FilePath, options: FileOptions = {}): Promise<Entry> {
    return this.#origin.files.symlink(target, path, options)
  }

  async chmod(path: FilePath, mode: number, options: FileOptions = {}): Promise<Entry> {
    return this.#origin.files.chmod(path, mode, options)
  }

  /** `for await (const event of sandbox.files.watch('/workspace', { recursive: true })) …` */
  watch(path: FilePath = '.', options: WatchOptions = {}): FileWatch {
    return new FileWatch(this.#origin.files.watch(path, options))
  }

  /** Lines in files that have a text, or match a POSIX extended regular expression with `regex`. */
  async search(path: FilePath, pattern: string, options: SearchOptions = {}): Promise<SearchResult> {
    return this.#origin.files.search(path, pattern, options)
  }

  /** A folder as a tar archive. */
  async pack(path: FilePath, options: FileOptions = {}): Promise<ReadableStream<Uint8Array>> {
    return toStream(await this.#origin.files.pack(path, options))
  }

  /** A tar archive into a folder, which is made. Resolves to how many entries there were. */
  async unpack(path: FilePath, archive: FileContent, options: FileOptions = {}): Promise<number> {
    return this.#origin.files.unpack(path, piecesOf(archive, 'archive'), options)
  }

  /** A local file or folder becomes `path`. Links stay links; sockets, FIFOs and devices stay behind and are told. */
  async upload(from: string, path: FilePath, options: UploadOptions = {}): Promise<Transferred> {
    return upload(this.#ends('files.upload', from), { from, to: path }, checked(options))
  }

  /**
   * `path` becomes a local file or folder. Nothing local is replaced unless `overwrite` is set, and what fails in the sandbox changes nothing. Links that lead
   * out of the folder, FIFOs and devices stay behind and are told; set-id bits are dropped.
   */
  async download(path: FilePath, to: string, options: DownloadOptions = {}): Promise<Transferred> {
    return download(this.#ends('files.download', to), { from: path, to }, checked(options))
  }

  #ends(call: string, place: unknown): { readonly files: FileCalls; readonly local: LocalFiles } {
    const { files, local } = this.#origin
    if (local === undefined) throw new SandboxError('unsupported', `${call}: there is no local disk here; use files.pack and files.unpack`)
    if (typeof place !== 'string' || place === '' || place.includes('\0')) {
      throw new SandboxError('invalid', `${call}: the local path must be a string that is not empty and has no NUL, got ${kindOf(place)}`)
    }
    return { files, local }
  }

  async #gather(call: string, path: FilePath, options: ReadOptions): Promise<Uint8Array> {
    const { entry, bytes } = await this.#origin.files.read(path, options)
    const { offset = 0, length = Infinity } = options
    return gather({ bytes, call, expectedBytes: Math.min(Math.max(entry.size - offset, 0), length) })
  }
}

const countOptions = ['mostBytes', 'mostEntries'] as const

function checked<Options extends UploadOptions | DownloadOptions>(options: Options): Options {
  const refusal = callOptionsRefusal(options)
  if (refusal) throw refusal
  const { onProgress } = options
  if (onProgress !== undefined && typeof onProgress !== 'function')
    throw new SandboxError('invalid', `onProgress: expected a function, got ${kindOf(onProgress)}`)
  const { overwrite } = options as DownloadOptions
  if (overwrite !== undefined && typeof overwrite !== 'boolean')
    throw new SandboxError('invalid', `overwrite: expected true or false, got ${kindOf(overwrite)}`)
  for (const name of countOptions) {
    const value = (options as DownloadOptions)[name]
    if (value === undefined || (Number.isInteger(value) && value >= 0) || value === Infinity) continue
    throw new SandboxError('invalid', `${name}: expected a whole number from 0, or Infinity`)
  }
  return options
}
