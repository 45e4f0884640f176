/** `run --here`: the folder we were started in as a sandbox's workspace, and what became of it there. */
import { realpathSync } from 'node:fs'
import { createChangeStore } from '../compose.js'
import type { ChangeSet, PathState } from '../contract/changes.js'
import { reworded, SandboxError } from '../contract/errors.js'
import { pathBytes, wellFormed } from '../contract/path-text.js'
import type { Platform, SandboxInfo } from '../contract/platform.js'
import { durationInUnits } from '../contract/quantities.js'
import type { Mount, SpecInput } from '../contract/spec.js'
import { changePage, letterOf } from './change-page.js'
import { refuseFlag } from './flag-values.js'
import { changesInWords, lineCount } from './listed-changes.js'
import { shortPage } from './page-bounds.js'
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

/** A short `--timeout` is for the command, and no reason to lose what it wrote. */
const leastKeepMs = 60_000

/** Keeps what was written; the folder is not touched. Undefined when nothing was changed. Takes at most as long as the command might have. */
export async function keepChanges({ folder, startedMs }: Here, { platform, info, command }: Ended): Promise<ChangeSet | undefined> {
  const { timeMs, diskBytes } = info.spec.limits
  using time = boundTime(Math.max(timeMs, leastKeepMs))
  const { signal } = time
  const written = await platform.changes.written(info.id, target, { signal })
  const user = info.spec.user === 'root' || (await hasRoot(platform, info)) ? 'root' : 'user'
  const content = (path: string): AsyncIterable<Uint8Array> => contentOf(platform, { id: info.id, path: pathBytes(`${target}/${path}`), user, signal })
  return await createChangeStore().take({ folder, command, startedMs, written, content, mostBytes: diskBytes, signal })
}

function boundTime(ms: number): Disposable & { readonly signal: AbortSignal } {
  const controller = new AbortController()
  const late = new SandboxError('expired', `--here: what was written could not be read within ${durationInUnits(ms, Math.round)}, and nothing of it was kept`, {
    hint: 'glovebox run --timeout 10m --here -- …',
  })
  const timer = setTimeout(() => controller.abort(late), ms)
  return { signal: controller.signal, [Symbol.dispose]: () => clearTimeout(timer) }
}

async function hasRoot(platform: Platform, { driver }: SandboxInfo): Promise<boolean> {
  return (await platform.probe()).some((probe) => probe.driver === driver && probe.users.root.available)
}

interface Content {
  readonly id: string
  readonly path: Uint8Array
  readonly user: 'user' | 'root'
  readonly signal: AbortSignal
}

/** What its owner may not read can be opened by its owner; its mode was told before. */
async function* contentOf(platform: Platform, { id, path, ...options }: Content): AsyncGenerator<Uint8Array, void, undefined> {
  const files = platform.files.of(id)
  const opened = await files.read(path, options).catch(async (error: unknown) => {
    if (!(error instanceof SandboxError) || error.code !== 'denied') throw error
    await files.chmod(path, 0o600, options)
    return files.read(path, options)
  })
  yield* opened.bytes
}

/** What is shown at the end of a run is shown soon, or only counted. */
const mostPageMs = 10_000

interface Saying {
  readonly quiet: boolean
  /** What the command was given. */
  readonly timeMs: number
}

/** On stderr: stdout is the program's. */
export async function sayChanges(set: ChangeSet | undefined, { quiet, timeMs }: Saying): Promise<void> {
  if (set === undefined) {
    if (!quiet) say('nothing was changed')
    return
  }
  const colors = colorsFor(process.stderr)
  const id = set.id.slice(0, 8)
  if (!quiet) {
    const signal = AbortSignal.timeout(Math.min(timeMs, mostPageMs))
    const page = { set, store: createChangeStore(), colors, bounds: shortPage, more: `glovebox changes ${id}`, signal }
    for await (const line of changePage(page)) process.stderr.write(`${line}\n`)
  }
  const them = lineCount(set.changes) === 1 ? 'it' : 'them'
  const ways = `${asTyped(`glovebox apply ${id}`)} takes ${them} over, ${asTyped(`glovebox drop ${id}`)} forgets ${them}`
  say(`${changesInWords(set.changes)} of ${set.folder} kept aside: ${ways}`)
}

export function changesReport({ id, folder, createdAt, command, changes, skipped }: ChangeSet) {
  const rows = changes.map((change) => {
    const { path, before, after, ...rest } = change
    return { change: letterOf(change), ...pathReport(path), before: stateReport(before), after: stateReport(after), ...rest }
  })
  return { id, folder, createdAt, command, changes: rows, skipped: skipped.map(({ path, why }) => ({ ...pathReport(path), why })) }
}

function stateReport(state: PathState) {
  return state.type === 'link' ? { ...state, ...base64Of('target', state.target) } : state
}

/** With its bytes only where they are no text. */
function pathReport(path: string) {
  return { path, ...base64Of('path', path) }
}

function base64Of(name: string, text: string): Record<string, string> {
  return wellFormed(text) === text ? {} : { [`${name}Base64`]: Buffer.from(pathBytes(text)).toString('base64') }
}
