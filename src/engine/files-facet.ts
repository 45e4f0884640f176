/** Files of sandboxes: what is asked is judged here, done by a worker in the cell, and told in words. */
import { FileFailure, type FileWorker, type WorkerEntry, type WorkerEvent, type WorkerMatch } from '../channel/index.js'
import { SandboxError } from '../contract/errors.js'
import * as schemas from '../contract/file-options.js'
import type {
  CopyOptions,
  Entry,
  FileCalls,
  FileEvent,
  FileOptions,
  FilePath,
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
import { absolutePath, linkTarget } from '../policy/file-path.js'
import { type FileOptionsSchema, parseFileOptions, type ParsedOptions } from '../policy/file-options.js'
import { parseGlob } from '../policy/glob.js'
import { parseWith } from '../policy/refusal.js'
import { posixExpression, wrongExpression } from '../policy/search-expression.js'
import { errno } from './errno.js'
import { runWithDraft } from './file-drafts.js'
import { fileError } from './file-errors.js'
import { below, decode, entryOf, placeOf } from './file-entry.js'
import { FileOperation, type FilesHost, type OperationOrder } from './file-operation.js'
import { Pace } from './pace.js'
import { readAhead } from './read-ahead.js'
import { Rewindable } from './rewindable.js'

interface Asked<Options> {
  readonly host: FilesHost
  readonly options: Options
  /** Absolute. */
  readonly path: Uint8Array
  readonly order: OperationOrder
  resolve(path: unknown, field: string): Uint8Array
}

/** As the worker knows it. */
const everyDepth = 2 ** 32 - 1
const defaultMatches = 1000
/** How many matches are looked at to find those in the files that are meant. */
const mostSifted = 20_000

export class FilesFacet implements PlatformFiles {
  readonly #find: (id: string) => Promise<FilesHost>

  constructor(find: (id: string) => Promise<FilesHost>) {
    this.#find = find
  }

  of(id: string): FileCalls {
    return new SandboxFileCalls(() => this.#find(id))
  }
}

class SandboxFileCalls implements FileCalls {
  readonly #find: () => Promise<FilesHost>

  constructor(find: () => Promise<FilesHost>) {
    this.#find = find
  }

  async read(path: FilePath, options: ReadOptions = {}): Promise<OpenFile> {
    const asked = await this.#ask({ name: 'files.read', path, options, schema: schemas.readOptionsSchema })
    const { offset = 0, length } = asked.options
    const how = { offset, ...(length !== undefined && { length }) }
    const { operation, answer } = await FileOperation.open(asked.order, ({ client }) => client.read(asked.path, how))
    return { entry: entryOf(answer.entry, asked.path, asked.host.users), bytes: operation.stream(answer.bytes) }
  }

  async write(path: FilePath, content: AsyncIterable<Uint8Array>, options: WriteOptions = {}): Promise<Entry> {
    checkContent(content, 'content')
    const asked = await this.#ask({ name: 'files.write', path, options, schema: schemas.writeOptionsSchema })
    const { user: _, ...how } = asked.options
    await using again = new Rewindable(content)
    const draft = { order: asked.order, place: asked.path, canRepeat: () => again.canRewind }
    const entry = await runWithDraft(draft, ({ client }) => client.write(asked.path, again, stated(how)))
    return entryOf(entry, asked.path, asked.host.users)
  }

  async *list(path: FilePath, options: ListOptions = {}): AsyncGenerator<Entry, void, undefined> {
    const asked = await this.#ask({ name: 'files.list', path, options, schema: schemas.listOptionsSchema })
    const glob = asked.options.glob === undefined ? undefined : parseGlob(asked.options.glob)
    const { depth = glob?.depth ?? 1, hidden = true } = asked.options
    const operation = await FileOperation.begin(asked.order)
    const told = operation.stream(operation.worker.client.list(asked.path, { depth: Math.min(depth, everyDepth), hidden }))
    const pace = new Pace()
    for await (const entry of readAhead(told)) {
      await pace.pause
      if (entry.name.length === 0 || glob?.matches(decode(entry.name)) === false) continue
      yield entryOf(entry, asked.path, asked.host.users)
    }
  }

  async stat(path: FilePath, options: FileOptions = {}): Promise<Entry | null> {
    const asked = await this.#ask({ name: 'files.stat', path, options, schema: schemas.fileOptionsSchema })
    const entry = await FileOperation.run(asked.order, ({ client }) => orNothing(client.stat(asked.path)))
    return entry && entryOf(entry, asked.path, asked.host.users)
  }

  async mkdir(path: FilePath, options: FileOptions & { readonly mode?: number } = {}): Promise<Entry> {
    const asked = await this.#ask({ name: 'files.mkdir', path, options, schema: schemas.mkdirOptionsSchema })
    return this.#act(asked, (client) => client.mkdir(asked.path, asked.options.mode === undefined ? {} : { mode: asked.options.mode }))
  }

  async move(from: FilePath, to: FilePath, options: CopyOptions = {}): Promise<Entry> {
    return this.#transfer({ name: 'files.move', path: from, to, options })
  }

  async copy(from: FilePath, to: FilePath, options: CopyOptions = {}): Promise<Entry> {
    return this.#transfer({ name: 'files.copy', path: from, to, options })
  }

  async remove(path: FilePath, options: RemoveOptions = {}): Promise<boolean> {
    const asked = await this.#ask({ name: 'files.remove', path, options, schema: schemas.removeOptionsSchema })
    return FileOperation.run(asked.order, ({ client }) => client.remove(asked.path, { recursive: asked.options.recursive ?? false }))
  }

  async symlink(target: FilePath, path: FilePath, options: FileOptions = {}): Promise<Entry> {
    const written = linkTarget(target)
    const asked = await this.#ask({ name: 'files.symlink', path, options, schema: schemas.fileOptionsSchema })
    return this.#act(asked, (client) => client.symlink(written, asked.path))
  }

  async chmod(path: FilePath, mode: number, options: FileOptions = {}): Promise<Entry> {
    const bits = parseWith(schemas.modeSchema, mode, 'mode')
    const asked = await this.#ask({ name: 'files.chmod', path, options, schema: schemas.fileOptionsSchema })
    return this.#act(asked, (client) => client.chmod(asked.path, bits))
  }

  async watch(path: FilePath, options: WatchOptions = {}): Promise<AsyncIterable<FileEvent>> {
    const asked = await this.#ask({ name: 'files.watch', path, options, schema: schemas.watchOptionsSchema })
    const order = { ...asked.order, lasts: true }
    const how = { recursive: asked.options.recursive ?? false }
    const { operation, answer: events } = await FileOperation.open(order, ({ client }) => client.watch(asked.path, how))
    operation.worker.patience.turnOff()
    return mapped(operation.stream(events), (event) => eventOf(event, asked))
  }

  async search(path: FilePath, pattern: string, options: SearchOptions = {}): Promise<SearchResult> {
    const text = parseWith(schemas.patternSchema, pattern, 'pattern')
    const asked = await this.#ask({ name: 'files.search', path, options, schema: schemas.searchOptionsSchema })
    const { user: _, glob: shape, limit = defaultMatches, hidden = true, ...how } = asked.options
    const glob = shape === undefined ? undefined : parseGlob(shape)
    const wanted = new TextEncoder().encode(how.regex === true ? posixExpression(text) : text)
    // Which files a glob leaves out is known only here.
    const most = glob ? Math.max(limit, mostSifted) : limit
    const found = await FileOperation.run(asked.order, ({ client }) =>
      understood(client.search(asked.path, { pattern: wanted, most, hidden, ...stated(how) }), text),
    )
    const matches: WorkerMatch[] = []
    const pace = new Pace()
    for (const match of found.matches) {
      await pace.pause
      if (glob?.matches(decode(match.path)) ?? true) matches.push(match)
    }
    const kept = matches.slice(0, limit).map((match) => matchOf(match, asked.path))
    return { matches: kept, truncated: found.truncated || matches.length > limit, skipped: found.skipped }
  }

  async pack(path: FilePath, options: FileOptions = {}): Promise<AsyncIterable<Uint8Array>> {
    const asked = await this.#ask({ name: 'files.pack', path, options, schema: schemas.fileOptionsSchema })
    const operation = await FileOperation.begin(asked.order)
    return operation.stream(operation.worker.client.pack(asked.path))
  }

  async unpack(path: FilePath, archive: AsyncIterable<Uint8Array>, options: FileOptions = {}): Promise<number> {
    checkContent(archive, 'archive')
    const asked = await this.#ask({ name: 'files.unpack', path, options, schema: schemas.fileOptionsSchema })
    await using again = new Rewindable(archive)
    return await FileOperation.run(
      asked.order,
      ({ client }) => client.unpack(asked.path, again),
      () => again.canRewind,
    )
  }

  async #transfer(call: Pick<Question<typeof schemas.copyOptionsSchema>, 'name' | 'path' | 'options'> & { readonly to: FilePath }): Promise<Entry> {
    const asked = await this.#ask({ ...call, schema: schemas.copyOptionsSchema })
    const to = asked.resolve(call.to, 'to')
    const how = { exclusive: asked.options.exclusive ?? false }
    const entry = await runWithDraft({ order: asked.order, place: to }, ({ client }) =>
      call.name === 'files.move' ? client.move(asked.path, to, how) : client.copy(asked.path, to, how),
    )
    return entryOf(entry, to, asked.host.users)
  }

  async #act<Options>(asked: Asked<Options>, act: (client: FileWorker) => Promise<WorkerEntry>): Promise<Entry> {
    return entryOf(await FileOperation.run(asked.order, ({ client }) => act(client)), asked.path, asked.host.users)
  }

  /** All that can be wrong with a call is told before anything is done. */
  async #ask<Schema extends FileOptionsSchema>({ name, path, to, options: given, schema }: Question<Schema>): Promise<Asked<ParsedOptions<Schema>>> {
    const { signal, options } = parseFileOptions(schema, given)
    signal?.throwIfAborted()
    const host = await this.#find()
    const user = host.findUser(options.user ?? host.defaultUser)
    const resolve = (given: unknown, field: string): Uint8Array => absolutePath(given, { workdir: host.workdir, home: user.home }, field)
    const absolute = resolve(path, to === undefined ? 'path' : 'from')
    const call = { name, path: absolute, ...(to !== undefined && { to: resolve(to, 'to') }) }
    return { host, options, path: absolute, order: { host, call, user: user.name, signal }, resolve }
  }
}

interface Question<Schema extends FileOptionsSchema> {
  readonly name: string
  readonly path: FilePath
  readonly to?: FilePath
  readonly options: unknown
  readonly schema: Schema
}

function checkContent(content: unknown, field: string): void {
  const isIterable = typeof content === 'object' && content !== null && Symbol.asyncIterator in content
  if (!isIterable) throw new SandboxError('invalid', `${field}: expected an async iterable of bytes (Uint8Array), got ${kindOf(content)}`)
}

async function orNothing(asking: Promise<WorkerEntry>): Promise<WorkerEntry | null> {
  try {
    return await asking
  } catch (error) {
    if (error instanceof FileFailure && error.errno === errno.ENOENT) return null
    throw error
  }
}

async function understood<T>(asking: Promise<T>, pattern: string): Promise<T> {
  try {
    return await asking
  } catch (error) {
    if (error instanceof FileFailure && error.errno === errno.EINVAL) throw wrongExpression(pattern)
    throw error
  }
}

function eventOf({ kind, path, to, bound }: WorkerEvent, { path: folder, order, host }: Asked<unknown>): FileEvent {
  const place = (name: Uint8Array): string => decode(name.length === 0 ? folder : below(folder, name))
  if (kind === 'overflow') return bound ? { type: kind, why: fileError(order.call, bound, host.limits).message } : { type: kind }
  return kind === 'renamed' ? { type: kind, path: place(path), to: place(to) } : { type: kind, path: place(path) }
}

function matchOf({ path, line, column, text }: WorkerMatch, folder: Uint8Array): SearchMatch {
  return { ...placeOf(path.length === 0 ? folder : below(folder, path)), line, column, text: decode(text) }
}

type Stated<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

function stated<T extends object>(values: T): Stated<T> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Stated<T>
}

function mapped<T, U>(source: AsyncIterableIterator<T, undefined>, map: (item: T) => U): AsyncIterableIterator<U, undefined> {
  const done = { done: true, value: undefined } as const
  const iterator: AsyncIterableIterator<U, undefined> = {
    next: async () => {
      const next = await source.next()
      return next.done === true ? done : { done: false, value: map(next.value) }
    },
    return: async () => {
      await source.return?.()
      return done
    },
    [Symbol.asyncIterator]: () => iterator,
  }
  return iterator
}
