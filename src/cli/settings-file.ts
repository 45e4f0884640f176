/** A settings file of another program: read, changed in one step, with the old one kept beside it. */
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  copyFileSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { draftIn } from '../compose.js'
import { SandboxError } from '../contract/errors.js'
import { textOf } from '../contract/path-text.js'

const mostBytes = 16 * 2 ** 20

export interface SettingsFile {
  /** Links followed. */
  readonly path: string
  readonly text: string
  readonly status: Stats | undefined
}

export function readSettings(path: string): SettingsFile {
  const target = followed(path)
  const status = lstatSync(target, { throwIfNoEntry: false })
  if (status === undefined) return { path: target, text: '', status }
  if (!status.isFile()) throw new SandboxError('conflict', `${target} is there already and is no file`)
  if (status.size > mostBytes) throw new SandboxError('conflict', `${target} has ${status.size} bytes; settings have at most ${mostBytes}`)
  const text = textOf(readFileSync(target))
  if (text === undefined) throw new SandboxError('conflict', `${target} is no UTF-8 text, so it is left as it is`)
  return { path: target, text, status }
}

function followed(path: string): string {
  try {
    return realpathSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    if (lstatSync(path, { throwIfNoEntry: false })) throw new SandboxError('conflict', `${path} is a link that leads nowhere`)
    return path
  }
}

/** Resolves to where the old content is kept; undefined when there was none. */
export function replaceSettings({ path, status }: SettingsFile, text: string): string | undefined {
  const folder = dirname(path)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const draft = draftIn(folder)
  const descriptor = openSync(draft, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600)
  try {
    writeFileSync(descriptor, text)
    fsyncSync(descriptor)
    if (status) keepRights(draft, status)
    const kept = status && keepOld(path, status)
    if (isChanged(path, status)) throw new SandboxError('conflict', `${path} was changed by somebody else just now; try again`)
    renameSync(draft, path)
    return kept
  } finally {
    closeSync(descriptor)
    rmSync(draft, { force: true })
  }
}

function keepRights(path: string, { mode, uid, gid }: Stats): void {
  try {
    chownSync(path, uid, gid)
  } catch {
    // Only root may give a file away; then it belongs to whoever writes it.
  }
  chmodSync(path, mode & 0o7777)
}

function keepOld(path: string, status: Stats): string {
  const kept = join(dirname(path), `${basename(path)}.before-glovebox`)
  const draft = draftIn(dirname(path))
  copyFileSync(path, draft, constants.COPYFILE_EXCL)
  keepRights(draft, status)
  renameSync(draft, kept)
  return kept
}

function isChanged(path: string, before: Stats | undefined): boolean {
  const now = lstatSync(path, { throwIfNoEntry: false })
  return now?.ino !== before?.ino || now?.mtimeMs !== before?.mtimeMs || now?.size !== before?.size
}
