import { callOptionsRefusal, unknownOptionRefusal } from '../contract/call-options.js'
import type { CodeRequest, ContextInfo } from '../contract/code.js'
import { SandboxError } from '../contract/errors.js'
import { kindOf } from '../contract/plain-object.js'
import type { CallOptions } from '../contract/platform.js'
import type { Result } from './code-result.js'

export interface CodeOptions extends CallOptions, Pick<CodeRequest, 'language' | 'env' | 'timeout' | 'artifacts'> {
  /** An id, or what `contexts.create()` gave; the default context of the language when not given. */
  readonly context?: string | Pick<ContextInfo, 'id'>
  /**
   * What the code reads as input: a text, or its lines, and then the end. `true`: it asks, by events of the type `ask`, which `answer()` answers. Without this and without
   * `onInput` reading is refused.
   */
  readonly input?: boolean | string | readonly string[]
  /** Asked for each line that the code reads; null or undefined is the end of input. */
  readonly onInput?: (prompt: string, about: { readonly isSecret: boolean }) => string | null | undefined | Promise<string | null | undefined>
  /** Called with each piece of output as it comes; a promise is waited for. What it throws ends the execution, and is thrown. */
  readonly onStdout?: (text: string) => unknown
  readonly onStderr?: (text: string) => unknown
  readonly onResult?: (result: Result) => unknown
}

const requestFields = ['language', 'context', 'env', 'timeout', 'artifacts'] as const
const callbackFields = ['onInput', 'onStdout', 'onStderr', 'onResult'] as const
export const codeFields = ['signal', 'input', ...requestFields, ...callbackFields] as const

/** The rest is judged by the platform, which knows the sandbox. */
export function codeOptionsRefusal(options: CodeOptions, known: readonly string[] = codeFields): SandboxError | undefined {
  const refusal = callOptionsRefusal(options) ?? unknownOptionRefusal(options, known)
  if (refusal) return refusal
  const { input } = options
  for (const name of callbackFields) {
    const given: unknown = options[name]
    if (given !== undefined && typeof given !== 'function') return new SandboxError('invalid', `${name}: expected a function, got ${kindOf(given)}`)
  }
  if (input !== undefined && !isInput(input)) {
    return new SandboxError('invalid', `input: expected true, false, a text or an array of lines, got ${kindOf(input)}`)
  }
  if (input !== undefined && options.onInput !== undefined) return new SandboxError('invalid', 'onInput: cannot be given together with input')
  return undefined
}

function isInput(input: unknown): boolean {
  return typeof input === 'boolean' || typeof input === 'string' || (Array.isArray(input) && input.every((line) => typeof line === 'string'))
}

/** As the platform takes it. */
export function codeRequest(code: string, options: CodeOptions): CodeRequest {
  const { language, context, env, timeout, artifacts, input, onInput } = options
  return {
    code,
    ...(language !== undefined && { language }),
    ...(context !== undefined && { context: idOf(context) }),
    ...(env !== undefined && { env }),
    ...(timeout !== undefined && { timeout }),
    ...(artifacts !== undefined && { artifacts }),
    input: onInput !== undefined || (input !== undefined && input !== false),
  }
}

/** What is neither is left to the platform to refuse. */
export function idOf(context: string | Pick<ContextInfo, 'id'>): string {
  return typeof context === 'object' && (context as unknown) !== null ? context.id : (context as string)
}

/** Lines that were given beforehand, one after another. */
export function linesOf(input: CodeOptions['input']): string[] {
  if (input === undefined || typeof input === 'boolean') return []
  if (typeof input !== 'string') return [...input]
  const lines = input.split('\n')
  // A text ends with the end of its last line.
  if (lines.at(-1) === '') lines.pop()
  return lines
}
