import { inspect } from 'node:util'
import pico from 'picocolors'
import type { ErrorCode } from '../contract/errors.js'
import { errorTable, SandboxError } from '../contract/errors.js'
import { wellFormed } from '../contract/path-text.js'
import { nameFlags } from './flag-names.js'
import { writeOut } from './streams.js'

export type Colors = ReturnType<typeof pico.createColors>

/** Colours only where a person looks: a terminal that did not ask to be spared. */
export function colorsFor(stream: { readonly isTTY?: boolean }): Colors {
  const wanted = stream.isTTY === true && !process.env.NO_COLOR && process.env.TERM !== 'dumb'
  return pico.createColors(wanted)
}

// C0, DEL and C1 drive terminals; line separators and the bidirectional controls make a line read as another one; half a pair of surrogates is no character.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is escaped here
const controls = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]/gu

/** Text of unknown origin, safe to put into a line of ours: no byte of it can move the cursor or forge a second line. */
export function escapeControls(text: string): string {
  return text.replace(controls, (character) => {
    if (character === '\n') return '\\n'
    if (character === '\t') return '\\t'
    // A byte of a path that is no UTF-8.
    const code = (character.codePointAt(0) ?? 0) - (/[\udc80-\udcff]/u.test(character) ? 0xdc00 : 0)
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`
  })
}

/** One object, one line. The controls that JSON itself leaves alone are escaped too, so that a terminal may show it. */
export function toJsonLine(value: unknown): string {
  return `${JSON.stringify(value, (_key, each: unknown) => (typeof each === 'string' ? wellFormed(each) : each)).replace(controls, (character) => `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`)}\n`
}

/** A line of ours on stderr. */
export function say(message: string): void {
  process.stderr.write(`${colorsFor(process.stderr).dim('glovebox:')} ${escapeControls(message)}\n`)
}

/** Rejects when stdout does not take it. */
export function printJson(value: unknown): Promise<void> {
  return writeOut(toJsonLine(value))
}

/** How we are to be called again: './glovebox' in a clone, whose script says so. */
export function ownName(): string {
  const name = process.env.GLOVEBOX_NAME ?? ''
  return /^[\w./-]+$/.test(name) ? name : 'glovebox'
}

/** A command of ours as it has to be typed here. */
export function asTyped(command: string): string {
  return command.replace(/^(sudo )?(?:\.\/)?glovebox(?= )/, (_, sudo: string | undefined) => `${sudo ?? ''}${ownName()}`)
}

/** A word as a shell takes it back. */
export function inShell(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}

interface Failure {
  readonly code: ErrorCode
  readonly message: string
  readonly hint: string | undefined
}

/** The next act where whoever threw could not know that it was asked by a command line. */
const usualHints: Partial<Record<ErrorCode, string>> = { invalid: 'glovebox run --help', unsupported: 'glovebox doctor', unavailable: 'glovebox doctor' }

function failureOf(error: unknown): Failure {
  if (error instanceof SandboxError) {
    const hint = error.hint ?? usualHints[error.code]
    return { code: error.code, message: nameFlags(error.message), hint: hint && asTyped(hint) }
  }
  const message = error instanceof Error ? error.message : String(error)
  return { code: 'internal', message, hint: `GLOVEBOX_DEBUG=1 ${ownName()} …` }
}

/** Says what went wrong on our side and how to go on. Resolves to the exit code; rejects when JSON is wanted and stdout does not take it. */
export async function printFailure(error: unknown, options: { readonly json: boolean }): Promise<number> {
  const failure = failureOf(error)
  if (process.env.GLOVEBOX_DEBUG) process.stderr.write(`${inspect(error)}\n`)
  if (options.json) await printJson({ error: { code: failure.code, message: failure.message, ...(failure.hint === undefined ? {} : { hint: failure.hint }) } })
  else {
    const colors = colorsFor(process.stderr)
    process.stderr.write(`${colors.red('glovebox:')} ${escapeControls(failure.message)}\n`)
    if (failure.hint !== undefined) process.stderr.write(`${colors.cyan('hint:')} ${escapeControls(failure.hint)}\n`)
  }
  return errorTable[failure.code].exitCode
}
