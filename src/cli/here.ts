/** `run --here`: the folder we were started in as a sandbox's workspace, and what became of it there. */
import { realpathSync } from 'node:fs'
import { createChangeStore } from '../compose.js'
import type { ChangeSet } from '../contract/changes.js'
import { reworded, SandboxError } from '../contract/errors.js'
import type { Platform, SandboxInfo } from '../contract/platform.js'
import type { Mount, SpecInput } from '../contract/spec.js'
import { changePage, letterOf } from './change-page.js'
import { refuseFlag } from './flag-values.js'
import { asTyped, colorsFor, say } from './print.js'

export interface Here {
  readonly spec: SpecInput
  readonly folder: string
  readonly startedMs: number
}

const target = '/workspace'

/** The spec with this folder as its workspace. */
export function withHere(spec: SpecInput): Here {
  const mounts = spec.mounts ?? []
  if (mounts.some((mount) => mount.target === target)) throw refuseFlag('--here', `takes ${target}, which --mount takes too`)
  const folder = realpathSync(process.cwd())
  const mount: Mount = { source: folder, target, mode: 'overlay' }
  return { spec: { ...spec, mounts: [mount, ...mounts] }, folder, startedMs: Date.now() }
}

/** What is said of the first mount is said of this folder; the others are counted as they were written. */
export function asHere(error: unknown): unknown {
  const [, rest] = (error instanceof SandboxError && /(?:^|: )mounts\[0\](?:\.\w+)?: (.*)$/s.exec(error.message)) || []
  if (!(error instanceof SandboxError)) return error
  if (rest === undefined) {
    const message = error.message.replace(/\bmounts\[(\d+)\]/g, (_, index: string) => `mounts[${Number(index) - 1}]`)
    return message === error.message ? error : reworded(error, message)
  }
  const hint = error.code === 'invalid' ? `cd PROJECT && glovebox run --here -- …` : error.hint
  return reworded(error, `--here: ${rest}`, hint)
}

/** A policy may have taken the overlay away; then nothing is run rather than run for nothing. */
export function checkHere({ spec }: SandboxInfo): void {
  if (spec.mounts.some((mount) => mount.target === target && mount.mode === 'overlay')) return
  throw new SandboxError('unsupported', '--here: the policy in force does not allow mounts with an overlay', { hint: 'glovebox policy show' })
}

export interface Ended {
  readonly platform: Platform
  readonly info: SandboxInfo
  readonly command: readonly string[]
}

/** Keeps what was written; the folder is not touched. Undefined when nothing was changed. */
export async function keepChanges({ folder, startedMs }: Here, { platform, info, command }: Ended): Promise<ChangeSet | undefined> {
  const written = await platform.changes.written(info.id, target)
  const user = info.spec.user === 'root' || (await hasRoot(platform, info)) ? 'root' : 'user'
  const content = (path: string): AsyncIterable<Uint8Array> => contentOf(platform, { id: info.id, path: `${target}/${path}`, user })
  return createChangeStore().take({ folder, command, startedMs, written, content, mostBytes: info.spec.limits.diskBytes })
}

async function hasRoot(platform: Platform, { driver }: SandboxInfo): Promise<boolean> {
  return (await platform.probe()).some((probe) => probe.driver === driver && probe.users.root.available)
}

interface Content {
  readonly id: string
  readonly path: string
  readonly user: 'user' | 'root'
}

/** What its owner may not read can be opened by its owner; its mode was told before. */
async function* contentOf(platform: Platform, { id, path, user }: Content): AsyncGenerator<Uint8Array, void, undefined> {
  const files = platform.files.of(id)
  const opened = await files.read(path, { user }).catch(async (error: unknown) => {
    if (!(error instanceof SandboxError) || error.code !== 'denied') throw error
    await files.chmod(path, 0o600, { user })
    return files.read(path, { user })
  })
  yield* opened.bytes
}

/** On stderr: stdout is the program's. */
export async function sayChanges(set: ChangeSet | undefined, { quiet }: { readonly quiet: boolean }): Promise<void> {
  if (set === undefined) {
    if (!quiet) say('nothing was changed')
    return
  }
  const colors = colorsFor(process.stderr)
  const [id, count] = [set.id.slice(0, 8), set.changes.length]
  if (!quiet) {
    for await (const line of changePage({ set, store: createChangeStore(), colors, isShort: true })) process.stderr.write(`${line}\n`)
  }
  const ways = `${asTyped(`glovebox apply ${id}`)} takes them over, ${asTyped(`glovebox drop ${id}`)} forgets them`
  say(`${count} ${count === 1 ? 'change' : 'changes'} of ${set.folder} kept aside: ${ways}`)
}

export function changesReport({ id, folder, createdAt, command, changes, skipped }: ChangeSet) {
  const rows = changes.map((change) => ({ change: letterOf(change), ...change }))
  return { id, folder, createdAt, command, changes: rows, skipped }
}
