/**
 * Where an apply puts new content before it takes its place: a folder inside the one that is changed, which others may write in too. They can give its name
 * to any other folder there, and what they may not remove themselves must not be removed for them: which folder it is is kept where only we write.
 */
import { createHash } from 'node:crypto'
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as z from 'zod'
import { HostFolder } from './host-folder-handle.js'
import { isAlive, parseOwner } from './owner.js'
import type { Sweeper } from './sweeper.js'
import { removeTreeAt } from './tree-removal.js'

const stagingName = /^\.glovebox\.([^-]+)-[0-9a-f-]{36}\.apply$/

/** Without the folder in records of earlier versions. */
const recordSchema = z.strictObject({ name: z.string(), dev: z.number(), ino: z.number(), folder: z.string().optional() })

/** One for each folder that is changed: it is locked meanwhile. */
export function recordPath(place: string, folder: string): string {
  return join(place, `staging-${createHash('sha256').update(folder).digest('hex').slice(0, 32)}`)
}

export interface Staging {
  readonly name: Buffer
  readonly folder: HostFolder
  /** Of the folder that it is in. */
  readonly path: string
}

export async function keepRecord(record: string, { name, folder, path }: Staging): Promise<void> {
  const { dev, ino } = await folder.status()
  await writeFile(record, JSON.stringify({ name: name.toString(), dev, ino, folder: path }), { mode: 0o600 })
}

export async function dropRecord(record: string): Promise<void> {
  await rm(record, { force: true })
}

/** Removes what an apply that was killed left. */
export async function sweepStaging(root: HostFolder, record: string): Promise<void> {
  const kept = await readRecord(record)
  for (const name of await root.names()) {
    const owner = parseOwner(stagingName.exec(name.toString('latin1'))?.[1] ?? '')
    if (owner === undefined || isAlive(owner)) continue
    const place = { folder: root.descriptor, name }
    if (kept?.name === name.toString()) {
      await removeTreeAt(place, ({ dev, ino }) => Number(dev) === kept.dev && Number(ino) === kept.ino)
    }
    // Killed before it was recorded, it is still empty.
    else await root.removeFolder(name).catch(() => undefined)
  }
}

async function readRecord(record: string): Promise<z.output<typeof recordSchema> | undefined> {
  const text = await readFile(record, 'utf8').catch(() => '')
  try {
    return recordSchema.parse(JSON.parse(text))
  } catch {
    return undefined
  }
}

/** Of applies that were killed, wherever they were at work; makes nothing. */
export async function sweepStagings(place: string, sweeper: Sweeper): Promise<void> {
  for (const name of (await readdir(place).catch(() => [])).filter((each) => each.startsWith('staging-'))) {
    const record = join(place, name)
    const kept = await readRecord(record)
    const owner = stagingName.exec(kept?.name ?? '')?.[1]
    if (kept?.folder === undefined || owner === undefined) continue
    const { folder } = kept
    await sweeper.attemptSlowly({ kind: 'changes', what: join(folder, kept.name), owner }, async () => {
      await using root = await HostFolder.open(folder)
      await sweepStaging(root, record)
      await dropRecord(record)
    })
  }
}
