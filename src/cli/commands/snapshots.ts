import { defaultPlatform } from '../../compose.js'
import type { SnapshotInfo } from '../../contract/snapshots.js'
import { exitCodes } from '../exit-codes.js'
import { escapeControls, printJson, say } from '../print.js'
import { bytesInWords } from '../words.js'
import { writeOut } from '../streams.js'

interface Flags {
  readonly json?: true
}

const notThere = 1

/** A line for each; nothing when there is none. */
export async function listSnapshots(flags: Flags): Promise<number> {
  const snapshots = await defaultPlatform().snapshots.list()
  if (flags.json) await printJson({ snapshots })
  else await writeOut(snapshots.map((snapshot) => `${lineOf(snapshot)}\n`).join(''))
  return exitCodes.ok
}

/** Resolves to 1 when one of them was not there; the others are removed all the same. */
export async function removeSnapshots(references: readonly string[], flags: Flags): Promise<number> {
  const removed: string[] = []
  const missing: string[] = []
  for (const reference of references) ((await defaultPlatform().snapshots.remove(reference)) ? removed : missing).push(reference)
  if (flags.json) await printJson({ removed, missing })
  else for (const reference of missing) say(`there is no snapshot ${reference}`)
  return missing.length === 0 ? exitCodes.ok : notThere
}

function lineOf({ createdAt, bytes, entries, template, id, name }: SnapshotInfo): string {
  return [
    createdAt,
    bytesInWords(bytes).padStart(12),
    String(entries).padStart(7),
    template.padEnd(8),
    id,
    ...(name === undefined ? [] : [escapeControls(name)]),
  ].join('  ')
}
