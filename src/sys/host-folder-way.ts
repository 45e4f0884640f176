/**
 * The way to where something is to be put, or is taken from. A guest that a folder on it is shared with may plant a link there, or swap a folder for one, at
 * any time: every part is opened by its name in the one before, which is held, and a link is followed only where no guest can have put it.
 */
import type { Stats } from 'node:fs'
import { resolve } from 'node:path'
import { SandboxError } from '../contract/errors.js'
import { printable } from '../contract/printable.js'
import { isHomeOf } from './home-folders.js'
import { HostFolder } from './host-folder-handle.js'

const mostLinks = 40
const writableByOthers = 0o022

/** For which it is walked, as errors tell it. */
type Call = 'upload' | 'download'

/** The last part of a path, in the folder that holds it. */
export interface LocalPlace extends AsyncDisposable {
  readonly folder: HostFolder
  readonly name: Buffer
}

/** Throws SandboxError('conflict') for a link on the way that anybody else may have planted. The last part is not looked at. */
export async function openPlace(path: string, call: Call): Promise<LocalPlace> {
  const names = resolve(path).split('/').filter(Boolean)
  const name = names.pop() ?? '.'
  const folder = await walkTo(names, { path, call })
  return { folder, name: Buffer.from(name), [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() }
}

async function walkTo(names: readonly string[], { path, call }: { readonly path: string; readonly call: Call }): Promise<HostFolder> {
  const left = [...names].reverse()
  let links = 0
  let folder = await HostFolder.root()
  try {
    let isRoots = await isOfRoot(folder)
    for (let name = left.pop(); name !== undefined; name = left.pop()) {
      const bytes = Buffer.from(name)
      const isLink = (await folder.look(bytes))?.isSymbolicLink() === true
      if (isLink) links += 1
      const target = isLink ? await trustedTarget({ folder, name: bytes, path, call, links, isRoots }) : undefined
      if (target !== undefined) left.push(...target.split('/').filter(Boolean).reverse())
      if (target !== undefined && !target.startsWith('/')) continue
      const outer = folder
      folder = target === undefined ? await outer.pass(bytes) : await HostFolder.root()
      await outer[Symbol.asyncDispose]()
      isRoots = (await isOfRoot(folder)) && (isRoots || target !== undefined)
    }
    return folder
  } catch (error) {
    await folder[Symbol.asyncDispose]()
    throw error
  }
}

async function isOfRoot(folder: HostFolder): Promise<boolean> {
  return (await folder.status()).uid === 0
}

interface LinkOnTheWay {
  readonly folder: HostFolder
  readonly name: Buffer
  readonly path: string
  readonly call: Call
  /** With this one. */
  readonly links: number
  /** The folder and all above it are root's. */
  readonly isRoots: boolean
}

async function trustedTarget({ folder, name, path, call, links, isRoots }: LinkOnTheWay): Promise<string> {
  const [above, link] = [await folder.status(), await folder.look(name)]
  const caller = process.geteuid?.() ?? -1
  const isTrusted = link !== undefined && isTrustedLink(link, { above, caller, isRoots, isHome: above.uid === caller && isHomeOf(caller, above) })
  if (isTrusted && links <= mostLinks) return (await folder.readLink(name)).toString()
  throw new SandboxError('conflict', `${call}: ${printable(name.toString())} on the way to ${printable(path)} is a link, which a guest may have planted`, {
    hint: `realpath -- '${printable(path)}'`,
  })
}

export interface LinkPlace {
  readonly above: Pick<Stats, 'uid' | 'mode'>
  readonly caller: number
  /** The folder and all above it are root's. */
  readonly isRoots: boolean
  /** The folder is the caller's home. */
  readonly isHome: boolean
}

/**
 * Root's links in folders of root's are the administrator's. The caller's own may be a guest's, which writes with the caller's id wherever a folder is shared
 * with it; but never a folder of root's, nor a home. In a folder that others may write, nothing is known of any: a sticky bit keeps them from moving a link
 * away, not from bringing one there, out of any folder that they may write in too, whosever link it is.
 */
export function isTrustedLink(link: Pick<Stats, 'uid'>, { above, caller, isRoots, isHome }: LinkPlace): boolean {
  const isClosed = (above.mode & writableByOthers) === 0
  const isAdministrators = above.uid === 0 && link.uid === 0
  const isOwn = link.uid === caller && (isRoots || isHome)
  return isClosed && (isAdministrators || isOwn)
}
