import { closeSync, fstatSync, fsyncSync, lstatSync, openSync, readlinkSync, realpathSync, renameSync, rmSync, type Stats, writeFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { draftIn, keepNote, sweepDrafts } from '../compose.js'
import { SandboxError } from '../contract/errors.js'
import type { Receipt } from '../contract/receipt.js'
import { storageRefusal } from '../policy/storage.js'
import { formatReceipt } from '../receipt/index.js'

/** The place of a receipt that is still to come. */
export interface ReceiptFile {
  /** Asks for the receipt and puts it there in one step; what is asked again gets the same answer. */
  fill(receipt: () => Promise<Receipt>): Promise<void>
  /** Leaves what was there before, unless it was filled. */
  [Symbol.dispose](): void
}

/** Throws when nothing can be written there, before anything is started for it. */
export function openReceiptFile(file: string): ReceiptFile {
  const target = targetOf(file)
  sweepDrafts(dirname(target))
  const note = keepNote('drafts', dirname(target))
  const draft = draftIn(dirname(target))
  const descriptor = openDraft(target, draft, note)
  let filled: Promise<void> | undefined
  let isOpen = true
  const drop = (): void => {
    if (!isOpen) return
    isOpen = false
    process.off('exit', drop)
    closeSync(descriptor)
    rmSync(draft, { force: true })
    note[Symbol.dispose]()
  }
  const write = async (receipt: () => Promise<Receipt>): Promise<void> => {
    const text = formatReceipt(await receipt())
    writing(target, () => {
      writeFileSync(descriptor, text)
      fsyncSync(descriptor)
      renameSync(draft, target)
    })
  }
  process.on('exit', drop)
  return {
    fill: (receipt) => (filled ??= write(receipt)),
    [Symbol.dispose]: drop,
  }
}

function openDraft(target: string, draft: string, note: Disposable): number {
  try {
    return writing(target, () => openSync(draft, 'wx', 0o644))
  } catch (error) {
    note[Symbol.dispose]()
    throw error
  }
}

const ownStreams = "stdout is the program's; a receipt needs a file of its own"
const mostLinks = 40

/** Where the file is, links followed. Whatever is no file, a device above all, is never replaced by one, and neither is what we print to. */
function targetOf(file: string): string {
  if (file === '') throw refusal('must not be empty')
  if (file === '-') throw refusal(ownStreams)
  const target = writing(resolve(file), () => followLinks(file))
  const status = writing(target, () => lstatSync(target, { throwIfNoEntry: false }))
  if (status === undefined) return target
  if (!status.isFile()) throw refusal(`${file} is there already and is no file`)
  if ([1, 2].some((descriptor) => isSameFile(status, fstatSync(descriptor)))) throw refusal(ownStreams)
  return target
}

/** Step by step: behind a descriptor's link in /proc is whatever is open, and realpath would not say that it came by there. */
function followLinks(file: string): string {
  let path = resolve(file)
  for (let steps = 0; steps < mostLinks; steps += 1) {
    const folder = folderOf(path)
    if (/^\/proc\/.*\/fd$/.test(folder)) throw refusal(ownStreams)
    path = join(folder, basename(path))
    const status = lstatSync(path, { throwIfNoEntry: false })
    if (status === undefined && steps > 0) throw refusal(`${file} is a link to ${path}, which is not there`)
    if (!status?.isSymbolicLink()) return path
    path = resolve(folder, readlinkSync(path))
  }
  throw refusal(`${file} is a link that leads nowhere`)
}

function folderOf(path: string): string {
  try {
    return realpathSync(dirname(path))
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'ENOENT' ? refusal(`there is no folder ${dirname(path)}`) : error
  }
}

function isSameFile(a: Stats, b: Stats): boolean {
  return a.dev === b.dev && a.ino === b.ino
}

function refusal(problem: string): SandboxError {
  return new SandboxError('invalid', `--receipt: ${problem}`, { hint: 'glovebox run --receipt receipt.json -- …' })
}

/** The draft is nothing that anybody asked for: what cannot be written is the file, because of its folder. */
function writing<T>(target: string, act: () => T): T {
  try {
    return act()
  } catch (error) {
    if (error instanceof SandboxError) throw error
    const { code = String(error) } = error as NodeJS.ErrnoException
    const told = storageRefusal(Object.assign(new Error(code), { code }), dirname(target))
    if (told instanceof SandboxError)
      throw new SandboxError(told.code, `--receipt: ${target} cannot be written: ${told.message}`, { hint: told.hint ?? '', cause: error })
    throw refusal(`${target} cannot be written (${code})`)
  }
}
