/**
 * Takes changes over into a folder. First all new content is written into a folder of our own inside, so that a full disk or a broken store stops it before
 * anything is touched; then each path is changed by one call, which the kernel does wholly or not at all:
 *
 *   open up folders that are to be changed · remove, deepest first · make folders · move files and links into place · set modes of folders, deepest first
 *
 * New content is on the disk before anything is touched, and the names that lead to it before the changes are forgotten: so this holds for a loss of power too.
 * Whatever stops it in between, what was done is as it is to be and the rest as it was, so that doing it again goes on from there. Nothing is ever reached by a
 * path of several parts: a folder that was swapped for a link is not entered.
 */
import { randomUUID } from 'node:crypto'
import { closeSync, fchmodSync, fchownSync, type Stats, writeSync } from 'node:fs'
import type { PendingChange } from '../contract/changes.js'
import { SandboxError } from '../contract/errors.js'
import { pathBytes } from '../contract/path-text.js'
import { parentOf } from './changes-compare.js'
import type { Task } from './changes-plan.js'
import { syncAll } from './durable.js'
import type { FolderWalk, Step } from './folder-walk.js'
import { localError } from './host-folder-error.js'
import type { HostFolder } from './host-folder-handle.js'
import { currentOwner, ownerName } from './owner.js'
import { isSameStatus } from './path-state.js'
import { removeHeld } from './tree-removal.js'
import { dropRecord, keepRecord, sweepStaging } from './changes-staging.js'

export interface Application {
  readonly id: string
  readonly folder: string
  readonly walk: FolderWalk
  readonly tasks: readonly Task[]
  /** A file of ours, elsewhere, that tells which folder new content is put in. */
  readonly record: string
  /** Called when all content is there, before anything of the folder is touched. */
  begin(): Promise<void>
  /** The content of a file, checked against its hash. */
  content(hash: string): Iterable<Uint8Array>
}

const ownerBits = 0o700

/** Resolves to the paths that were changed. Throws SandboxError telling how far it came. */
export async function applyTasks(application: Application): Promise<string[]> {
  const { walk, tasks, record } = application
  await sweepStaging(walk.root, record)
  const name = Buffer.from(`.glovebox.${ownerName(currentOwner())}-${randomUUID()}.apply`)
  const done = new Set<string>()
  let at = ''
  try {
    await using staging = await walk.root.createHeld(name)
    try {
      await keepRecord(record, { name, folder: staging, path: application.folder })
      await stageAll(application, staging)
      await walk.forget()
      await application.begin()
      for (const act of actsOf(application, staging)) {
        at = act.path
        await act.run()
        if (act.isStep) done.add(act.path)
      }
      await walk.root.sync()
    } finally {
      // What stays is found by the next one.
      await removeHeld({ folder: walk.root.descriptor, name }, staging.descriptor)
        .then(() => dropRecord(record))
        .catch(() => undefined)
    }
  } catch (error) {
    throw stopped(error, { application, at, done })
  }
  return tasks.map(({ change }) => change.path)
}

function stopped(error: unknown, { application, at, done }: { application: Application; at: string; done: ReadonlySet<string> }): unknown {
  const { id, folder, tasks } = application
  const told = localError('apply', folder, error)
  if (at === '' || !(told instanceof Error)) return told
  const words = `applied ${done.size} of ${tasks.length} and stopped at ${at}: ${told.message}`
  const code = told instanceof SandboxError ? told.code : 'conflict'
  return new SandboxError(code, words, { hint: `glovebox apply ${id}`, cause: error })
}

/** So many are held open to be written out together. */
const filesAtOnce = 128

/** Files and links as they are to be, named by their place among the tasks. */
async function stageAll(application: Application, staging: HostFolder): Promise<void> {
  const { tasks, walk } = application
  const top = await walk.root.status()
  const open: number[] = []
  try {
    for (const [index, task] of tasks.entries()) {
      const { after } = task.change
      const name = Buffer.from(`${index}`)
      if (after.type === 'link') await stageLink(staging, name, { target: Buffer.from(pathBytes(after.target)), owner: top })
      if (after.type !== 'file') continue
      const file = staging.createFileSync(name, 0o600)
      open.push(file)
      for (const bytes of application.content(after.hash)) writeAllSync(file, bytes)
      // A file that stays keeps its owner, a new one is the owner's of the folder.
      const { uid, gid } = task.status?.isFile() === true ? task.status : top
      if (process.getuid?.() === 0) fchownSync(file, uid, gid)
      fchmodSync(file, after.mode)
      if (open.length >= filesAtOnce) await closeSynced(open)
    }
    await closeSynced(open)
  } finally {
    open.forEach((file) => closeSync(file))
  }
}

/** A link that root owned would be taken for the administrator's wherever the owner of the folder moves it. */
async function stageLink(staging: HostFolder, name: Buffer, { target, owner }: { readonly target: Buffer; readonly owner: Stats }): Promise<void> {
  await staging.createLink(name, target)
  const { uid, gid } = owner
  if (process.getuid?.() === 0) await staging.give(name, { uid, gid })
}

async function closeSynced(open: number[]): Promise<void> {
  await syncAll(open)
  for (let file = open.pop(); file !== undefined; file = open.pop()) closeSync(file)
}

export function writeAllSync(fd: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at)
}

/** Before they get their modes, with which they may not be entered any more. What is set then goes with the last. */
async function syncFolders({ walk, tasks }: Application): Promise<void> {
  const inside = new Map(tasks.map(({ change }) => [parentOf(change.path), change.path]))
  for (const path of inside.values()) await (await walk.stepTo(path))?.folder.sync()
}

interface Act {
  readonly path: string
  /** Whether the path is another afterwards. */
  readonly isStep: boolean
  run(): Promise<void>
}

function actsOf(application: Application, staging: HostFolder): Act[] {
  const { tasks } = application
  const byDepth = [...tasks].sort((one, other) => depthOf(one.change) - depthOf(other.change))
  const deepestFirst = [...byDepth].reverse()
  const acts = (list: readonly Task[], wanted: (change: PendingChange) => boolean, run: (task: Task, step: Step) => Promise<void> | void): Act[] =>
    list.filter(({ change }) => wanted(change)).map((task) => ({ path: task.change.path, isStep: run !== openUp, run: () => atStep(application, task, run) }))
  const places = new Map(tasks.map((task, index) => [task, Buffer.from(`${index}`)]))
  const moveIn = (task: Task, { folder, name }: Step): void => {
    checkUntouched(isRemoved(task.change) ? { ...task, status: undefined } : task, { folder, name })
    staging.moveToSync(places.get(task) as Buffer, { folder, name })
  }
  return [
    ...acts(byDepth, ({ before }) => before.type === 'folder' && (before.mode & ownerBits) !== ownerBits, openUp),
    ...acts(deepestFirst, isRemoved, removeEntry),
    ...acts(
      byDepth,
      ({ before, after }) => after.type === 'folder' && before.type !== 'folder',
      (_task, step) => makeFolder(application, step),
    ),
    ...acts(byDepth, ({ after }) => after.type === 'file' || after.type === 'link', moveIn),
    { path: '.', isStep: false, run: () => syncFolders(application) },
    ...acts(deepestFirst, ({ after }) => after.type === 'folder', setMode),
  ]
}

function depthOf({ path }: PendingChange): number {
  return path.split('/').length
}

/** Also what gives way to something that cannot take its place by a rename. */
function isRemoved({ before, after }: PendingChange): boolean {
  if (before.type === 'none') return false
  return after.type === 'none' || (before.type === 'folder') !== (after.type === 'folder')
}

async function atStep({ walk }: Application, task: Task, run: (task: Task, step: Step) => Promise<void> | void): Promise<void> {
  const step = await walk.stepTo(task.change.path)
  if (step === undefined) throw new SandboxError('conflict', 'its folder was moved or replaced just now')
  await run(task, step)
}

function checkUntouched({ status }: Task, { folder, name }: Step): void {
  const now = folder.lookSync(name)
  const isSame = status?.isDirectory() === true ? now?.ino === status.ino : isSameStatus(status, now)
  if (!isSame) throw new SandboxError('conflict', 'it was changed just now')
}

async function openUp(task: Task, step: Step): Promise<void> {
  checkUntouched(task, step)
  await step.folder.setMode(step.name, (task.status?.mode ?? 0) | ownerBits)
}

async function removeEntry(task: Task, step: Step): Promise<void> {
  checkUntouched(task, step)
  if (task.change.before.type === 'folder') await step.folder.removeFolder(step.name)
  else await step.folder.unlink(step.name)
}

async function makeFolder({ walk }: Application, { folder, name }: Step): Promise<void> {
  await folder.createFolder(name, ownerBits)
  const { uid, gid } = await walk.root.status()
  if (process.getuid?.() === 0) await folder.give(name, { uid, gid })
}

async function setMode({ change, status }: Task, { folder, name }: Step): Promise<void> {
  if (change.after.type !== 'folder') return
  // Set-id bits of a folder that was there are its owner's own.
  const kept = status?.isDirectory() === true ? status.mode & 0o6000 : 0
  await folder.setMode(name, change.after.mode | kept)
}
