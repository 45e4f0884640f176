/** Files of a sandbox. They are handled inside the cell, with the rights of the user named: the host opens nothing that a guest chose. */
import type { CallOptions } from './platform.js'
import type { UserName } from './spec.js'

/** Text is taken as UTF-8; a name that is none can be given as bytes. Relative to the sandbox's working folder; `~` and `~/…` are the user's home. */
export type FilePath = string | Uint8Array

export type EntryType = 'file' | 'folder' | 'link' | 'fifo' | 'socket' | 'device'

/** One thing in a folder, or a folder itself. */
export interface Entry {
  /** The last part of its path; what is not UTF-8 is replaced by U+FFFD. */
  readonly name: string
  /** Absolute, as the cell sees it. */
  readonly path: string
  /** Set exactly when the path is not UTF-8, so that it can still be named. */
  readonly pathBytes?: Uint8Array
  readonly type: EntryType
  readonly size: number
  /** The permission bits, set-id and sticky bits included: 0o644. */
  readonly mode: number
  /** `user`, `root`, or the number of an id without a name. */
  readonly owner: string
  readonly group: string
  readonly modifiedAt: Date
  readonly accessedAt: Date
  readonly changedAt: Date
  /** Of a link, as it is written there. */
  readonly target?: string
}

export interface FileOptions extends CallOptions {
  /** Whose rights it is done with, and who owns what is made; the sandbox's own user when not given. */
  readonly user?: UserName
}

export interface ReadOptions extends FileOptions {
  /** In bytes from the beginning. */
  readonly offset?: number
  /** At most so many bytes. */
  readonly length?: number
}

export interface WriteOptions extends FileOptions {
  /** Permission bits of a file that is made; 0o644 when not given. Of one that is there they are changed only when given. */
  readonly mode?: number
  /** At the end of what is there, instead of in its place. */
  readonly append?: boolean
  /** Others see the old content or all of the new; also after a failure. */
  readonly atomic?: boolean
  /** Refuse a file that is there. */
  readonly exclusive?: boolean
}

export interface ListOptions extends FileOptions {
  /** 1 (the default) is the folder's own entries; Infinity all beneath. Links to folders are not entered. */
  readonly depth?: number
  /** `*.ts`, `src/**`: matched against the path below the folder. */
  readonly glob?: string
  /** With names that begin with a dot; true unless given. */
  readonly hidden?: boolean
}

export interface CopyOptions extends FileOptions {
  /** Refuse what is there instead of replacing it. */
  readonly exclusive?: boolean
}

export interface RemoveOptions extends FileOptions {
  /** A folder with all in it. Without it only an empty one. */
  readonly recursive?: boolean
}

export interface WatchOptions extends FileOptions {
  /** Also everything beneath, folders that are made later included. */
  readonly recursive?: boolean
}

export type FileEvent =
  | { readonly type: 'created' | 'changed' | 'removed'; readonly path: string }
  | { readonly type: 'renamed'; readonly path: string; readonly to: string }
  /** Events were lost: whoever keeps a picture of the folder lists it again. With `why`, once: of some folders nothing will be told later either. */
  | { readonly type: 'overflow'; readonly why?: string }

export interface SearchOptions extends FileOptions {
  /**
   * What is looked for is a literal text, or a POSIX extended regular expression when this is set; `\d \w \s \b`, `(?:` and lazy quantifiers are understood,
   * what else other dialects have is refused. It is matched byte by byte.
   */
  readonly regex?: boolean
  readonly ignoreCase?: boolean
  /** Which files, as in `list`. */
  readonly glob?: string
  readonly hidden?: boolean
  /** At most so many matches; 1000 when not given. */
  readonly limit?: number
}

export interface SearchMatch {
  readonly path: string
  /** Set exactly when the path is not UTF-8. */
  readonly pathBytes?: Uint8Array
  /** From 1. */
  readonly line: number
  /** In bytes, from 1. */
  readonly column: number
  /** The line, cut to 1000 bytes around the match. */
  readonly text: string
}

export interface SearchResult {
  readonly matches: readonly SearchMatch[]
  /** More was there than was asked for, or than a search may read. */
  readonly truncated: boolean
  /** How many files were not read, or not wholly: not allowed, binary, too large, or with a line over 1 MiB where an expression was looked for. */
  readonly skipped: number
}

export interface FileUrlOptions extends CallOptions {
  /** What may be done with it: `GET` reads, which is what it is when not given, `PUT` writes. */
  readonly method?: 'GET' | 'PUT'
  /** An hour when not given. */
  readonly expires?: number | string
}

export interface OpenFile {
  readonly entry: Entry
  /** Read by one consumer; not reading it holds the cell back. Leaving early ends the reading. */
  readonly bytes: AsyncIterable<Uint8Array>
}

/** The files of one sandbox; a path that is missing is `not-found` unless said otherwise. */
export interface FileCalls {
  /** Refuses what is no file: a folder, a FIFO, a device. */
  read(path: FilePath, options?: ReadOptions): Promise<OpenFile>
  /** Folders above are made. Resolves to the file as it is then. */
  write(path: FilePath, content: AsyncIterable<Uint8Array>, options?: WriteOptions): Promise<Entry>
  list(path: FilePath, options?: ListOptions): AsyncIterable<Entry>
  /** Of a link itself. Null when there is nothing. */
  stat(path: FilePath, options?: FileOptions): Promise<Entry | null>
  /** With the folders above; one that is there is quiet. */
  mkdir(path: FilePath, options?: FileOptions & { readonly mode?: number }): Promise<Entry>
  /** Also between file systems. Replaces a file that is there, unless `exclusive`. */
  move(from: FilePath, to: FilePath, options?: CopyOptions): Promise<Entry>
  /** A folder with all in it; links are copied as links. */
  copy(from: FilePath, to: FilePath, options?: CopyOptions): Promise<Entry>
  /** False when there was nothing. */
  remove(path: FilePath, options?: RemoveOptions): Promise<boolean>
  symlink(target: FilePath, path: FilePath, options?: FileOptions): Promise<Entry>
  chmod(path: FilePath, mode: number, options?: FileOptions): Promise<Entry>
  /** Watching has begun when this resolves. Leaving the iteration ends it. */
  watch(path: FilePath, options?: WatchOptions): Promise<AsyncIterable<FileEvent>>
  search(path: FilePath, pattern: string, options?: SearchOptions): Promise<SearchResult>
  /** A folder as a tar archive (pax). */
  pack(path: FilePath, options?: FileOptions): Promise<AsyncIterable<Uint8Array>>
  /** A tar archive into a folder, which is made. What would land outside, devices and set-id bits are refused. Resolves to how many entries there were. */
  unpack(path: FilePath, archive: AsyncIterable<Uint8Array>, options?: FileOptions): Promise<number>
  /** An address of one file that needs no key until it expires; only of platforms that are reached over HTTP. */
  url?(path: FilePath, options?: FileUrlOptions): Promise<string>
}

/** As a platform offers them. Whether there is such a sandbox is told by the calls. */
export interface PlatformFiles {
  of(id: string): FileCalls
}
