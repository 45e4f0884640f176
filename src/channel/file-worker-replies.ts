/** What the worker's replies say. It runs with the guest's rights and may have become the guest's: everything in them is judged. */
import type { EntryType } from '../contract/files.js'
import { brokenWorker } from './file-worker-frames.js'
import { readText } from './messages.js'

/** As the worker tells it; names and targets are bytes. */
export interface WorkerEntry {
  readonly type: EntryType
  readonly mode: number
  readonly uid: number
  readonly gid: number
  readonly size: number
  readonly modifiedNs: bigint
  readonly accessedNs: bigint
  readonly changedNs: bigint
  readonly dev: bigint
  readonly ino: bigint
  readonly rdev: bigint
  /** SHA-256 of a file, where it was asked for and could be read. */
  readonly hash?: Uint8Array
  /** The path below the folder that was listed; empty for what was named itself. */
  readonly name: Uint8Array
  /** Of a link. */
  readonly target?: Uint8Array
}

export type WorkerEventKind = 'created' | 'changed' | 'removed' | 'renamed' | 'overflow'

export interface WorkerEvent {
  readonly kind: WorkerEventKind
  /** Below what is watched; empty for itself. */
  readonly path: Uint8Array
  /** Where a renamed one went; empty otherwise. */
  readonly to: Uint8Array
  /** Of an overflow: a bound because of which something is not watched, now and later. */
  readonly bound?: FileFailure
}

export interface WorkerMatch {
  readonly line: number
  readonly column: number
  /** Below what was searched; empty for itself. */
  readonly path: Uint8Array
  readonly text: Uint8Array
}

export interface WorkerProcessRow {
  readonly pid: number
  readonly parent: number
  readonly uid: number
  /** The kernel's letter: R, S, D, T, Z … */
  readonly state: string
  readonly cpuMs: number
  readonly residentBytes: number
  readonly startTicks: number
  readonly command: Uint8Array
}

/** The worker could not do it: the errno of the call that failed, and what it was about. */
export class FileFailure extends Error {
  override readonly name = 'FileFailure'
  readonly errno: number
  readonly text: string

  constructor(errno: number, text: string) {
    super(`${text}: errno ${errno}`)
    this.errno = errno
    this.text = text
  }
}

const entryTypes: readonly EntryType[] = ['file', 'folder', 'link', 'fifo', 'socket', 'device']
const eventKinds: readonly (WorkerEventKind | undefined)[] = [undefined, 'created', 'changed', 'removed', 'renamed', 'overflow']
const hashBytes = 32
const maxNameBytes = 16_384
const maxTargetBytes = 4095
const maxMatchBytes = 1000
const maxCommandBytes = 4200
const maxErrno = 4095
const modeBits = 0o7777
const maxPid = 2 ** 31 - 1
const incompleteBit = 1n << 63n

/** A reply's payload, taken apart from its beginning; it must be used up at its end. */
class Payload {
  readonly #name: string
  readonly #bytes: Uint8Array
  readonly #view: DataView
  #at = 0

  constructor(name: string, bytes: Uint8Array) {
    this.#name = name
    this.#bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  }

  u32(): number {
    return this.#view.getUint32(this.#take(4), true)
  }

  u64(): bigint {
    return this.#view.getBigUint64(this.#take(8), true)
  }

  i64(): bigint {
    return this.#view.getBigInt64(this.#take(8), true)
  }

  number(what: string): number {
    const value = this.u64()
    if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw this.wrong(`${what} ${value}`)
    return Number(value)
  }

  raw(length: number): Uint8Array {
    const start = this.#take(length)
    return this.#bytes.subarray(start, start + length)
  }

  text(most: number): Uint8Array {
    const length = this.u32()
    if (length > most) throw this.wrong(`a text of ${length} bytes`)
    const bytes = new Uint8Array(this.raw(length))
    if (bytes.includes(0)) throw this.wrong('a NUL in a text')
    return bytes
  }

  /** A path below a folder: nothing in it leads up or elsewhere. */
  below(most: number): Uint8Array {
    const bytes = this.text(most)
    if (bytes.length > 0 && !isPlainPath(bytes)) throw this.wrong('a path that is none')
    return bytes
  }

  end(): void {
    if (this.#at !== this.#bytes.length) throw this.wrong(`${this.#bytes.length - this.#at} bytes too many`)
  }

  wrong(what: string): Error {
    return brokenWorker(`sent ${this.#name} with ${what}`)
  }

  #take(length: number): number {
    const at = this.#at
    if (this.#bytes.length - at < length) throw this.wrong('too few bytes')
    this.#at += length
    return at
  }
}

function isPlainPath(bytes: Uint8Array): boolean {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
    .toString('latin1')
    .split('/')
    .every((part) => part !== '' && part !== '.' && part !== '..')
}

export function parseEntry(bytes: Uint8Array): WorkerEntry {
  const payload = new Payload('ENTRY', bytes)
  const typeNumber = payload.u32()
  const type = entryTypes[typeNumber]
  if (!type) throw payload.wrong(`type ${typeNumber}`)
  const mode = payload.u32()
  if ((mode & ~modeBits) !== 0) throw payload.wrong(`mode ${mode}`)
  const [uid, gid, size] = [payload.u32(), payload.u32(), payload.number('size')]
  const [modifiedNs, accessedNs, changedNs] = [payload.i64(), payload.i64(), payload.i64()]
  const [dev, ino, rdev] = [payload.u64(), payload.u64(), payload.u64()]
  const hash = new Uint8Array(payload.raw(hashBytes))
  const [name, target] = [payload.below(maxNameBytes), payload.text(maxTargetBytes)]
  payload.end()
  if (type !== 'link' && target.length > 0) throw payload.wrong('a target of what is no link')
  const isHashed = hash.some((byte) => byte !== 0)
  if (type !== 'file' && isHashed) throw payload.wrong('a hash of what is no file')
  const entry = { type, mode, uid, gid, size, modifiedNs, accessedNs, changedNs, dev, ino, rdev, name }
  return { ...entry, ...(isHashed && { hash }), ...(type === 'link' && { target }) }
}

export function parseEvent(bytes: Uint8Array): WorkerEvent {
  const payload = new Payload('EVENT', bytes)
  const number = payload.u32()
  const kind = eventKinds[number]
  if (!kind) throw payload.wrong(`kind ${number}`)
  const [path, to] = [payload.below(maxTargetBytes), payload.below(maxTargetBytes)]
  payload.end()
  if (to.length > 0 !== (kind === 'renamed')) throw payload.wrong(`${kind} and where to`)
  return { kind, path, to }
}

export function parseMatch(bytes: Uint8Array): WorkerMatch {
  const payload = new Payload('MATCH', bytes)
  const [line, column] = [payload.number('line'), payload.u32()]
  if (line < 1 || column < 1) throw payload.wrong(`line ${line}, column ${column}`)
  const path = payload.below(maxNameBytes)
  const length = payload.u32()
  if (length > maxMatchBytes) throw payload.wrong(`a text of ${length} bytes`)
  const text = new Uint8Array(payload.raw(length))
  payload.end()
  return { line, column, path, text }
}

export function parseProcess(bytes: Uint8Array): WorkerProcessRow {
  const payload = new Payload('PROCESS', bytes)
  const [pid, parent, uid, letter] = [payload.u32(), payload.u32(), payload.u32(), payload.u32()]
  if (pid < 1 || pid > maxPid || parent > maxPid) throw payload.wrong(`pid ${pid} of parent ${parent}`)
  const state = String.fromCharCode(letter)
  if (!/^[A-Za-z]$/.test(state)) throw payload.wrong(`state ${letter}`)
  const [cpuMs, residentBytes, startTicks] = [payload.number('time'), payload.number('memory'), payload.number('start')]
  const command = payload.text(maxCommandBytes)
  payload.end()
  return { pid, parent, uid, state, cpuMs, residentBytes, startTicks, command }
}

export interface WorkerCount {
  readonly count: number
  /** Something is missing from what was told. */
  readonly isIncomplete: boolean
}

export function parseDone(bytes: Uint8Array): WorkerCount {
  const payload = new Payload('DONE', bytes)
  const value = payload.u64()
  payload.end()
  const count = value & ~incompleteBit
  if (count > BigInt(Number.MAX_SAFE_INTEGER)) throw payload.wrong(`count ${count}`)
  return { count: Number(count), isIncomplete: (value & incompleteBit) !== 0n }
}

export function parseFailure(bytes: Uint8Array): FileFailure {
  const payload = new Payload('ERROR', bytes)
  const errno = payload.u32()
  if (errno < 1 || errno > maxErrno) throw payload.wrong(`errno ${errno}`)
  const text = readText(payload.text(bytes.length))
  payload.end()
  return new FileFailure(errno, text)
}
