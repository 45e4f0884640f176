/** What a kernel says of a path in a cell, as an error of ours: which call, which path, and why. */
import { type ErrorCode, SandboxError } from '../contract/errors.js'
import type { FilePath } from '../contract/files.js'
import type { Limits } from '../contract/limits.js'
import { bytesInUnits } from '../contract/quantities.js'
import { describePath } from '../policy/file-path.js'
import { printable } from '../policy/refusal.js'
import { errno } from './errno.js'
import { decode } from './file-entry.js'

export interface FileCall {
  /** `files.write` */
  readonly name: string
  readonly path: FilePath
  /** Of a move, a copy or a link. */
  readonly to?: FilePath
}

const words: Readonly<Record<number, readonly [code: ErrorCode, words: string]>> = {
  [errno.ENOENT]: ['not-found', 'there is no such file or folder'],
  [errno.ENOTDIR]: ['conflict', 'it, or something on the way to it, is no folder'],
  [errno.EISDIR]: ['conflict', 'it is a folder'],
  [errno.EEXIST]: ['conflict', 'it is there already'],
  [errno.ENOTEMPTY]: ['conflict', 'the folder is not empty'],
  [errno.ELOOP]: ['conflict', 'the path goes through too many symbolic links, or around in a circle'],
  [errno.EINVAL]: ['invalid', 'this cannot be done with it'],
  [errno.EBADMSG]: ['invalid', 'the archive cannot be read'],
  [errno.ETXTBSY]: ['conflict', 'it is a program that is running'],
  [errno.EBUSY]: ['conflict', 'it is in use'],
  [errno.ENXIO]: ['conflict', 'it is no file'],
  [errno.ENODEV]: ['conflict', 'it is no file'],
  [errno.EACCES]: ['denied', 'this user may not'],
  [errno.EPERM]: ['denied', 'this is not allowed'],
  [errno.EROFS]: ['denied', 'it is read-only there'],
  [errno.EMFILE]: ['busy', 'no more files can be open at once'],
  [errno.ENFILE]: ['busy', 'no more files can be open at once'],
  [errno.ENOMEM]: ['busy', 'there is no memory left for it'],
  [errno.EAGAIN]: ['busy', 'it cannot be done right now'],
  [errno.EMLINK]: ['conflict', 'it has too many links already'],
}

/** A kernel keeps count of the watches of each user. A worker whose descriptors were taken was replaced before this is told. */
const watchWords: Readonly<Record<number, readonly [why: string, hint: string]>> = {
  [errno.EMFILE]: ['its user has as many watches as the kernel allows (fs.inotify.max_user_instances)', 'sysctl fs.inotify.max_user_instances'],
  [errno.ENOSPC]: ['its user watches as many folders as the kernel allows (fs.inotify.max_user_watches)', 'sysctl fs.inotify.max_user_watches'],
}

const mostNameBytes = 255

/** An ERROR of the file worker's. */
export interface WorkerReport {
  readonly errno: number
  /** What the worker did, and to what. */
  readonly text: string
}

export function fileError(call: FileCall, report: WorkerReport, limits: Limits): SandboxError {
  const watch = call.name === 'files.watch' ? watchWords[report.errno] : undefined
  if (watch) return new SandboxError('busy', `${describeCall(call)}: ${watch[0]}`, { hint: watch[1] })
  const [code, why] = reasonOf(call, report, limits)
  const more = detailOf(call, report.text)
  const isTold = more === undefined || code === 'not-found' || code === 'full' || why.includes(more) || more === 'is mounted'
  return new SandboxError(code, `${describeCall(call)}: ${why}${isTold ? '' : ` (${more})`}`)
}

/** What the worker says beyond the call: what the thing is, or which other one was in the way. */
function detailOf({ path, to }: FileCall, text: string): string | undefined {
  const known = [path, ...(to === undefined ? [] : [to])].map((each) => (typeof each === 'string' ? each : decode(each)))
  const rest = known.reduce(withoutPath, text).replace(/[\s:]+$/, '')
  return /\s/.test(rest) ? printable(rest) : undefined
}

/** Only where it is all of a path: others begin with it, and all of them with the root. */
function withoutPath(text: string, path: string): string {
  const literal = path.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  return text.replace(new RegExp(`(?<=^|\\s)${literal}(?=$|[\\s:])`), '')
}

export function describeCall({ name, path, to }: FileCall): string {
  return `${name} ${describePath(path)}${to === undefined ? '' : ` to ${describePath(to)}`}`
}

function reasonOf(call: FileCall, { errno: number, text }: WorkerReport, limits: Limits): readonly [ErrorCode, string] {
  if (number === errno.ENOSPC || number === errno.EDQUOT) return ['full', noRoom(text, limits)]
  if (number === errno.EFBIG) return ['full', `no file may be that large (limits.fileSize is ${inUnits(limits.fileSizeBytes)})`]
  if (number === errno.ENAMETOOLONG) return ['invalid', tooLong(call)]
  if (number === errno.EBUSY && text.startsWith('is mounted: ')) return ['conflict', 'it is a folder the sandbox is made of; what is in it can be removed']
  return words[number] ?? ['conflict', `errno ${number}`]
}

/** The worker knows which it was, where its file system counts both. */
function noRoom(text: string, { diskBytes, inodes }: Limits): string {
  if (text.endsWith(': no inodes are left')) return `there is no room for one file more (limits.inodes is ${inodes})`
  if (text.endsWith(': no bytes are left')) return `there is no room left (limits.disk is ${inUnits(diskBytes)})`
  return `there is no room left (limits.disk is ${inUnits(diskBytes)}, limits.inodes ${inodes})`
}

function tooLong({ path, to }: FileCall): string {
  const names = [path, to ?? ''].flatMap((each) => (typeof each === 'string' ? each : Buffer.from(each).toString('latin1')).split('/'))
  if (names.some((name) => name.length > mostNameBytes)) return `a name in the path is longer than ${mostNameBytes} bytes`
  return `something in it lies too deep: a path may have 4095 bytes, and what is listed 16384 below its folder`
}

function inUnits(bytes: number): string {
  return bytesInUnits(bytes, Math.round)
}
