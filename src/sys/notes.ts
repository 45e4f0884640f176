/**
 * Notes of what is made outside of our own folders, where whoever made it chose to: a draft beside a receipt, the socket of a server. Each is a file in the state folder, named by
 * its owner, and is there before what it tells of; so it is found when its owner was killed.
 */
import { randomUUID } from 'node:crypto'
import { lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as z from 'zod'
import { deferred } from '../contract/deferred.js'
import { takesConnections } from './daemon-record.js'
import { sweepDrafts } from './draft.js'
import { currentOwner, ownerName } from './owner.js'
import { statePlace } from './places.js'
import { gone, type Leftover, type Sweeper } from './sweeper.js'

/** `drafts`: a folder in which there may be some; `socket`: its path. */
export type NotedKind = 'drafts' | 'socket'

const folderName = 'notes'
const noteVersion = 1
const noteSchema = deferred(() => z.strictObject({ version: z.literal(noteVersion), kind: z.enum(['drafts', 'socket']), path: z.string() }))
const otherVersionSchema = deferred(() => z.looseObject({ version: z.number().min(noteVersion + 1) }))

/** Withdrawn when it is disposed of. Where nothing can be written there is none: it is of use only to others. */
export function keepNote(kind: NotedKind, path: string): Disposable {
  const note = { version: noteVersion, kind, path }
  try {
    const folder = join(statePlace(), folderName)
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const file = join(folder, `${ownerName(currentOwner())}-${randomUUID()}`)
    writeFileSync(file, JSON.stringify(note), { mode: 0o600, flag: 'wx' })
    return { [Symbol.dispose]: () => rmSync(file, { force: true }) }
  } catch {
    return { [Symbol.dispose]: () => undefined }
  }
}

/** Makes nothing. */
export async function sweepNotes(state: string, sweeper: Sweeper): Promise<void> {
  const folder = join(state, folderName)
  for (const name of namesIn(folder)) {
    const file = join(folder, name)
    const leftover: Leftover = { kind: 'note', what: file, owner: name.split('-')[0] ?? '' }
    const content = parsed(file)
    if (otherVersionSchema.safeParse(content).success) sweeper.keep(leftover, 'it was written by a newer version')
    else
      await sweeper.attemptSlowly(leftover, async () => {
        // One that was cut short tells of nothing that was made.
        const note = noteSchema.safeParse(content)
        if (note.success) await sweepNoted(note.data, { sweeper, owner: leftover.owner })
        unlinkSync(file)
      })
  }
}

async function sweepNoted(
  { kind, path }: { readonly kind: NotedKind; readonly path: string },
  { sweeper, owner }: { readonly sweeper: Sweeper; readonly owner: string },
): Promise<void> {
  if (kind === 'drafts') sweepDrafts(path, sweeper)
  else await sweeper.attemptSlowly({ kind: 'socket', what: path, owner }, () => removeSocket(path))
}

/** Whoever else may listen there by now, or put something else there, is left alone. */
async function removeSocket(path: string): Promise<unknown> {
  const status = lstatSync(path, { throwIfNoEntry: false })
  if (!status?.isSocket() || status.uid !== process.getuid?.() || (await takesConnections(path))) return gone
  unlinkSync(path)
  return undefined
}

function parsed(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    return undefined
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
