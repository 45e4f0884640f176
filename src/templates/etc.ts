import { createHash, randomUUID } from 'node:crypto'
import { type Dirent, readdirSync, readFileSync, type Stats, statSync } from 'node:fs'
import { chmod, mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { SandboxError } from '../contract/errors.js'
import { storageRefusal } from '../policy/storage.js'
import { currentOwner, ownerName } from '../sys/owner.js'
import { copyPublic } from './copy-public.js'
import { isAsRecorded, recordTree } from './tree-record.js'

export interface EtcOptions {
  /** The host's own /etc. */
  readonly source: string
  /** Where finished trees are kept. */
  readonly cache: string
  /** The guest's login shell. */
  readonly shell: string
}

/** Raised when what is written here changes, so that trees of an older kind are not taken for ours. */
const edition = '2'

const treeName = 'etc'
const recordName = 'record.json'

const mostAttempts = 5
const takenCodes = ['ENOTEMPTY', 'EEXIST', 'ENOTDIR']

/** Taken over from the host where they exist: what programs need to link, to trust, to tell time and to draw letters. */
const takenOver = [
  'alternatives',
  'ca-certificates',
  'crypto-policies',
  'fonts',
  'ld.so.cache',
  'ld.so.conf',
  'ld.so.conf.d',
  'localtime',
  // Debian keeps it here, and without it matplotlib does not start.
  'matplotlibrc',
  'mime.types',
  'os-release',
  'pki/ca-trust/extracted',
  'pki/tls/cert.pem',
  'pki/tls/certs',
  'pki/tls/openssl.cnf',
  'protocols',
  'services',
  'shells',
  'ssl/certs',
  'ssl/openssl.cnf',
  'timezone',
]

/** Links into these lead to the same thing in the cell, which has the host's /usr. */
const kept = ['/usr', '/bin', '/sbin', '/lib', '/lib64', '/lib32', '/libx32', '/proc']

/** Ours, whatever the host says: nothing in the cell should learn who lives on this machine. */
export function writtenEtc(shell: string): Readonly<Record<string, string>> {
  return {
    passwd: [
      'root:x:0:0:root:/root:/bin/sh',
      `user:x:1000:1000:user:/home/user:${shell}`,
      'warden:x:65532:65532:warden:/:/usr/sbin/nologin',
      'nobody:x:65534:65534:nobody:/:/usr/sbin/nologin',
      '',
    ].join('\n'),
    group: ['root:x:0:', 'tty:x:5:', 'user:x:1000:', 'warden:x:65532:', 'nogroup:x:65534:', ''].join('\n'),
    hosts: '127.0.0.1 localhost glovebox\n::1 localhost ip6-localhost ip6-loopback\n',
    hostname: 'glovebox\n',
    'host.conf': 'multi on\n',
    'machine-id': '',
    'nsswitch.conf': 'passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nnetworks: files\nprotocols: files\nservices: files\n',
    // Where the way out answers for names. Without one nobody does, as with an empty file: then resolvers ask the same address, or none.
    'resolv.conf': 'nameserver 127.0.0.1\n',
  }
}

/**
 * The cell's /etc, built once and shared by every engine of this user; answers its folder. A tree that is not as it was left is built again.
 *
 * A finished tree is in a folder of its own beside the record of it, which is written last; the two appear together by one renaming.
 */
export async function buildEtc(options: EtcOptions): Promise<string> {
  const items = [...takenOver, ...javaFolders(options.source)]
  const finished = join(options.cache, fingerprint(items, options))
  if (!isIntact(finished)) {
    const draft = join(options.cache, `new-${ownerName(currentOwner())}-${randomUUID()}`)
    try {
      await buildTree(draft, items, options)
      await replace(finished, draft)
    } catch (error) {
      throw storageRefusal(error, options.cache)
    } finally {
      await rm(draft, { recursive: true, force: true })
    }
  }
  return join(finished, treeName)
}

async function buildTree(draft: string, items: readonly string[], options: EtcOptions): Promise<void> {
  const tree = join(draft, treeName)
  await mkdir(tree, { recursive: true, mode: 0o755 })
  for (const item of items) await copyPublic({ from: join(options.source, item), to: join(tree, item), kept })
  for (const [name, text] of Object.entries(writtenEtc(options.shell))) await writeFile(join(tree, name), text, { mode: 0o644 })
  await chmod(draft, 0o755)
  await chmod(tree, 0o755)
  await writeFile(join(draft, recordName), recordTree(tree), { mode: 0o644 })
}

/** Puts a draft where nothing intact is. Another engine that was faster made the same, so its tree stays: cells may have been built of it. */
async function replace(finished: string, draft: string): Promise<void> {
  for (let attempt = 0; attempt < mostAttempts; attempt += 1) {
    if ((await moveToFree(draft, finished)) || isIntact(finished)) return
    const removed = `${draft}-removed`
    await rename(finished, removed).catch(unlessCode('ENOENT'))
    // What was damaged a moment ago may have been another engine's new tree when it was taken away.
    if (isIntact(removed) && (await moveToFree(removed, finished))) return
    await rm(removed, { recursive: true, force: true })
  }
  throw new SandboxError('unavailable', `${finished}: is changed again and again by someone else`, { hint: `ls -la ${dirname(finished)}` })
}

/** False when there is something already. */
async function moveToFree(from: string, to: string): Promise<boolean> {
  try {
    await rename(from, to)
    return true
  } catch (error) {
    if (!takenCodes.includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    return false
  }
}

/** Looked at one after the other, here and below: the kernel answers sooner than other threads could be asked. */
function isIntact(finished: string): boolean {
  try {
    return isAsRecorded(join(finished, treeName), readFileSync(join(finished, recordName), 'utf8'))
  } catch {
    return false
  }
}

function unlessCode(code: string): (error: NodeJS.ErrnoException) => void {
  return (error) => {
    if (error.code !== code) throw error
  }
}

function javaFolders(source: string): string[] {
  const names = entriesIn(source).map(({ name }) => name)
  return names.filter((name) => /^java(-\d+-openjdk|-\d+)?$/.test(name)).sort()
}

/** Names a tree by all that goes into it: our own words, and when and as what each source was last changed. */
function fingerprint(items: readonly string[], options: EtcOptions): string {
  const hash = createHash('sha256').update(JSON.stringify([edition, options.source, writtenEtc(options.shell)]))
  for (const item of items) {
    for (const path of withFolders(join(options.source, item))) {
      const status = statusOf(path)
      hash.update(`${path}\0${status?.ino}\0${status?.size}\0${status?.mtimeMs}\0${status?.mode}\n`)
    }
  }
  return `etc-${hash.digest('hex').slice(0, 32)}`
}

/** A folder is known by itself and by the files and folders directly in it that package tools rewrite in place. */
function withFolders(path: string): string[] {
  const rewritten = entriesIn(path).filter((entry) => entry.isDirectory() || (entry.isFile() && basename(path) !== 'alternatives'))
  return [path, ...rewritten.map((entry) => join(path, entry.name)).sort()]
}

/** None of what is no folder. */
function entriesIn(folder: string): Dirent[] {
  try {
    // An error that is thrown costs more than a look.
    return !statusOf(folder)?.isDirectory() ? [] : readdirSync(folder, { withFileTypes: true })
  } catch {
    return []
  }
}

function statusOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch {
    return undefined
  }
}
