/** What COPY and ADD take: files and folders below one folder of this machine, listed and hashed before anything is done, and handed over as an archive. */
import { createHash } from 'node:crypto'
import { closeSync, constants, createReadStream, fstatSync, lstatSync, openSync, readdirSync, readlinkSync, readSync, realpathSync } from 'node:fs'
import { basename, join, posix, relative, sep } from 'node:path'
import { SandboxError } from '../../contract/errors.js'
import { compressionOf } from '../../sys/decompress.js'
import { blockBytes, encodeHeader, paddingOf } from '../../sys/tar-header.js'
import { type Ignored, patternOf } from './dockerignore.js'

export interface CopiedEntry {
  /** Below where it goes; of what is no folder, its name. */
  readonly path: string
  readonly type: 'file' | 'folder' | 'link'
  readonly mode: number
  readonly size: number
  /** Of a link; of a file, the SHA-256 of its content. */
  readonly said: string
  readonly content: { readonly file: string } | { readonly text: string } | undefined
}

export interface CopySource {
  /** `archive`: a file that ADD unpacks. */
  readonly kind: 'file' | 'folder' | 'archive'
  readonly entries: readonly CopiedEntry[]
}

const mostEntries = 200_000
const piece = 2 ** 20

export interface SourceFolder {
  readonly folder: string
  readonly isIgnored: Ignored
  /** Whether archives are unpacked. */
  readonly unpacks: boolean
}

/** Throws SandboxError('invalid') for one that is not there, or leads out of the folder. */
export function findSources(pattern: string, from: SourceFolder): CopySource[] {
  const top = realpathSync(from.folder)
  const clean = posix.normalize(`/${pattern}`).slice(1).replace(/\/$/, '')
  const paths = /[*?[]/.test(clean) ? matching(top, clean, from) : [clean]
  const found = paths.flatMap((path) => sourceAt(top, path, from) ?? [])
  if (found.length === 0) throw new SandboxError('invalid', `there is no '${pattern}' in ${from.folder}`)
  return found
}

export function textSource(name: string, text: string): CopySource {
  const size = Buffer.byteLength(text)
  return { kind: 'file', entries: [{ path: name, type: 'file', mode: 0o644, size, said: createHash('sha256').update(text).digest('hex'), content: { text } }] }
}

/** The same whatever the folder is called and whenever its files were written. */
export function hashSources(sources: readonly CopySource[]): string {
  const told = sources.map(({ kind, entries }) => [kind, entries.map(({ path, type, mode, said }) => [path, type, mode, said])])
  return createHash('sha256').update(JSON.stringify(told)).digest('hex')
}

/** A file that changed since it was hashed ends it with an error. */
export async function* archiveOf(entries: readonly CopiedEntry[]): AsyncGenerator<Uint8Array, void, undefined> {
  for (const { path, type, mode, size, said, content } of entries) {
    const target = Buffer.from(type === 'link' ? said : '')
    yield encodeHeader({ type, name: Buffer.from(type === 'folder' ? `${path}/` : path), target, mode, size, modifiedAtMs: 0 })
    if (content === undefined) continue
    const hash = createHash('sha256')
    for await (const bytes of 'text' in content ? [Buffer.from(content.text)] : createReadStream(content.file, { end: Math.max(0, size - 1) })) {
      if (size === 0) break
      hash.update(bytes as Uint8Array)
      yield bytes as Uint8Array
    }
    if (hash.digest('hex') !== said) throw new SandboxError('conflict', `${path} changed while it was copied`)
    yield Buffer.alloc(paddingOf(size))
  }
  yield Buffer.alloc(2 * blockBytes)
}

function matching(top: string, glob: string, { isIgnored }: SourceFolder): string[] {
  const pattern = patternOf(glob)
  const depth = glob.split('/').length
  const found: string[] = []
  const look = (folder: string, level: number): void => {
    for (const { name, isFolder } of namesIn(join(top, folder))) {
      const path = folder === '' ? name : `${folder}/${name}`
      if (level === depth && pattern.test(path) && !isIgnored(path)) found.push(path)
      if (level < depth && isFolder) look(path, level + 1)
    }
  }
  look('', 1)
  return found
}

function namesIn(folder: string): { readonly name: string; readonly isFolder: boolean }[] {
  const items = readdirSync(folder, { withFileTypes: true })
  return items.map((item) => ({ name: item.name, isFolder: item.isDirectory() })).sort((one, other) => (one.name < other.name ? -1 : 1))
}

/** A link that is named is followed, as far as it stays in the folder; one that is only found is copied as a link. */
function sourceAt(top: string, path: string, from: SourceFolder): CopySource | undefined {
  if (path !== '' && from.isIgnored(path)) return undefined
  const real = realOf(join(top, path))
  if (real === undefined) return undefined
  if (real !== top && !real.startsWith(`${top}${sep}`)) throw new SandboxError('invalid', `'${path}' leads out of ${from.folder}`)
  const within = relative(top, real).split(sep).join('/')
  // What is kept out stays out by whatever name it is asked for.
  if (within !== '' && from.isIgnored(within)) return undefined
  const status = lstatSync(real)
  if (status.isFile()) {
    const entry = entryAt(real, basename(path))
    return { kind: from.unpacks && isArchive(real) ? 'archive' : 'file', entries: entry ? [entry] : [] }
  }
  const entries: CopiedEntry[] = []
  gather(real, '', { entries, isIgnored: (inner) => from.isIgnored(posix.join(within, inner)) })
  return { kind: 'folder', entries }
}

function gather(top: string, folder: string, found: { readonly entries: CopiedEntry[]; readonly isIgnored: Ignored }): void {
  for (const { name } of namesIn(join(top, folder))) {
    const path = folder === '' ? name : `${folder}/${name}`
    const entry = entryAt(join(top, path), path)
    if (entry === undefined) continue
    // What is in a folder that is kept out may be let in again.
    const isOut = found.isIgnored(path)
    if (!isOut) found.entries.push(entry)
    if (found.entries.length > mostEntries) throw new SandboxError('invalid', `there are more than ${mostEntries} files in ${top}`)
    if (entry.type === 'folder') gather(top, path, found)
  }
}

/** Undefined for what cannot be copied: sockets, devices, FIFOs. */
function entryAt(source: string, path: string): CopiedEntry | undefined {
  const status = lstatSync(source)
  const mode = status.mode & 0o777
  if (status.isDirectory()) return { path, type: 'folder', mode, size: 0, said: '', content: undefined }
  if (status.isSymbolicLink()) return { path, type: 'link', mode: 0o777, size: 0, said: readlinkSync(source), content: undefined }
  if (!status.isFile()) return undefined
  const { hash, size } = hashFile(source)
  return { path, type: 'file', mode, size, said: hash, content: { file: source } }
}

function hashFile(path: string): { readonly hash: string; readonly size: number } {
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW)
  try {
    const hash = createHash('sha256')
    const buffer = Buffer.allocUnsafe(piece)
    for (let count = readSync(file, buffer); count > 0; count = readSync(file, buffer)) hash.update(buffer.subarray(0, count))
    return { hash: hash.digest('hex'), size: fstatSync(file).size }
  } finally {
    closeSync(file)
  }
}

function isArchive(path: string): boolean {
  const file = openSync(path, 'r')
  try {
    const head = Buffer.alloc(blockBytes)
    const count = readSync(file, head)
    return head.toString('latin1', 257, 262) === 'ustar' || (compressionOf(head.subarray(0, count)) !== 'none' && /\.(?:tar\.\w+|tgz|tzst)$/.test(path))
  } finally {
    closeSync(file)
  }
}

function realOf(path: string): string | undefined {
  try {
    return realpathSync(path)
  } catch {
    return undefined
  }
}
