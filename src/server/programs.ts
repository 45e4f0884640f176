/** Programs as callers over HTTP have them: by a view that lives as long as the stream that tells of it, or by pid or tag. */
import { SandboxError } from '../contract/errors.js'
import type { PlatformProcess } from '../contract/platform.js'
import type { Ending, Outcome } from '../contract/run.js'
import { fromBase64, joinBytes } from '../contract/wire/frames.js'
import type { WireEvent } from './answers.js'
import type { Call } from './call.js'
import type { Desk } from './desk.js'
import { leaving } from './leaving.js'

export interface Place {
  readonly params: { readonly id: string; readonly process: string }
}

const prefixes = { view: 'view:', tag: 'tag:' } as const

/** From where a view begins to where it ends. */
interface Outlook {
  readonly replay?: boolean | undefined
  readonly follow?: boolean | undefined
}

/** `7`, `tag:NAME` or `view:ID`. */
export async function findProcess(desk: Desk, call: Pick<Call, 'platform' | 'actor' | 'signal'> & Place, outlook: Outlook = {}): Promise<PlatformProcess> {
  const { platform, actor, params, signal } = call
  const { id, process } = params
  if (process.startsWith(prefixes.view)) {
    const name = process.slice(prefixes.view.length)
    const view = desk.views.find(actor.tenant, name) ?? desk.endedViews.get(actor.tenant, name)
    if (view.sandbox !== id) throw new SandboxError('not-found', 'there is no such process here')
    return view.process
  }
  const { replay, follow } = outlook
  const options = { signal, ...(replay !== undefined && { replay }), ...(follow !== undefined && { follow }) }
  if (process.startsWith(prefixes.tag)) return platform.processes.attach(id, process.slice(prefixes.tag.length), options)
  if (/^[1-9]\d{0,9}$/.test(process)) return platform.processes.attach(id, Number(process), options)
  throw new SandboxError('invalid', "process: must be a pid, or 'tag:' and a tag")
}

/** The bytes of the body, in turn; then, where that was asked for, the end of its input. */
export async function feed(process: PlatformProcess, { pieces, query }: Pick<Call<'processes.stdin'>, 'pieces' | 'query'>): Promise<void> {
  for await (const piece of pieces) await process.write(piece)
  if (query.end) await process.endInput()
}

/** What it prints from where the view begins, and how it ends, unless nobody is to wait for that. */
export async function* outputOf(process: PlatformProcess, gone: AbortSignal, { follow = true }: Outlook): AsyncGenerator<WireEvent, void, undefined> {
  yield* leaving(process.output, gone)
  if (gone.aborted || !follow) return
  yield { type: 'ended', ending: await process.ended }
}

/** A signal that is over when what it is for has begun. */
export async function whileStarting<Started>(signal: AbortSignal, start: (signal: AbortSignal) => Promise<Started>): Promise<Started> {
  const starting = new AbortController()
  const abort = (): void => starting.abort(signal.reason)
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await start(starting.signal)
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

export interface Captured extends Ending {
  readonly exitCode?: number
  readonly stdout: string
  readonly stderr: string
  readonly stdoutBase64?: string
  readonly stderrBase64?: string
}

/** All that it prints, and how it ended. */
export async function capture(process: PlatformProcess, gone: AbortSignal): Promise<Captured> {
  const kept = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] }
  // The memory of a piece may be used again once the next is asked for.
  for await (const { type, bytes } of leaving(process.output, gone)) kept[type].push(Uint8Array.from(bytes))
  const ending = await process.ended
  return { ...ending, ...exitCodeOf(ending.outcome), ...textOf('stdout', joinBytes(kept.stdout)), ...textOf('stderr', joinBytes(kept.stderr)) }
}

function exitCodeOf(outcome: Outcome): { readonly exitCode?: number } {
  return outcome.kind === 'exited' ? { exitCode: outcome.code } : {}
}

/** The text, what is none as U+FFFD; and, only when that lost something, the bytes themselves. */
function textOf<Name extends 'stdout' | 'stderr'>(name: Name, bytes: Uint8Array): Readonly<Record<Name, string>> {
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)
  const isWhole = Buffer.from(text).equals(bytes)
  return { [name]: text, ...(!isWhole && { [`${name}Base64`]: Buffer.from(bytes).toString('base64') }) } as Readonly<Record<Name, string>>
}

/** All of the input that came with the request. */
export function inputBytes(input: unknown): Uint8Array | undefined {
  if (input === undefined) return undefined
  if (typeof input === 'string') return new TextEncoder().encode(input)
  const { base64 } = (typeof input === 'object' && input !== null ? input : {}) as { readonly base64?: unknown }
  const bytes = typeof base64 === 'string' ? fromBase64(base64) : undefined
  if (bytes === undefined) throw new SandboxError('invalid', "input: must be a string, or { base64: '…' }")
  return bytes
}

/** A program that reads no further, or ended before, is no failure. */
export function feedAll(process: PlatformProcess, input: Uint8Array | undefined): void {
  if (input === undefined) return
  void process
    .write(input)
    .then(() => process.endInput())
    .catch(() => undefined)
}
