/** Whole files and folders between the local disk and a sandbox. */
import { SandboxError } from '../contract/errors.js'
import type { Entry, FileCalls, FileOptions, FilePath } from '../contract/files.js'
import type { LocalFiles, Received, ReceiveOptions } from '../contract/transfer.js'

export interface TransferProgress {
  /** On their way so far. */
  readonly bytes: number
  /** About how many there will be, where that is known. */
  readonly totalBytes: number | undefined
}

export interface UploadOptions extends FileOptions {
  readonly onProgress?: (progress: TransferProgress) => void
}

export interface DownloadOptions extends FileOptions, ReceiveOptions {
  readonly onProgress?: (progress: TransferProgress) => void
}

/** `bytes` counts what was moved: the content of a file, an archive of a folder. */
export type Transferred = Received

export interface TransferEnds {
  readonly files: FileCalls
  readonly local: LocalFiles
}

/** `from` is local. */
export async function upload(
  { files, local }: TransferEnds,
  { from, to }: { readonly from: string; readonly to: FilePath },
  options: UploadOptions,
): Promise<Transferred> {
  const { onProgress, ...rest } = options
  await using source = await local.send(from, options.signal ? { signal: options.signal } : {})
  const moved = { bytes: 0 }
  const bytes = counted(source.bytes, { moved, totalBytes: source.totalBytes, onProgress })
  if (source.type === 'folder') return { entries: await files.unpack(to, bytes, rest), bytes: moved.bytes, skipped: source.skipped }
  await files.write(to, bytes, { ...rest, mode: source.mode })
  return { entries: 1, bytes: moved.bytes, skipped: source.skipped }
}

/** `to` is local. */
export async function download(
  { files, local }: TransferEnds,
  { from, to }: { readonly from: FilePath; readonly to: string },
  options: DownloadOptions,
): Promise<Transferred> {
  const { onProgress, overwrite, mostBytes, mostEntries, ...rest } = options
  const receive = {
    ...(overwrite !== undefined && { overwrite }),
    ...(mostBytes !== undefined && { mostBytes }),
    ...(mostEntries !== undefined && { mostEntries }),
    ...(options.signal && { signal: options.signal }),
  }
  const moved = { bytes: 0 }
  const folder = await folderAt(files, from, rest)
  if (folder !== undefined) {
    const archive = await files.pack(folder, rest)
    return local.receiveFolder(to, counted(archive, { moved, totalBytes: undefined, onProgress }), receive)
  }
  const { entry, bytes } = await files.read(from, rest)
  return local.receiveFile(to, counted(bytes, { moved, totalBytes: entry.size, onProgress }), { ...receive, mode: entry.mode })
}

/** Under which path it is a folder; undefined when it is none. A link is what it leads to, as for a reader. */
async function folderAt(files: FileCalls, path: FilePath, options: FileOptions): Promise<FilePath | undefined> {
  const entry = await files.stat(path, options)
  if (entry === null)
    throw new SandboxError('not-found', `files.download ${typeof path === 'string' ? path : new TextDecoder().decode(path)}: there is no such file`)
  if (entry.type === 'folder') return path
  if (entry.type !== 'link') return undefined
  const inside = throughLink(path)
  const behind = await statOf(files.stat(inside, options))
  return behind?.type === 'folder' ? inside : undefined
}

function throughLink(path: FilePath): FilePath {
  return typeof path === 'string' ? `${path}/.` : Uint8Array.of(...path, 0x2f, 0x2e)
}

/** What is no folder has nothing inside. */
async function statOf(asking: Promise<Entry | null>): Promise<Entry | null> {
  try {
    return await asking
  } catch (error) {
    if (error instanceof SandboxError && error.code === 'conflict') return null
    throw error
  }
}

interface Counting {
  readonly moved: { bytes: number }
  readonly totalBytes: number | undefined
  readonly onProgress: UploadOptions['onProgress'] | undefined
}

async function* counted(pieces: AsyncIterable<Uint8Array>, { moved, totalBytes, onProgress }: Counting): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const piece of pieces) {
    moved.bytes += piece.length
    onProgress?.({ bytes: moved.bytes, totalBytes: totalBytes === undefined ? undefined : Math.max(totalBytes, moved.bytes) })
    yield piece
  }
}
