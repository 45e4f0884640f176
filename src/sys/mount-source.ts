import {
  accessSync,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  type Stats,
  statfsSync,
  statSync,
} from 'node:fs'
import { SandboxError } from '../contract/errors.js'
import type { Mount } from '../contract/spec.js'
import { homeFolders } from './home-folders.js'
import { type Accounts, checkOverlaid, checkOwner, contentOf, ownGroupOf, readAccounts, type SourceIds } from './mount-source-owner.js'
import {
  type ForbiddenTree,
  forbiddenAtTop,
  forbiddenInHome,
  forbiddenTrees,
  isBelow,
  kernelFilesystems,
  type SourceFacts,
  sourceRefusal,
} from './mount-source-rules.js'
import { ownPlaces } from './places.js'
import { parseMountTable } from './posture/mount-table.js'

/** A folder or file of the host's that was checked while it was held open; whatever its path leads to later, this is what is mounted. */
export interface MountSource {
  readonly descriptor: number
  /** Without links. */
  readonly path: string
  readonly isFolder: boolean
  readonly uid: number
  readonly gid: number
  /** Whether that group is the owner's own, and so the cell's user may have it too. */
  readonly isOwnGroup: boolean
}

export interface MountSources {
  /** In the order of the mounts. */
  readonly list: readonly MountSource[]
  close(): void
}

/** Node does not name it; the same on every architecture that there are cells for. */
const openPath = 0o10000000

/** The same mounts with every link followed. Throws SandboxError('invalid') naming the one that would hand over what no cell may have. */
// eslint-disable-next-line @typescript-eslint/require-await -- whoever asks need not know that this machine answers at once
export async function resolveMounts(mounts: readonly Mount[]): Promise<readonly Mount[]> {
  const sources = openAll(mounts)
  sources.close()
  return mounts.map((mount, index) => ({ ...mount, source: (sources.list[index] as MountSource).path }))
}

/**
 * Opens the resolved sources and checks them again, this time for good. `besides` are further trees that no cell may have. Throws SandboxError naming the mount's field;
 * then none is left open.
 */
export function openMountSources(mounts: readonly Mount[], ids: SourceIds, besides: readonly ForbiddenTree[] = []): MountSources {
  const sources = openAll(mounts, besides)
  try {
    mounts.forEach((mount, index) => {
      const source = sources.list[index] as MountSource
      if (source.path !== mount.source) {
        throw new SandboxError('invalid', `mounts[${index}].source: ${mount.source} leads to ${source.path} by now`, { hint: `ls -ld ${mount.source}` })
      }
      if (mount.mode === 'rw') checkOwner({ source, field: `mounts[${index}].mode`, ids })
      if (mount.mode === 'overlay') checkOverlaid({ source, field: `mounts[${index}].mode`, ids })
      checkNesting({ mounts, list: sources.list, index })
    })
    if (ids === 'single' && mounts.length > 0) checkMountsBelow(sources.list)
    return sources
  } catch (error) {
    sources.close()
    throw error
  }
}

function openAll(mounts: readonly Mount[], besides: readonly ForbiddenTree[] = []): MountSources {
  const opened: number[] = []
  const close = (): void => opened.splice(0).forEach((descriptor) => closeSync(descriptor))
  try {
    const surroundings = mounts.length === 0 ? noSurroundings : { ...readSurroundings(), besides }
    return { list: mounts.map((mount, index) => openSource({ mount, field: `mounts[${index}].source`, opened, surroundings })), close }
  } catch (error) {
    close()
    throw error
  }
}

type Surroundings = Omit<SourceFacts, 'path'> & { readonly accounts: Accounts }

const noSurroundings: Surroundings = { homes: [], ownFolders: [], sockets: [], besides: [], accounts: { passwd: '', group: '' } }

interface Opening {
  readonly mount: Mount
  readonly field: string
  readonly opened: number[]
  readonly surroundings: Surroundings
}

function openSource({ mount, field, opened, surroundings }: Opening): MountSource {
  const refuse = (why: string, hint?: string): SandboxError =>
    new SandboxError('invalid', `${field}: ${mount.source} cannot be mounted: ${why}`, hint === undefined ? {} : { hint })
  const descriptor = held(mount.source, refuse)
  opened.push(descriptor)
  const status = fstatSync(descriptor)
  const path = truePath(descriptor, status)
  if (path === undefined) throw refuse('it was moved or removed while it was looked at', `ls -ld ${mount.source}`)
  const link = path === mount.source ? '' : `it leads to ${path}, and `
  const why =
    kindRefusal(descriptor, status) ?? sourceRefusal({ path, ...surroundings }) ?? twinRefusal(status, surroundings) ?? contentRefusal(descriptor, status)
  if (why !== undefined) throw refuse(`${link}${why}`)
  const { uid, gid } = status
  return { descriptor, path, isFolder: status.isDirectory(), uid, gid, isOwnGroup: gid === ownGroupOf(uid, surroundings.accounts) }
}

function held(path: string, refuse: (why: string, hint?: string) => SandboxError): number {
  try {
    return openSync(path, openPath)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const words: Readonly<Record<string, string>> = {
      ENOENT: 'it does not exist',
      EACCES: 'this user may not reach it',
      ELOOP: 'its links go round in circles',
    }
    throw refuse(words[code ?? ''] ?? String(code), `ls -ld ${path}`)
  }
}

/** What the kernel says the descriptor is, as long as that path still leads there. */
function truePath(descriptor: number, status: Stats): string | undefined {
  const path = readlinkSync(viaDescriptor(descriptor))
  const there = lstatSync(path, { throwIfNoEntry: false })
  return there?.dev === status.dev && there.ino === status.ino ? path : undefined
}

function viaDescriptor(descriptor: number): string {
  return `/proc/self/fd/${descriptor}`
}

function kindRefusal(descriptor: number, status: Stats): string | undefined {
  if (status.isSocket()) return 'it is a socket, through which a guest would reach a program outside'
  if (status.isFIFO()) return 'it is a pipe, through which a guest would reach a program outside'
  if (status.isBlockDevice() || status.isCharacterDevice()) return 'it is a device'
  const filesystem = kernelFilesystems[statfsSync(viaDescriptor(descriptor)).type]
  return filesystem === undefined ? undefined : `it is on a ${filesystem} filesystem, which is the kernel’s own`
}

/** The same folder or file under another path, by a bind mount or a hard link. */
function twinRefusal(status: Stats, { homes, ownFolders, besides }: Surroundings): string | undefined {
  const places = [
    { path: '/', why: 'it is the whole host' },
    { path: '/etc', why: 'it holds secrets of this machine' },
    ...forbiddenTrees,
    ...besides,
    ...homes.flatMap((home) => [{ path: home, why: 'it is a home folder' }, ...forbiddenInHome.map(({ path, why }) => ({ path: `${home}/${path}`, why }))]),
    ...ownFolders.map((path) => ({ path, why: 'glovebox keeps its own records there' })),
  ]
  const twin = places.find(({ path }) => {
    const other = statOf(path)
    return other?.dev === status.dev && other.ino === status.ino
  })
  return twin && `it is the same as ${twin.path}: ${twin.why}`
}

function contentRefusal(descriptor: number, status: Stats): string | undefined {
  const here = viaDescriptor(descriptor)
  try {
    accessSync(here, status.isDirectory() ? constants.R_OK | constants.X_OK : constants.R_OK)
  } catch {
    return 'this user may not read it'
  }
  if (!status.isDirectory()) return undefined
  const key = forbiddenAtTop.find(({ path }) => statOf(`${here}/${path}`) !== undefined)
  if (key !== undefined) return `it holds ${key.path}: ${key.why}`
  const socket = readdirSync(`${here}/`, { withFileTypes: true }).find((entry) => entry.isSocket())
  return socket && `it holds the socket ${socket.name}, through which a guest would reach a program outside`
}

function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch {
    return undefined
  }
}

interface Nesting {
  readonly mounts: readonly Mount[]
  readonly list: readonly MountSource[]
  readonly index: number
}

/** A mount within another needs a place there: nothing is ever made in a source. */
function checkNesting({ mounts, list, index }: Nesting): void {
  const { target } = mounts[index] as Mount
  const source = list[index] as MountSource
  const field = `mounts[${index}].target`
  if (target === '/workspace' && !source.isFolder) throw new SandboxError('invalid', `${field}: /workspace is a folder, and ${source.path} is none`)
  const outer = mounts
    .map((mount, at) => ({ at, target: mount.target }))
    .filter((mount) => isBelow(target, mount.target))
    .sort((a, b) => b.target.length - a.target.length)[0]
  if (outer === undefined) return
  const parent = list[outer.at] as MountSource
  const there = statWithoutLinks(`${parent.path}${target.slice(outer.target.length)}`)
  if (source.isFolder ? there?.isDirectory() : there?.isFile()) return
  const kind = source.isFolder ? 'folder' : 'file'
  throw new SandboxError(
    'invalid',
    `${field}: ${target} lies in mounts[${outer.at}], whose source ${parent.path} has no such ${kind}, and nothing is made there`,
  )
}

/** Undefined also for a path that a link is part of. */
function statWithoutLinks(path: string): Stats | undefined {
  try {
    return realpathSync(path) === path ? statSync(path) : undefined
  } catch {
    return undefined
  }
}

/** With ids of its own a cell is shown the one mount that a source lies on. Without, the kernel does not let go of what is mounted below. */
function checkMountsBelow(list: readonly MountSource[]): void {
  const points = parseMountTable(contentOf('/proc/self/mountinfo')).map(({ target }) => target)
  list.forEach(({ path }, index) => {
    const below = points.find((point) => isBelow(point, path))
    if (below === undefined) return
    throw new SandboxError(
      'unsupported',
      `mounts[${index}].source: ${path} cannot be mounted: without root what is mounted below it, at ${below}, would come with it`,
    )
  })
}

function readSurroundings(): Omit<Surroundings, 'besides'> {
  const accounts = readAccounts()
  return { homes: homeFolders(accounts.passwd), ownFolders: ownPlaces(), sockets: listeningSockets(), accounts }
}

/** Bound to a path in our network namespace: a path is no secret there, and namespaces do not keep a guest from it. */
function listeningSockets(): string[] {
  const lines = contentOf('/proc/net/unix').split('\n')
  return lines.flatMap((line) => /^(?:\S+ +){7}(\/.*)$/.exec(line)?.[1] ?? [])
}
