import { relative, resolve, sep } from 'node:path'
import { realpathSync } from 'node:fs'
import { createChangeStore } from '../../compose.js'
import type { ChangeSet, ChangeStore } from '../../contract/changes.js'
import { SandboxError } from '../../contract/errors.js'
import { changePage } from '../change-page.js'
import { exitCodes } from '../exit-codes.js'
import { changesReport } from '../here.js'
import { changesInWords, lineCount } from '../listed-changes.js'
import { longPage, wholePage } from '../page-bounds.js'
import { colorsFor, escapeControls, printJson, say } from '../print.js'
import { writeOut } from '../streams.js'

export interface ChangesFlags {
  readonly json?: true
  readonly quiet?: true
  readonly all?: true
}

/** All that are pending, or one of them in full. */
export async function showChanges(id: string | undefined, flags: ChangesFlags): Promise<number> {
  const { json, all } = flags
  const store = createChangeStore()
  if (id === undefined) return listChanges(await store.list(), flags)
  const set = await store.find(id)
  if (json) await printJson(changesReport(set))
  else {
    const page = { set, store, colors: colorsFor(process.stdout), bounds: all ? wholePage : longPage, more: `glovebox changes ${set.id.slice(0, 8)} --all` }
    for await (const line of changePage(page)) await writeOut(`${line}\n`)
  }
  return exitCodes.ok
}

async function listChanges(sets: readonly ChangeSet[], { json }: ChangesFlags): Promise<number> {
  if (json) await printJson(sets.map((set) => ({ ...changesReport(set), changes: set.changes.length, skipped: set.skipped.length })))
  else if (sets.length === 0) say('no changes are pending')
  else await writeOut(`${sets.map(changesLine).join('\n')}\n`)
  return exitCodes.ok
}

function changesLine({ id, folder, createdAt, command, changes }: ChangeSet): string {
  return `${id.slice(0, 8)}  ${createdAt.slice(0, 16).replace('T', ' ')}  ${escapeControls(folder)}  ${changesInWords(changes)}  ${escapeControls(command.join(' ')).slice(0, 60)}`
}

export async function applyChanges(id: string | undefined, paths: readonly string[], { json, quiet }: ChangesFlags): Promise<number> {
  const store = createChangeStore()
  const set = await wanted(store, id)
  const { applied, left } = await store.apply(set, paths.length === 0 ? undefined : paths.map((path) => belowFolder(path, set)))
  if (json) await printJson({ id: set.id, folder: set.folder, applied, left })
  else if (!quiet) {
    const paths = new Set(applied)
    const [taken, pending] = [set.changes.filter(({ path }) => paths.has(path)), set.changes.filter(({ path }) => !paths.has(path))]
    say(`applied ${changesInWords(taken)} to ${set.folder}${left === 0 ? '' : `, ${lineCount(pending)} still pending`}`)
  }
  return exitCodes.ok
}

export async function dropChanges(id: string | undefined, { json, quiet }: ChangesFlags): Promise<number> {
  const store = createChangeStore()
  const set = await wanted(store, id)
  await store.drop(set)
  if (json) await printJson({ id: set.id, folder: set.folder, dropped: set.changes.length })
  else if (!quiet) say(`dropped ${changesInWords(set.changes)} of ${set.folder}`)
  return exitCodes.ok
}

/** The latest of this folder unless one is named. */
async function wanted(store: ChangeStore, id: string | undefined): Promise<ChangeSet> {
  if (id !== undefined) return store.find(id)
  const folder = process.cwd()
  const [latest] = await store.list(folder)
  if (latest !== undefined) return latest
  const above = (await store.list()).find((set) => realpathSync(folder).startsWith(`${set.folder}/`))
  if (above === undefined) throw new SandboxError('not-found', `no changes of ${folder} are pending`, { hint: 'glovebox changes' })
  const theirs = above.id.slice(0, 8)
  throw new SandboxError('not-found', `no changes of ${folder} are pending; of ${above.folder}, which it is in, there are: ${theirs}`, {
    hint: `glovebox changes ${theirs}`,
  })
}

/** As typed, relative to where we are; as kept, to the folder. */
function belowFolder(path: string, { folder }: ChangeSet): string {
  const below = relative(folder, resolve(realpathSync(process.cwd()), path))
  if (below === '' || below === '..' || below.startsWith(`..${sep}`))
    throw new SandboxError('invalid', `${path} is not in ${folder}`, { hint: 'glovebox apply --help' })
  return below
}
