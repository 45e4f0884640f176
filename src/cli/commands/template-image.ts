import { statSync } from 'node:fs'
import { templateBuilder } from '../../compose.js'
import { SandboxError } from '../../contract/errors.js'
import { durationSchema } from '../../contract/quantities.js'
import type { BuildEvent, BuildResult } from '../../contract/templates.js'
import { exitCodes } from '../exit-codes.js'
import { parseFlag } from '../flag-values.js'
import { watchInterrupts } from '../interrupts.js'
import { parseLimitFlags } from '../limit-flags.js'
import { escapeControls, printJson, say } from '../print.js'
import { writeOut } from '../streams.js'
import { showProgress } from '../template-progress.js'
import { bytesInWords, durationInWords } from '../words.js'

interface MakeFlags {
  readonly name?: string
  readonly again?: true
  readonly quiet?: true
  readonly json?: true
}

export type ImportFlags = MakeFlags

export interface PullFlags extends MakeFlags {
  readonly login?: string
  readonly passwordStdin?: true
  readonly plainHttp?: true
  readonly timeout?: string
}

export interface FolderFlags extends MakeFlags {
  readonly file?: string
  readonly target?: string
  readonly buildArg?: readonly string[]
  readonly allow?: readonly string[]
  /** What commander makes of --no-cache. */
  readonly cache?: boolean
  readonly pull?: true
  readonly memory?: string
  readonly disk?: string
  readonly timeout?: string
}

export interface PruneFlags {
  readonly packages?: true
  readonly dryRun?: true
  readonly json?: true
}

interface Making {
  readonly signal: AbortSignal
  readonly onEvent: (event: BuildEvent) => void
}

export function pullTemplate(image: string, flags: PullFlags): Promise<number> {
  return make(flags, async (making) => {
    const login = await loginOf(flags)
    const idleMs = parseFlag('--timeout', () => durationSchema({ min: 1, max: 3_600_000, example: '30s' }), flags.timeout)
    const own = { ...named(flags), ...(login && { login }), ...(idleMs !== undefined && { idleMs }), isPlain: flags.plainHttp === true }
    return templateBuilder().pull(image, { ...making, ...own })
  })
}

export function importTemplate(file: string, flags: ImportFlags): Promise<number> {
  return make(flags, (making) => templateBuilder().import(file, { ...making, ...named(flags) }))
}

export function buildFolder(folder: string, flags: FolderFlags): Promise<number> {
  return make(flags, (making) => {
    const { memory, disk, timeout, file, target, allow } = flags
    const limits = parseLimitFlags({ ...(memory && { memory }), ...(disk && { disk }), ...(timeout && { timeout }) })
    const wanted = { ...(file !== undefined && { file }), ...(target !== undefined && { target }), args: argumentsOf(flags.buildArg ?? []) }
    const how = { limits, ...(allow && { network: { allow: [...allow] } }), isFresh: flags.cache === false, isPulled: flags.pull === true }
    return templateBuilder().buildFolder(folder, { ...making, ...named(flags), ...wanted, ...how })
  })
}

/** A path, rather than the name of a recipe. */
export function isFolder(text: string): boolean {
  return text.includes('/') || text === '.' || text === '..'
}

/** For a recipe that there is not. */
export function folderHint(text: string): string | undefined {
  return statSync(text, { throwIfNoEntry: false })?.isDirectory() === true ? `glovebox template build ./${text}` : undefined
}

async function make(flags: MakeFlags, act: (making: Making) => Promise<BuildResult>): Promise<number> {
  using interrupts = watchInterrupts()
  using progress = showProgress({ isQuiet: flags.quiet === true })
  const { signal } = interrupts
  const result = await act({ signal, onEvent: progress.tell }).catch((error: unknown) => {
    throw signal.aborted ? signal.reason : error
  })
  progress[Symbol.dispose]()
  if (flags.json) await printJson(result)
  else {
    const how = result.wasThere ? 'is up to date' : `was made in ${durationInWords(result.tookMs)}`
    await writeOut(`template ${result.name} ${how}: ${result.id} (${bytesInWords(result.bytes)})\n`)
    if (!flags.quiet) tellLeftOut(result)
  }
  return exitCodes.ok
}

const mostTold = 5

function tellLeftOut({ name, image, wasThere }: BuildResult): void {
  if (image === undefined || image.leftOutCount === 0 || wasThere) return
  for (const { path, why } of image.leftOut.slice(0, mostTold)) say(`not as in the image: ${escapeControls(path)} ${why}`)
  if (image.leftOutCount > mostTold) say(`and ${image.leftOutCount - mostTold} more: glovebox template inspect ${name}`)
}

function named({ name, again }: MakeFlags): { name?: string; again: boolean } {
  return { ...(name !== undefined && { name }), again: again === true }
}

async function loginOf({ login, passwordStdin }: PullFlags): Promise<{ user: string; secret: string } | undefined> {
  if (login === undefined) return undefined
  const secret = passwordStdin ? await fromStdin() : process.env.GLOVEBOX_REGISTRY_PASSWORD
  if (secret === undefined || secret === '')
    throw new SandboxError('invalid', '--login: there is no password', { hint: 'glovebox template pull --login USER --password-stdin docker://…' })
  return { user: login, secret }
}

async function fromStdin(): Promise<string> {
  let text = ''
  for await (const piece of process.stdin) text = `${text}${String(piece)}`.slice(0, 65_536)
  return text.replace(/\r?\n$/, '')
}

function argumentsOf(given: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    given.map((text): [string, string] => {
      const equals = text.indexOf('=')
      if (equals < 1) throw new SandboxError('invalid', `--build-arg: '${text.slice(0, 40)}' is no NAME=VALUE`)
      return [text.slice(0, equals), text.slice(equals + 1)]
    }),
  )
}

export async function pruneTemplates(flags: PruneFlags): Promise<number> {
  using interrupts = watchInterrupts()
  const { signal } = interrupts
  const found = await templateBuilder().prune({ signal, packages: flags.packages === true, isTrial: flags.dryRun === true })
  const bytes = found.reduce((sum, each) => sum + each.bytes, 0)
  if (flags.json) await printJson({ [flags.dryRun ? 'found' : 'removed']: found, bytes })
  else {
    for (const each of found) if (each.bytes > 0 || each.count > 0) await writeOut(`${each.what}: ${bytesInWords(each.bytes)}\n`)
    await writeOut(`${bytesInWords(bytes)} ${flags.dryRun ? 'can be freed' : 'freed'}\n`)
  }
  return exitCodes.ok
}
