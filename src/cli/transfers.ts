/** Files and folders that go into the sandbox of a run before it, and come out of it after. */
import { lstatSync } from 'node:fs'
import { localFiles } from '../compose.js'
import { reworded, SandboxError } from '../contract/errors.js'
import type { Platform } from '../contract/platform.js'
import { SandboxFiles, type Transferred, type TransferProgress } from '../sandbox/index.js'
import { asPart } from './colon-parts.js'
import { escapeControls, inShell, say } from './print.js'
import { parseDownloadFlag, parseUploadFlag, type Transfer, type TransferFlags } from './transfer-flags.js'

export interface TransferSetting {
  readonly flags: TransferFlags & { readonly quiet?: true; readonly json?: true }
  readonly platform: Platform
  readonly id: string
  readonly signal: AbortSignal
}

/** What is wrong is refused before there is a sandbox. */
export function checkTransfers({ upload = [], download = [] }: TransferFlags): void {
  upload.forEach(parseUploadFlag)
  for (const transfer of download.map(parseDownloadFlag)) checkTarget(transfer)
}

/** Whether SRC will be a file is known when it is too late; so whoever has a folder filled says that it is one. */
function checkTarget({ flag, from, to, isFolder }: Transfer): void {
  const there = lstatSync(to, { throwIfNoEntry: false })
  if (!there || (there.isDirectory() && isFolder)) return
  const hinted = (source: string, target: string): string => `glovebox run --download ${inShell(`${asPart(source)}:${asPart(target)}`)} -- …`
  if (!there.isDirectory()) throw new SandboxError('conflict', `${flag}: ${to} is there already`, { hint: hinted(from, `${to}.new`) })
  const hint = hinted(`${from}/`, to)
  throw new SandboxError('conflict', `${flag}: ${to} is a folder, and is there already: with SRC/ it is filled, and a file needs another name`, { hint })
}

export async function uploadAll(setting: TransferSetting): Promise<void> {
  for (const transfer of (setting.flags.upload ?? []).map(parseUploadFlag)) {
    await moved(transfer.flag, setting.flags, (onProgress) => filesOf(setting).upload(transfer.from, transfer.to, { signal: setting.signal, onProgress }))
  }
}

export async function downloadAll(setting: TransferSetting): Promise<void> {
  for (const transfer of (setting.flags.download ?? []).map(parseDownloadFlag)) {
    await moved(transfer.flag, setting.flags, (onProgress) => filesOf(setting).download(transfer.from, transfer.to, { signal: setting.signal, onProgress }))
  }
}

function filesOf({ platform, id }: TransferSetting): SandboxFiles {
  return new SandboxFiles({ files: platform.files.of(id), local: localFiles })
}

export type Moving = (onProgress: (progress: TransferProgress) => void) => Promise<Transferred>

/** With a line that tells how far it is, and one for each thing that stayed behind. What goes wrong is said of `flag`. */
export async function moved(flag: string, flags: { readonly quiet?: true; readonly json?: true }, moving: Moving): Promise<Transferred> {
  const isShown = process.stderr.isTTY && !flags.quiet && !flags.json
  const bar = isShown ? new ProgressLine(flag) : undefined
  try {
    const done = await moving((progress) => bar?.show(progress))
    bar?.clear()
    // Also when it is to be quiet: what is missing is no chatter.
    if (!flags.json) sayLeft(flag, done.skipped)
    return done
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error
    throw reworded(error, `${flag}: ${error.message.replace(/^(?:files\.\w+ |upload: |download: )/, '')}`)
  } finally {
    bar?.clear()
  }
}

const mostTold = 5

function sayLeft(flag: string, skipped: Transferred['skipped']): void {
  for (const { path, why } of skipped.slice(0, mostTold)) say(`${flag}: ${path} ${why}; it was left behind`)
  if (skipped.length > mostTold) say(`${flag}: ${skipped.length - mostTold} more were left behind`)
}

const worthShowingBytes = 16 * 2 ** 20
const betweenMs = 100
const width = 24

/** One line that is written over again, for what takes a while. */
class ProgressLine {
  readonly #name: string
  #shownAt = 0
  #isShown = false

  constructor(name: string) {
    this.#name = escapeControls(name)
  }

  show({ bytes, totalBytes }: TransferProgress): void {
    const now = performance.now()
    if ((totalBytes ?? bytes) < worthShowingBytes || now - this.#shownAt < betweenMs) return
    this.#shownAt = now
    this.#isShown = true
    process.stderr.write(`\r\u001b[K${this.#fitting(wordsOf({ bytes, totalBytes }))}`)
  }

  /** A line that goes on in the next could not be written over. */
  #fitting(words: string): string {
    const room = (process.stderr.columns || 80) - 1 - words.length
    return `${this.#name.length > room ? `${this.#name.slice(0, Math.max(0, room - 1))}…` : this.#name}${words}`
  }

  clear(): void {
    if (this.#isShown) process.stderr.write('\r\u001b[K')
    this.#isShown = false
  }
}

function wordsOf({ bytes, totalBytes }: TransferProgress): string {
  const done = `${(bytes / 2 ** 20).toFixed(0)} MiB`
  if (totalBytes === undefined) return ` ${done}`
  const filled = Math.round((bytes / totalBytes) * width)
  return ` [${'#'.repeat(filled)}${' '.repeat(width - filled)}] ${done} of ${(totalBytes / 2 ** 20).toFixed(0)}`
}
