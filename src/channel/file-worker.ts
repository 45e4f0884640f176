/** A file worker in a cell as typed calls, one at a time. Paths are absolute bytes; what cannot be done is thrown as a FileFailure. */
import { SandboxError } from '../contract/errors.js'
import { brokenWorker, encodeRequest, type Field, maxPathBytes, text, u32, u64 } from './file-worker-frames.js'
import {
  parseDone,
  parseEntry,
  parseEvent,
  parseFailure,
  parseMatch,
  parseProcess,
  type WorkerCount,
  type WorkerEntry,
  type WorkerEvent,
  type WorkerProcessRow,
} from './file-worker-replies.js'
import type { OpenedFile, Path, WorkerListOptions, WorkerSearchOptions, WorkerSearchResult, WorkerWriteOptions } from './file-worker-options.js'
import { FileWorkerTalk, type Turn, type WorkerRun } from './file-worker-talk.js'

const notGiven = 0xffffffff
const everything = 0xffffffffffffffffn
const slash = 0x2f
const nothing = new Uint8Array(0)
/** No cell has so many processes, and no search is asked for so many matches. */
const mostReplies = 1_000_000

interface PackOptions {
  readonly inLayers?: boolean
  /** What is mounted in it is there as a folder, without what it holds. */
  readonly oneFilesystem?: boolean
}

export class FileWorker {
  readonly #talk: FileWorkerTalk
  readonly #run: WorkerRun

  constructor(run: WorkerRun) {
    this.#run = run
    this.#talk = new FileWorkerTalk(run)
  }

  /** Whether it can be asked for something. */
  get isIdle(): boolean {
    return this.#talk.isIdle
  }

  /** Settles when it has ended, whoever ended it. */
  get ended(): Promise<unknown> {
    return this.#run.exited
  }

  /** Idempotent, never rejects. */
  kill(): Promise<void> {
    return this.#talk.kill()
  }

  /** `hash`: of a file that can be read, and is no link. */
  stat(path: Path, { follow = false, hash = false }: { readonly follow?: boolean; readonly hash?: boolean } = {}): Promise<WorkerEntry> {
    return this.#entry('stat', [flags([follow, 1], [hash, 2]), pathField(path)])
  }

  mkdir(path: Path, { mode = notGiven }: { readonly mode?: number } = {}): Promise<WorkerEntry> {
    return this.#entry('mkdir', [u32(mode), pathField(path)])
  }

  move(from: Path, to: Path, { exclusive = false }: { readonly exclusive?: boolean } = {}): Promise<WorkerEntry> {
    return this.#entry('move', [flags([exclusive, 1]), pathField(from), pathField(to)])
  }

  copy(from: Path, to: Path, { exclusive = false }: { readonly exclusive?: boolean } = {}): Promise<WorkerEntry> {
    return this.#entry('copy', [flags([exclusive, 1]), pathField(from), pathField(to)])
  }

  symlink(target: Uint8Array, path: Path): Promise<WorkerEntry> {
    return this.#entry('symlink', [textField(target), pathField(path)])
  }

  chmod(path: Path, mode: number): Promise<WorkerEntry> {
    return this.#entry('chmod', [u32(mode), pathField(path)])
  }

  /** False when there was nothing. */
  async remove(path: Path, { recursive = false }: { readonly recursive?: boolean } = {}): Promise<boolean> {
    const { done, replies } = await this.#all(encodeRequest('remove', [flags([recursive, 1]), pathField(path)]), 'entry', parseEntry)
    if (done.count > 1 || replies.length > 0) throw await this.#broken(`removed ${done.count} and told ${replies.length}`)
    return done.count === 1
  }

  async read(path: Path, { offset = 0, length }: { readonly offset?: number; readonly length?: number } = {}): Promise<OpenedFile> {
    const request = encodeRequest('read', [u64(BigInt(offset)), u64(length === undefined ? everything : BigInt(length)), pathField(path)])
    const turn = this.#talk.begin()
    try {
      const entry = parseEntry(await this.#talk.first(request, 'entry', turn))
      return { entry, bytes: this.#talk.flow(turn, { most: length, isCounted: true }) }
    } catch (error) {
      turn[Symbol.dispose]()
      throw error
    }
  }

  /** Resolves to the file as it is then. */
  async write(path: Path, content: AsyncIterable<Uint8Array>, options: WorkerWriteOptions = {}): Promise<WorkerEntry> {
    const { append = false, atomic = false, exclusive = false, mode = notGiven } = options
    const request = encodeRequest('write', [flags([append, 1], [atomic, 2], [exclusive, 4]), u32(mode), pathField(path)])
    const { replies } = await this.#talk.feed(request, content, 'entry')
    const [payload] = replies
    if (!payload) throw await this.#broken('sent no entry')
    return await this.#judged(() => parseEntry(payload))
  }

  /** In the order of names; returns how many, and whether all could be looked into. */
  async *list(path: Path, options: WorkerListOptions = {}): AsyncGenerator<WorkerEntry, WorkerCount, undefined> {
    const { depth = notGiven, hidden = true, hash = false, oneFilesystem = false, inLayers = false } = options
    const bits = flags([hidden, 1], [hash, 2], [oneFilesystem, 4], [inLayers, 8])
    const request = encodeRequest('list', [bits, u32(depth), inLayers ? text(path) : pathField(path)])
    let told = 0
    const answers = this.#talk.answers(request, 'entry')
    try {
      for (let next = await answers.next(); ; next = await answers.next()) {
        if (next.done) {
          if (next.value.count !== told) throw await this.#broken(`told ${told} entries and counted ${next.value.count}`)
          return next.value
        }
        told += 1
        yield parseEntry(next.value)
      }
    } finally {
      await answers.return({ count: told, isIncomplete: true })
    }
  }

  /** Watching has begun when this resolves; leaving the iteration ends the worker. That not everything can be watched is told once, as an overflow with its bound. */
  async watch(path: Path, { recursive = false }: { readonly recursive?: boolean } = {}): Promise<AsyncGenerator<WorkerEvent, never, undefined>> {
    const turn = this.#talk.begin()
    try {
      const request = encodeRequest('watch', [flags([recursive, 1]), pathField(path)])
      parseDone(await this.#talk.first(request, 'done', turn))
      return this.#events(turn)
    } catch (error) {
      turn[Symbol.dispose]()
      throw error
    }
  }

  async search(path: Path, options: WorkerSearchOptions): Promise<WorkerSearchResult> {
    const { pattern, most, regex = false, ignoreCase = false, hidden = false } = options
    const bits = flags([regex, 1], [ignoreCase, 2], [hidden, 4])
    const request = encodeRequest('search', [bits, u32(most), pathField(path), textField(pattern)])
    const { replies: matches, done } = await this.#all(request, 'match', parseMatch)
    if (matches.length > most) throw await this.#broken(`sent ${matches.length} matches`)
    return { matches, skipped: done.count, truncated: done.isIncomplete }
  }

  /** A tar of the folder. Leaving the iteration early ends the worker. */
  pack(path: Path, { inLayers = false, oneFilesystem = false }: PackOptions = {}): AsyncGenerator<Uint8Array, WorkerCount, undefined> {
    const request = encodeRequest('pack', [flags([oneFilesystem, 4], [inLayers, 8]), inLayers ? text(path) : pathField(path)])
    return this.#packed(request)
  }

  /** Resolves to how many entries there were. */
  async unpack(
    path: Path,
    archive: AsyncIterable<Uint8Array>,
    { keepOwner = false, marks = false }: { readonly keepOwner?: boolean; readonly marks?: boolean } = {},
  ): Promise<number> {
    const request = encodeRequest('unpack', [flags([keepOwner, 1], [marks, 2]), pathField(path)])
    const { done, replies } = await this.#talk.feed(request, archive, 'entry')
    if (replies.length > 0) throw await this.#broken('sent an entry for an archive')
    return done.count
  }

  async processes(): Promise<readonly WorkerProcessRow[]> {
    const { replies } = await this.#all(encodeRequest('processes', []), 'process', parseProcess)
    return replies
  }

  async *#events(turn: Turn): AsyncGenerator<WorkerEvent, never, undefined> {
    try {
      for (let isBound = false; ; ) {
        const { name, payload } = await this.#talk.next()
        if (name === 'event') yield parseEvent(payload)
        else if (name !== 'error' || isBound) throw brokenWorker(`sent ${name} amid a watch`)
        else {
          isBound = true
          yield { kind: 'overflow', path: nothing, to: nothing, bound: parseFailure(payload) }
        }
      }
    } finally {
      turn[Symbol.dispose]()
    }
  }

  async *#packed(request: Uint8Array): AsyncGenerator<Uint8Array, WorkerCount, undefined> {
    const turn = this.#talk.begin()
    try {
      await this.#run.write(request)
      return yield* this.#talk.flow(turn)
    } finally {
      turn[Symbol.dispose]()
    }
  }

  async #entry(name: 'stat' | 'mkdir' | 'move' | 'copy' | 'symlink' | 'chmod', fields: readonly Field[]): Promise<WorkerEntry> {
    const { replies } = await this.#all(encodeRequest(name, fields), 'entry', parseEntry)
    const [entry] = replies
    if (!entry || replies.length > 1) throw await this.#broken(`sent ${replies.length} entries for ${name}`)
    return entry
  }

  async #all<Reply>(
    request: Uint8Array,
    wanted: 'entry' | 'match' | 'process',
    parse: (payload: Uint8Array) => Reply,
  ): Promise<{ replies: Reply[]; done: WorkerCount }> {
    const replies: Reply[] = []
    const answers = this.#talk.answers(request, wanted)
    try {
      for (let next = await answers.next(); ; next = await answers.next()) {
        if (next.done) return { replies, done: next.value }
        if (replies.length >= mostReplies) throw brokenWorker(`sent more than ${mostReplies} replies`)
        replies.push(parse(next.value))
      }
    } finally {
      await answers.return({ count: 0, isIncomplete: true })
    }
  }

  async #judged<Result>(judge: () => Result): Promise<Result> {
    try {
      return judge()
    } catch (error) {
      await this.kill()
      throw error
    }
  }

  /** Said only after the reply was over: such a worker is not used again. */
  async #broken(what: string): Promise<SandboxError> {
    await this.kill()
    return brokenWorker(what)
  }
}

function flags(...each: readonly (readonly [isSet: boolean, bit: number])[]): Field {
  return u32(each.reduce((sum, [isSet, bit]) => sum | (isSet ? bit : 0), 0))
}

function pathField(path: Path): Field {
  if (path[0] !== slash) throw new SandboxError('invalid', 'a path for the file worker must be absolute')
  return textField(path)
}

function textField(bytes: Uint8Array): Field {
  if (bytes.length < 1 || bytes.length > maxPathBytes)
    throw new SandboxError('invalid', `a path or text for the file worker must have 1 to ${maxPathBytes} bytes`)
  if (bytes.includes(0)) throw new SandboxError('invalid', 'a path or text for the file worker must not hold a NUL')
  return text(bytes)
}
