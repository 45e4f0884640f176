/**
 * What is being copied beside its place, and where, kept where only we write. Whoever may write there can give the name of such a folder to any other, and what
 * they may not remove themselves must not be removed for them: so what a process that was killed left is removed only if it is the very folder that was noted.
 */
import { appendFileSync, type BigIntStats, fstatSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import * as z from 'zod'
import { sweepDrafts } from './draft.js'
import { HostFolder } from './host-folder-handle.js'
import { removeTreeAt } from './tree-removal.js'

const fileName = 'drafts'

/** Numbers of files are used again when they are gone; the moment in which one was made is not. */
const identitySchema = z.strictObject({ dev: z.string(), ino: z.string(), born: z.string() })
/** Paths are bytes, a character each. */
const noteSchema = z.strictObject({ above: z.string(), in: identitySchema, made: z.strictObject({ name: z.string(), ...identitySchema.shape }).optional() })

type Identity = z.output<typeof identitySchema>
type Note = z.output<typeof noteSchema>

export class DraftNotes {
  readonly #path: string
  #latest = ''

  /** In a folder of ours, which is swept with what is noted in it. */
  constructor(place: string) {
    this.#path = join(place, fileName)
  }

  /** Where a draft is about to be made. */
  keepPlace(above: HostFolder): void {
    this.#keep(placeNote(above))
  }

  /** A folder that was made there, before anything is put into it. */
  keepFolder(above: HostFolder, name: Buffer, folder: HostFolder): void {
    this.#keep({ ...placeNote(above), made: { name: name.toString('latin1'), ...identityOf(folder) } })
  }

  /** Once for all that comes to one place. */
  #keep(note: Note): void {
    const line = `${JSON.stringify(note)}\n`
    if (line === this.#latest) return
    appendFileSync(this.#path, line, { mode: 0o600 })
    this.#latest = line
  }
}

/** Removes what is noted in the folder of one that was killed. Quiet: what stays is in nobody's way. */
export async function sweepNoted(place: HostFolder): Promise<void> {
  for (const note of notesIn(place)) {
    const { above, in: expected, made } = note
    try {
      await using folder = await HostFolder.open(Buffer.from(above, 'latin1'))
      if (!isSame(identityOf(folder), expected)) continue
      if (made) await removeTreeAt({ folder: folder.descriptor, name: Buffer.from(made.name, 'latin1') }, (status) => isSame(identityIn(status), made))
      else sweepDrafts(`/proc/self/fd/${folder.descriptor}`)
    } catch {
      // It is gone, or no longer ours.
    }
  }
}

function placeNote(above: HostFolder): Note {
  const path = readlinkSync(`/proc/self/fd/${above.descriptor}`, { encoding: 'buffer' }).toString('latin1')
  return { above: path, in: identityOf(above) }
}

function notesIn(place: HostFolder): Note[] {
  try {
    const lines = readFileSync(`/proc/self/fd/${place.descriptor}/${fileName}`, 'utf8').split('\n')
    // The last one may have been cut off.
    return lines.slice(0, -1).map((line) => noteSchema.parse(JSON.parse(line)))
  } catch {
    return []
  }
}

function identityOf({ descriptor }: HostFolder): Identity {
  return identityIn(fstatSync(descriptor, { bigint: true }))
}

function identityIn({ dev, ino, birthtimeNs }: BigIntStats): Identity {
  return { dev: `${dev}`, ino: `${ino}`, born: `${birthtimeNs}` }
}

function isSame(one: Identity, other: Identity): boolean {
  return one.dev === other.dev && one.ino === other.ino && one.born === other.born
}
