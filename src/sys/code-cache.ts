/**
 * Runs a program of ours, one CommonJS file, from what V8 made of it the last time. V8 executes what is in such a cache as it is, so it is code like the program
 * itself: it is taken only from a file of our own that nobody else can write, in a folder of which the same holds, and only for this very program and Node.
 */
import { hash } from 'node:crypto'
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { Script } from 'node:vm'
import { draftIn } from './draft.js'

export interface CachedProgram {
  /** Its absolute path. ASCII only, so that V8 takes its bytes as they are. */
  readonly path: string
  /** Which part of the program this start will use: what one part compiled does little for another. */
  readonly part: string
  /** Where caches are kept: asked for first, and may throw, for then there are none. */
  readonly folder: () => string
}

/** What a CommonJS file finds around itself. */
type Main = (scope: Readonly<Record<string, unknown>>) => void

const readableByOthers = 0o077
const writableByOthers = 0o022
const sealBytes = 8
const mostKept = 24

/** Runs it. A cache that is missing or of no use is made when the process ends well; that there can be none is no failure. */
export function runProgram({ path, part, folder }: CachedProgram): void {
  const { source, identity } = readProgram(path)
  const place = placeOf({ folder, part, identity })
  const cachedData = place === undefined ? undefined : readCache(place, identity)
  // A program that says 'use strict' itself may not stand in a function whose parameters are taken apart.
  const wrapped = `(function (scope) {"use strict";const { exports, require, module, __filename, __dirname } = scope;${source}\n})`
  const script = new Script(wrapped, { filename: path, ...(cachedData && { cachedData }) })
  if (place !== undefined && (cachedData === undefined || script.cachedDataRejected)) {
    process.once('exit', (code) => {
      if (code === 0) keep(place, sealed(identity, script.createCachedData()))
    })
  }
  const main = script.runInThisContext() as Main
  const module = { exports: {} }
  main({ exports: module.exports, require: createRequire(path), module, __filename: path, __dirname: dirname(path) })
}

interface Program {
  readonly source: string
  /** Changes with the program, wherever it was copied from and whatever its times were set to: nobody sets the time of the last change of an inode. */
  readonly identity: Buffer
}

function readProgram(path: string): Program {
  const file = openSync(path, 'r')
  try {
    const { dev, ino, size, ctimeNs } = fstatSync(file, { bigint: true })
    // What V8 compiles depends on its flags too.
    const flags = [...process.execArgv, process.env.NODE_OPTIONS ?? '']
    const words = JSON.stringify([process.version, process.arch, ...flags, path, ...[dev, ino, size, ctimeNs].map(String)])
    // V8 wants what follows it at a multiple of eight.
    const identity = Buffer.alloc(Math.ceil((Buffer.byteLength(words) + 1) / 8) * 8, '\n')
    identity.write(words)
    return { source: readFileSync(file, 'latin1'), identity }
  } finally {
    closeSync(file)
  }
}

interface Wanted {
  readonly folder: () => string
  readonly part: string
  readonly identity: Buffer
}

function placeOf({ folder, part, identity }: Wanted): string | undefined {
  try {
    const own = folder()
    const status = lstatSync(own, { throwIfNoEntry: false })
    const isOurs = status === undefined || (status.isDirectory() && status.uid === process.getuid?.() && (status.mode & writableByOthers) === 0)
    return isOurs ? join(own, `${part}-${fingerprint(identity)}`) : undefined
  } catch {
    return undefined
  }
}

/** V8 executes what it is given without a look: bytes that a disk lost must be noticed before. Eight bytes, so that what follows stays where V8 wants it. */
function sealOf(compiled: Buffer): Buffer {
  return hash('sha1', compiled, 'buffer').subarray(0, sealBytes)
}

function sealed(identity: Buffer, compiled: Buffer): Buffer {
  return Buffer.concat([identity, sealOf(compiled), compiled])
}

function opened(bytes: Buffer, identity: Buffer): Buffer | undefined {
  const from = identity.length + sealBytes
  if (bytes.length <= from || !bytes.subarray(0, identity.length).equals(identity)) return undefined
  const compiled = bytes.subarray(from)
  return bytes.subarray(identity.length, from).equals(sealOf(compiled)) ? compiled : undefined
}

/** Enough to tell files apart; what is in one says for certain whose it is. (FNV-1a) */
function fingerprint(bytes: Uint8Array): string {
  let hash = 0x811c9dc5
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193)
  return (hash >>> 0).toString(16).padStart(8, '0')
}

function readCache(place: string, identity: Buffer): Buffer | undefined {
  try {
    // Not waiting: what stands there may be no file.
    const file = openSync(place, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    try {
      const status = fstatSync(file)
      const isOurs = status.isFile() && status.nlink === 1 && status.uid === process.getuid?.() && (status.mode & readableByOthers) === 0
      return isOurs ? opened(readFileSync(file), identity) : undefined
    } finally {
      closeSync(file)
    }
  } catch {
    return undefined
  }
}

/** A place that cannot be written costs the next start its time, nothing else. */
function keep(place: string, bytes: Buffer): void {
  const folder = dirname(place)
  const draft = draftIn(folder)
  try {
    mkdirSync(folder, { mode: 0o700, recursive: false })
  } catch {
    // It is there, or opening the draft says that it is not.
  }
  try {
    const file = openSync(draft, 'wx', 0o600)
    try {
      writeFileSync(file, bytes)
      // Whole before it has its name, also after the machine lost its power: V8 does not look for what is missing.
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    renameSync(draft, place)
    removeOldest(folder)
  } catch {
    rmSync(draft, { force: true })
  }
}

/** Programs that were replaced leave their caches behind. */
function removeOldest(folder: string): void {
  const kept = readdirSync(folder).flatMap((name) => {
    const status = lstatSync(join(folder, name), { throwIfNoEntry: false })
    return status ? [{ path: join(folder, name), atMs: status.mtimeMs }] : []
  })
  for (const { path } of kept.sort((one, other) => other.atMs - one.atMs).slice(mostKept)) rmSync(path, { force: true })
}
