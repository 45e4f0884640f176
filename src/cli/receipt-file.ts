import { randomUUID } from 'node:crypto'
import { closeSync, fsyncSync, lstatSync, openSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
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
  const draft = join(dirname(target), `.${basename(target)}.${randomUUID()}.draft`)
  const descriptor = writing(target, () => openSync(draft, 'wx', 0o644))
  let filled: Promise<void> | undefined
  let isOpen = true
  const drop = (): void => {
    if (!isOpen) return
    isOpen = false
    process.off('exit', drop)
    closeSync(descriptor)
    rmSync(draft, { force: true })
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

/** Where the file is, links followed. Whatever is no file, a device above all, is never replaced by one. */
function targetOf(file: string): string {
  if (file === '') throw refusal('must not be empty')
  if (file === '-') throw refusal("stdout is the program's; a receipt needs a file of its own")
  const path = resolve(file)
  const status = writing(path, () => lstatSync(path, { throwIfNoEntry: false }))
  if (status === undefined) return path
  const target = status.isSymbolicLink() ? writing(path, () => realpathSync(path)) : path
  if (!lstatSync(target).isFile()) throw refusal(`${file} is there already and is no file`)
  return target
}

function refusal(problem: string): SandboxError {
  return new SandboxError('invalid', `--receipt: ${problem}`, { hint: 'glovebox run --receipt receipt.json -- …' })
}

function writing<T>(target: string, act: () => T): T {
  try {
    return act()
  } catch (error) {
    const told = storageRefusal(error, dirname(target))
    if (told instanceof SandboxError) throw new SandboxError(told.code, `--receipt: ${told.message}`, { hint: told.hint ?? '', cause: error })
    const { code = String(error) } = error as NodeJS.ErrnoException
    throw refusal(code === 'ENOENT' ? `there is no folder ${dirname(target)}` : `${target} cannot be written (${code})`)
  }
}
