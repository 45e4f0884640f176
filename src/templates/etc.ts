import { createHash, randomUUID } from 'node:crypto'
import { chmod, mkdir, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { copyPublic } from './copy-public.js'

export interface EtcOptions {
  /** The host's own /etc. */
  readonly source: string
  /** Where finished trees are kept. */
  readonly cache: string
  /** The guest's login shell. */
  readonly shell: string
}

/** Raised when what is written here changes, so that trees of an older kind are not taken for ours. */
const edition = '1'

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
function written(shell: string): Readonly<Record<string, string>> {
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
    'resolv.conf': '',
  }
}

/** The cell's /etc, built once and shared by every engine of this user; answers its folder. */
export async function buildEtc(options: EtcOptions): Promise<string> {
  const items = [...takenOver, ...(await javaFolders(options.source))]
  const finished = join(options.cache, await fingerprint(items, options))
  if (await exists(finished)) return finished
  const draft = join(options.cache, `new-${randomUUID()}`)
  try {
    await mkdir(draft, { recursive: true, mode: 0o755 })
    for (const item of items) await copyPublic({ from: join(options.source, item), to: join(draft, item), kept })
    for (const [name, text] of Object.entries(written(options.shell))) await writeFile(join(draft, name), text, { mode: 0o644 })
    await chmod(draft, 0o755)
    await rename(draft, finished)
  } catch (error) {
    await rm(draft, { recursive: true, force: true })
    // Another engine finished the same tree first.
    if (!(await exists(finished))) throw error
  }
  return finished
}

async function javaFolders(source: string): Promise<string[]> {
  const names = await readdir(source).catch(() => [])
  return names.filter((name) => /^java(-\d+-openjdk|-\d+)?$/.test(name)).sort()
}

/** Names a tree by all that goes into it: our own words, and when and as what each source was last changed. */
async function fingerprint(items: readonly string[], options: EtcOptions): Promise<string> {
  const hash = createHash('sha256').update(JSON.stringify([edition, options.source, written(options.shell)]))
  for (const item of items) {
    for (const path of await withFolders(join(options.source, item))) {
      const status = await stat(path).catch(() => undefined)
      hash.update(`${path}\0${status?.ino}\0${status?.size}\0${status?.mtimeMs}\0${status?.mode}\n`)
    }
  }
  return `etc-${hash.digest('hex').slice(0, 32)}`
}

/** A folder is known by itself and by the files and folders directly in it that package tools rewrite in place. */
async function withFolders(path: string): Promise<string[]> {
  const entries = await readdir(path, { withFileTypes: true }).catch(() => [])
  const rewritten = entries.filter((entry) => entry.isDirectory() || (entry.isFile() && basename(path) !== 'alternatives'))
  return [path, ...rewritten.map((entry) => join(path, entry.name)).sort()]
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined
}
