import { callOptionsRefusal } from '../contract/call-options.js'
import { SandboxError } from '../contract/errors.js'
import type {
  CopyOptions,
  Entry,
  FileCalls,
  FileEvent,
  FileOptions,
  FilePath,
  FileUrlOptions,
  ListOptions,
  OpenFile,
  PlatformFiles,
  ReadOptions,
  RemoveOptions,
  SearchMatch,
  SearchOptions,
  SearchResult,
  WatchOptions,
  WriteOptions,
} from '../contract/files.js'
import { kindOf } from '../contract/plain-object.js'
import type { CallOptions } from '../contract/platform.js'
import { fromBase64, toBase64 } from '../contract/wire/frames.js'
import { wireHeaders } from '../contract/wire/media.js'
import type { WireEntry } from '../contract/wire/files.js'
import type { QueryValue, Wire } from './wire.js'

export class ClientFiles implements PlatformFiles {
  readonly #wire: Wire

  constructor(wire: Wire) {
    this.#wire = wire
  }

  of(id: string): FileCalls {
    return new SandboxFileCalls(this.#wire, id)
  }
}

class SandboxFileCalls implements FileCalls {
  readonly #wire: Wire
  readonly #params: { readonly id: string }

  constructor(wire: Wire, id: string) {
    this.#wire = wire
    this.#params = { id }
  }

  async read(path: FilePath, options: ReadOptions = {}): Promise<OpenFile> {
    const { response, bytes } = await this.#wire.bytes('files.read', this.#asked(path, options))
    const entry = fromBase64(response.header(wireHeaders.entry) ?? '')
    return { entry: entryOf(JSON.parse(new TextDecoder().decode(entry)) as WireEntry), bytes }
  }

  async write(path: FilePath, content: AsyncIterable<Uint8Array>, options: WriteOptions = {}): Promise<Entry> {
    const source = new Source(content, 'content')
    return entryOf(await source.during(this.#wire.call('files.write', { ...this.#asked(path, options), pieces: source.pieces })))
  }

  list(path: FilePath, options: ListOptions = {}): AsyncIterable<Entry> {
    const { depth, ...rest } = options
    const asked = (): Order => this.#asked(path, { ...rest, ...(depth !== undefined && { depth: depth === Infinity ? 'all' : depth }) })
    const open = () => this.#wire.stream('files.list', asked())
    return {
      async *[Symbol.asyncIterator]() {
        for await (const entry of (await open()).all<WireEntry>()) yield entryOf(entry)
      },
    }
  }

  async stat(path: FilePath, options: FileOptions = {}): Promise<Entry | null> {
    const { entry } = await this.#wire.call('files.stat', this.#asked(path, options))
    return entry && entryOf(entry)
  }

  async mkdir(path: FilePath, options: FileOptions & { readonly mode?: number } = {}): Promise<Entry> {
    return entryOf(await this.#wire.call('files.mkdir', this.#told({ path: inBody(path) }, options)))
  }

  async move(from: FilePath, to: FilePath, options: CopyOptions = {}): Promise<Entry> {
    return entryOf(await this.#wire.call('files.move', this.#told({ from: inBody(from, 'from'), to: inBody(to, 'to') }, options)))
  }

  async copy(from: FilePath, to: FilePath, options: CopyOptions = {}): Promise<Entry> {
    return entryOf(await this.#wire.call('files.copy', this.#told({ from: inBody(from, 'from'), to: inBody(to, 'to') }, options)))
  }

  async remove(path: FilePath, options: RemoveOptions = {}): Promise<boolean> {
    return (await this.#wire.call('files.remove', this.#asked(path, options))).removed
  }

  async symlink(target: FilePath, path: FilePath, options: FileOptions = {}): Promise<Entry> {
    return entryOf(await this.#wire.call('files.symlink', this.#told({ target: inBody(target, 'target'), path: inBody(path) }, options)))
  }

  async chmod(path: FilePath, mode: number, options: FileOptions = {}): Promise<Entry> {
    return entryOf(await this.#wire.call('files.chmod', this.#told({ path: inBody(path), mode }, options)))
  }

  async watch(path: FilePath, options: WatchOptions = {}): Promise<AsyncIterable<FileEvent>> {
    return (await this.#wire.stream('files.watch', this.#asked(path, options))).all<FileEvent>()
  }

  async search(path: FilePath, pattern: string, options: SearchOptions = {}): Promise<SearchResult> {
    const { matches, ...rest } = await this.#wire.call('files.search', this.#told({ path: inBody(path), pattern }, options))
    return { ...rest, matches: matches.map((match) => withPathBytes(match) as SearchMatch) }
  }

  async pack(path: FilePath, options: FileOptions = {}): Promise<AsyncIterable<Uint8Array>> {
    return (await this.#wire.bytes('files.pack', this.#asked(path, options))).bytes
  }

  async unpack(path: FilePath, archive: AsyncIterable<Uint8Array>, options: FileOptions = {}): Promise<number> {
    const source = new Source(archive, 'archive')
    const { entries } = await source.during(this.#wire.call('files.unpack', { ...this.#asked(path, options), pieces: source.pieces }))
    return entries
  }

  async url(path: FilePath, options: FileUrlOptions = {}): Promise<string> {
    return (await this.#wire.call('urls.sign', this.#told({ path: inBody(path) }, options))).url
  }

  /** In a query. */
  #asked(path: FilePath, options: CallOptions): Order {
    const { signal, rest } = checked(options)
    return { params: this.#params, query: { ...inQuery(path), ...(rest as Record<string, QueryValue>) }, signal }
  }

  /** In a body. */
  #told(paths: Readonly<Record<string, unknown>>, options: CallOptions): Order & { readonly body: unknown } {
    const { signal, rest } = checked(options)
    return { params: this.#params, body: { ...rest, ...paths }, signal }
  }
}

interface Order {
  readonly params: { readonly id: string }
  readonly query?: Readonly<Record<string, QueryValue>>
  readonly signal: AbortSignal | undefined
}

function checked(options: CallOptions): { readonly signal: AbortSignal | undefined; readonly rest: object } {
  const refusal = callOptionsRefusal(options)
  if (refusal) throw refusal
  const { signal, ...rest } = options
  return { signal, rest }
}

function checkPath(path: unknown, field: string): asserts path is FilePath {
  if (typeof path !== 'string' && !(path instanceof Uint8Array))
    throw new SandboxError('invalid', `${field}: expected a string or bytes (Uint8Array), got ${kindOf(path)}`)
  if (typeof path === 'string' && /\p{Surrogate}/u.test(path))
    throw new SandboxError('invalid', `${field}: is no text: it has half of a character; a name that is not UTF-8 is given as bytes`)
}

function inQuery(path: FilePath): Record<string, string> {
  checkPath(path, 'path')
  return typeof path === 'string' ? { path } : { pathBase64: toBase64(path) }
}

function inBody(path: FilePath, field = 'path'): string | { readonly base64: string } {
  checkPath(path, field)
  return typeof path === 'string' ? path : { base64: toBase64(path) }
}

export function withPathBytes<Item extends { readonly pathBase64?: string | undefined }>({ pathBase64, ...rest }: Item) {
  const pathBytes = pathBase64 === undefined ? undefined : fromBase64(pathBase64)
  return { ...rest, ...(pathBytes && { pathBytes }) }
}

function entryOf(entry: WireEntry): Entry {
  const { modifiedAt, accessedAt, changedAt, ...rest } = withPathBytes(entry)
  return { ...rest, modifiedAt: new Date(modifiedAt), accessedAt: new Date(accessedAt), changedAt: new Date(changedAt) } as Entry
}

/** What is sent, and why it could not be read, where that was what went wrong. */
class Source {
  readonly pieces: AsyncIterable<Uint8Array>
  #failure: { readonly error: unknown } | undefined

  constructor(content: AsyncIterable<Uint8Array>, field: string) {
    const given: unknown = (content as Partial<AsyncIterable<Uint8Array>> | null | undefined)?.[Symbol.asyncIterator]
    if (typeof given !== 'function') throw new SandboxError('invalid', `${field}: expected an async iterable of bytes, got ${kindOf(content)}`)
    this.pieces = this.#read(content, field)
  }

  /** Rejects with what the content itself failed by, if it did. */
  async during<Value>(sending: Promise<Value>): Promise<Value> {
    try {
      return await sending
    } catch (error) {
      throw this.#failure ? this.#failure.error : error
    }
  }

  async *#read(content: AsyncIterable<Uint8Array>, field: string): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      for await (const piece of content) {
        if (!(piece instanceof Uint8Array)) throw new SandboxError('invalid', `${field}: must consist of bytes (Uint8Array), got ${kindOf(piece)}`)
        yield piece
      }
    } catch (error) {
      this.#failure = { error }
      throw error
    }
  }
}
