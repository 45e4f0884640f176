/** From packages to a root: unpacked, without what nobody reads in a cell, and with what Debian's scripts would have made, made here. */
import { existsSync } from 'node:fs'
import { lstat, mkdir, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { BuildEvent, Recipe } from '../contract/templates.js'
import { unpackPackage } from '../sys/unpack-package.js'
import type { VerifiedPackage } from './build-packages.js'
import { writtenEtc } from './etc.js'

export interface TreeOrder {
  readonly recipe: Recipe
  readonly packages: readonly VerifiedPackage[]
  /** Empty. */
  readonly root: string
  readonly signal: AbortSignal | undefined
  readonly tell: (event: BuildEvent) => void
}

/** Manuals, translations and what checks packages; of the documents only who owns what is in it. */
const leftOut = [
  './usr/share/doc/*/[!c]*',
  './usr/share/doc/*/c[!o]*',
  './usr/share/doc-base/*',
  './usr/share/info/*',
  './usr/share/lintian/*',
  './usr/share/locale/*',
  './usr/share/man/*',
  './usr/share/bug/*',
  './usr/share/bash-completion/*',
  './usr/share/menu/*',
  './usr/share/applications/*',
  './usr/lib/systemd/*',
  './usr/lib/python3/dist-packages/*/tests',
]

/** The folders of Debian's root that are links into /usr. */
export const mergedNames = ['bin', 'sbin', 'lib', 'lib64', 'lib32', 'libx32']
/** What a cell is shown; all else is the cell's own. */
const shown = ['usr', 'etc', 'opt']
const atOnce = 2

export async function makeTree(order: TreeOrder): Promise<void> {
  const { root, recipe, tell } = order
  for (const name of mergedNames) {
    await mkdir(join(root, 'usr', name), { recursive: true })
    await symlink(`usr/${name}`, join(root, name))
  }
  tell({ type: 'phase', phase: 'unpacking' })
  await unpackAll(order)
  for (const name of await readdir(root)) if (!shown.includes(name)) await rm(join(root, name), { recursive: true, force: true })
  for (const name of mergedNames) if ((await readdir(join(root, 'usr', name))).length === 0) await rm(join(root, 'usr', name), { recursive: true })
  for (const name of shown) if (existsSync(join(root, name)) && (await readdir(join(root, name))).length === 0) await rm(join(root, name), { recursive: true })
  await makeLinks(root, recipe)
  await makeEtc(root)
  await makeCertificates(root)
}

async function unpackAll({ packages, root, signal, tell }: TreeOrder): Promise<void> {
  const waiting = [...packages]
  const failed = new AbortController()
  const either = AbortSignal.any([failed.signal, ...(signal ? [signal] : [])])
  const unpackSome = async (): Promise<void> => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      await unpackPackage({ file: next.file, into: root, leftOut, signal: either })
      tell({ type: 'progress', phase: 'unpacking', fraction: (packages.length - waiting.length) / packages.length, detail: next.name })
    }
  }
  const ends = await Promise.allSettled(
    Array.from({ length: atOnce }, () =>
      unpackSome().catch((error: unknown) => {
        failed.abort(error)
        throw error
      }),
    ),
  )
  signal?.throwIfAborted()
  if (failed.signal.aborted) throw failed.signal.reason
  for (const end of ends) if (end.status === 'rejected') throw end.reason
}

/** One that a package brings itself stays. */
async function makeLinks(root: string, recipe: Recipe): Promise<void> {
  const triplet = await tripletOf(root)
  for (const { path, target } of recipe.links) {
    const place = join(root, path.replace('@triplet@', triplet))
    if ((await lstat(place).catch(() => undefined)) !== undefined) continue
    if (!existsSync(join(dirname(place), target.replace('@triplet@', triplet)))) continue
    await symlink(target.replace('@triplet@', triplet), place)
  }
}

/** Such as `x86_64-linux-gnu`. */
async function tripletOf(root: string): Promise<string> {
  const names = await readdir(join(root, 'usr', 'lib')).catch(() => [])
  return names.find((name) => /^[a-z0-9_]+-linux-gnu[a-z0-9]*$/.test(name)) ?? 'none'
}

/** Nothing in it tells of the machine on which it was built. */
async function makeEtc(root: string): Promise<void> {
  const etc = join(root, 'etc')
  await mkdir(etc, { recursive: true })
  const shell = shellOf(root)
  for (const [name, text] of Object.entries(writtenEtc(shell))) await replace(join(etc, name), text)
  await replace(join(etc, 'timezone'), 'Etc/UTC\n')
  await rm(join(etc, 'localtime'), { force: true })
  await symlink('/usr/share/zoneinfo/Etc/UTC', join(etc, 'localtime'))
  await rm(join(etc, 'mtab'), { force: true })
  await symlink('/proc/self/mounts', join(etc, 'mtab'))
}

export function shellOf(root: string): string {
  return existsSync(join(root, 'usr/bin/bash')) ? '/bin/bash' : '/bin/sh'
}

async function replace(path: string, text: string): Promise<void> {
  const draft = `${path}.new`
  await writeFile(draft, text)
  await rename(draft, path)
}

/** One file with all that Mozilla trusts, where each library looks for it. */
async function makeCertificates(root: string): Promise<void> {
  const folder = join(root, 'usr/share/ca-certificates/mozilla')
  const names = (await readdir(folder).catch(() => [])).filter((name) => name.endsWith('.crt')).sort()
  if (names.length === 0) return
  const texts = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')))
  await mkdir(join(root, 'etc/ssl/certs'), { recursive: true })
  await writeFile(join(root, 'etc/ssl/certs/ca-certificates.crt'), texts.map((text) => `${text.trimEnd()}\n`).join(''))
  const link = join(root, 'usr/lib/ssl/cert.pem')
  await mkdir(dirname(link), { recursive: true })
  if ((await lstat(link).catch(() => undefined)) === undefined) await symlink('/etc/ssl/certs/ca-certificates.crt', link)
}
