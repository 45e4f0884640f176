import { readFileSync } from 'node:fs'
import { SandboxError } from '../contract/errors.js'

/** Whether the cell has ids of its own, so that anyone's files can be given to its user, or only the one of whoever calls. */
export type SourceIds = 'range' | 'single'

/** Whose a source is. */
export interface SourceOwner {
  readonly uid: number
  readonly gid: number
}

/** The texts of passwd(5) and group(5). */
export interface Accounts {
  readonly passwd: string
  readonly group: string
}

export function readAccounts(): Accounts {
  return { passwd: contentOf('/etc/passwd'), group: contentOf('/etc/group') }
}

/**
 * The group that a guest may have along with the owner: what it writes there can be made set-group-id, so it must be nothing that the owner does not have
 * by being the owner. Undefined for the owner whose group would be root's, or is not known.
 */
export function ownGroupOf(uid: number, { passwd, group }: Accounts): number | undefined {
  const accounts = rowsOf(passwd)
  const account = accounts.find(([, , id]) => id === `${uid}`)
  // By custom the number of one that has no account is that of its group too, as long as it is no group of others.
  const isTaken = accounts.some(([, , , primary]) => primary === `${uid}`) || rowsOf(group).some(([, , id]) => id === `${uid}`)
  const own = account === undefined ? (isTaken ? 0 : uid) : Number(account[3] || '0')
  return Number.isSafeInteger(own) && own > 0 ? own : undefined
}

interface OwnerCheck {
  readonly source: SourceOwner & { readonly path: string; readonly isFolder: boolean }
  readonly field: string
  readonly ids: SourceIds
  readonly accounts?: Accounts
}

/** In the cell the owner is its user. Root's files would make the cell's user as good as root wherever the host trusts what it finds there. */
export function checkOwner({ source: { path, uid, gid, isFolder }, field, ids, accounts = readAccounts() }: OwnerCheck): void {
  const caller = process.getuid?.() ?? -1
  const copy = `cp ${isFolder ? '-r' : ''} ${path} ./copy`.replace('  ', ' ')
  const wayOn = caller === 0 ? `${copy} && chown -R 1000:1000 ./copy` : copy
  const refuse = (why: string, hint = wayOn): SandboxError =>
    new SandboxError('unsupported', `${field}: ${path} cannot be mounted read-write: ${why}`, { hint })
  if (uid === 0) throw refuse('it belongs to root, and the cell’s user would write files of root’s')
  if (ids === 'single' && uid !== caller) throw refuse(`it belongs to uid ${uid}, and without root only files of uid ${caller} can be given to the cell’s user`)
  const own = ownGroupOf(uid, accounts)
  if (ids === 'single' || gid === own) return
  const why = `its group is gid ${gid}, which is not uid ${uid}’s own, and the cell’s user could leave set-group-id programs of that group there`
  throw refuse(why, own === undefined ? wayOn : `chgrp ${own} ${path}`)
}

/**
 * What is written over a source never reaches it, so it may be anyone's that the cell's user can be made the owner of; of others a guest could change
 * nothing, and would be told so file by file.
 */
export function checkOverlaid({ source: { path, uid, gid, isFolder }, field, ids }: OwnerCheck): void {
  const refuse = (why: string, hint: string): SandboxError => new SandboxError('unsupported', `${field}: ${path} cannot be overlaid: ${why}`, { hint })
  if (!isFolder) throw refuse('it is no folder', `ls -ld ${path}`)
  if (ids === 'range') return
  const [ownUid, ownGid] = [process.getuid?.() ?? -1, process.getgid?.() ?? -1]
  const copy = `cp -r ${path} ./copy`
  if (uid !== ownUid) throw refuse(`it belongs to uid ${uid}, and without root only files of uid ${ownUid} can be given to the cell’s user`, copy)
  if (gid !== ownGid)
    throw refuse(`its group is gid ${gid}, and without root only files of gid ${ownGid} can be given to the cell’s user`, `chgrp -R ${ownGid} ${path}`)
}

function rowsOf(text: string): string[][] {
  return text.split('\n').map((line) => line.split(':'))
}

export function contentOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
