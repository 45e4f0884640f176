/** Tar archives as POSIX has them (pax): the same entries always make the same bytes. */

const blockBytes = 512
const mostName = 100
const mostSize = 0o77777777777
const mostId = 0o7777777

export type TarType = 'file' | 'folder' | 'link' | 'fifo' | 'same'

/** Text that is bytes has one character for each (Latin-1). */
export interface TarHeader {
  readonly path: string
  readonly type: TarType
  readonly mode: number
  readonly uid: number
  readonly gid: number
  /** Of the content that follows. */
  readonly size: number
  /** Seconds, with as many decimals as are known. */
  readonly mtime: string
  /** Of a link; of `same`, the path of the file that it is another name of. */
  readonly target: string
  /** Of a file without content: what was there is removed. Of a folder: what lies beneath it is not to be seen. */
  readonly mark?: 'removed' | 'hides'
}

const typeFlags: Readonly<Record<TarType, string>> = { file: '0', same: '1', link: '2', folder: '5', fifo: '6' }

/** The blocks before an entry's content. */
export function encodeTarHeader(header: TarHeader): Uint8Array {
  const path = header.type === 'folder' ? `${header.path}/` : header.path
  const records = paxRecords({ ...header, path })
  const own = block({ ...header, path: path.slice(0, mostName), target: header.target.slice(0, mostName) }, typeFlags[header.type])
  if (records === '') return own
  const bytes = Buffer.from(records, 'latin1')
  const extended = block({ path: 'PaxHeader', type: 'file', mode: 0o644, uid: 0, gid: 0, size: bytes.length, mtime: '0', target: '' }, 'x')
  return Buffer.concat([extended, bytes, tarPadding(bytes.length), own])
}

/** What fills the last block of a content of this size. */
export function tarPadding(size: number): Uint8Array {
  return new Uint8Array((blockBytes - (size % blockBytes)) % blockBytes)
}

export const endOfTar: Uint8Array = new Uint8Array(2 * blockBytes)

/** What the fields of a header have no room for. */
function paxRecords({ path, target, size, mtime, uid, gid, mark }: TarHeader): string {
  const values = [
    ...(path.length > mostName ? [['path', path]] : []),
    ...(target.length > mostName ? [['linkpath', target]] : []),
    ...(size > mostSize ? [['size', String(size)]] : []),
    ...(uid > mostId ? [['uid', String(uid)]] : []),
    ...(gid > mostId ? [['gid', String(gid)]] : []),
    ...(mark === undefined ? [] : [['GLOVEBOX.mark', mark]]),
    ...(/^\d{1,11}$/.test(mtime) && Number(mtime) <= mostSize ? [] : [['mtime', mtime]]),
  ] as [string, string][]
  if (values.length === 0) return ''
  const isText = values.every(([, value]) => isUtf8(value))
  return [...(isText ? [] : [['hdrcharset', 'BINARY'] as [string, string]]), ...values].map(([name, value]) => paxRecord(name, value)).join('')
}

function isUtf8(latin1: string): boolean {
  const bytes = Buffer.from(latin1, 'latin1')
  return Buffer.from(bytes.toString('utf8'), 'utf8').equals(bytes)
}

/** A record begins with its own length, which counts its digits too. */
function paxRecord(name: string, value: string): string {
  const rest = ` ${name}=${value}\n`
  let length = rest.length + 1
  while (String(length).length + rest.length !== length) length = String(length).length + rest.length
  return `${length}${rest}`
}

function block({ path, mode, uid, gid, size, mtime, target }: TarHeader, flag: string): Buffer {
  const bytes = Buffer.alloc(blockBytes)
  const seconds = Math.max(0, Math.floor(Number(mtime)))
  bytes.write(path, 0, mostName, 'latin1')
  bytes.write(octal(mode, 8), 100, 'latin1')
  bytes.write(octal(uid > mostId ? 0 : uid, 8), 108, 'latin1')
  bytes.write(octal(gid > mostId ? 0 : gid, 8), 116, 'latin1')
  bytes.write(octal(size > mostSize ? 0 : size, 12), 124, 'latin1')
  bytes.write(octal(seconds > mostSize ? 0 : seconds, 12), 136, 'latin1')
  bytes.write(' '.repeat(8), 148, 'latin1')
  bytes.write(flag, 156, 'latin1')
  bytes.write(target, 157, mostName, 'latin1')
  bytes.write('ustar\u000000', 257, 'latin1')
  const sum = bytes.reduce((total, byte) => total + byte, 0)
  bytes.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return bytes
}

function octal(value: number, width: number): string {
  return `${value.toString(8).padStart(width - 1, '0')}\0`
}
