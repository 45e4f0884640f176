/** Keeps the index of a template's programs in memory and in a file, and looks at every folder before it is used again. */
import { createHash } from 'node:crypto'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { draftIn } from '../sys/draft.js'
import { buildProgramIndex, isCurrent, type ProgramIndex } from './program-index.js'
import type { TemplateView } from './template-view.js'

export interface ProgramIndexes {
  /** An index that is true now. */
  of(view: TemplateView): Promise<ProgramIndex>
}

/** Raised when the index or what counts as a program changes, so that an older file is not taken for ours. */
const edition = '2'
const digestBytes = 32

/** `folder` is asked for when an index is first needed; nobody else may write to it. */
export function createProgramIndexes(folder: () => string): ProgramIndexes {
  const known = new Map<string, Promise<ProgramIndex>>()
  return {
    of(view) {
      const key = keyOf(view)
      // One after the other: those that come while a walk is under way would only walk beside it.
      const index = (known.get(key) ?? Promise.resolve(undefined))
        .catch(() => undefined)
        .then((before) => refresh({ before, view, place: join(folder(), `${key}.index`) }))
      known.set(key, index)
      return index
    },
  }
}

interface Refreshed {
  readonly before: ProgramIndex | undefined
  readonly view: TemplateView
  readonly place: string
}

async function refresh({ before, view, place }: Refreshed): Promise<ProgramIndex> {
  const kept = before ?? (await readKept(place))
  if (kept && (await isCurrent(kept, view))) return kept
  const index = await buildProgramIndex(view)
  // A place that cannot be written costs the next engine a walk, nothing else.
  await keep(place, Buffer.from(JSON.stringify(index))).catch(() => undefined)
  return index
}

/** By what the cell sees, not where the host has it: a template whose sources moved replaces its own index instead of adding one. */
function keyOf(view: TemplateView): string {
  return createHash('sha256')
    .update(JSON.stringify([edition, view.tops, view.identity]))
    .digest('hex')
    .slice(0, 32)
}

/** The digest in front tells a file that a crash or a full disk cut short from an index. */
async function readKept(place: string): Promise<ProgramIndex | undefined> {
  const bytes = await readFile(place).catch(() => undefined)
  if (bytes === undefined || bytes.length <= digestBytes) return undefined
  const text = bytes.subarray(digestBytes)
  return digestOf(text).equals(bytes.subarray(0, digestBytes)) ? (JSON.parse(text.toString('utf8')) as ProgramIndex) : undefined
}

async function keep(place: string, text: Buffer): Promise<void> {
  const draft = draftIn(dirname(place))
  // Only the last folder: a recursive mkdir below /proc never returns.
  await mkdir(dirname(place), { mode: 0o700 }).catch(() => undefined)
  try {
    await writeFile(draft, Buffer.concat([digestOf(text), text]), { mode: 0o600, flag: 'wx' })
    await rename(draft, place)
  } finally {
    await rm(draft, { force: true })
  }
}

function digestOf(bytes: Uint8Array): Buffer {
  return createHash('sha256').update(bytes).digest()
}
