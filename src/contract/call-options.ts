import { SandboxError } from './errors.js'
import { kindOf, plainObjectRefusal } from './plain-object.js'
import type { CallOptions } from './platform.js'

const signalMethods = ['addEventListener', 'removeEventListener', 'throwIfAborted'] as const

/** What is wrong with the options of a call, of which all but `signal` are someone else's to judge; undefined when nothing is. */
export function callOptionsRefusal(options: unknown, field = 'options'): SandboxError | undefined {
  return plainObjectRefusal(options, field) ?? signalRefusal((options as CallOptions).signal)
}

/** The options of a call that has no others than these. Throws SandboxError('invalid') when they are none, their signal is none, or there are more. */
export function checkCallOptions<Options extends CallOptions>(options: Options, known: readonly (keyof Options)[] = ['signal']): Options {
  const refusal = callOptionsRefusal(options) ?? unknownOptionRefusal(options, known as readonly string[])
  if (refusal) throw refusal
  return options
}

/** What is misspelled would be passed over without a word. */
export function unknownOptionRefusal(options: object, known: readonly string[]): SandboxError | undefined {
  const unknown = Object.keys(options).filter((name) => !known.includes(name))
  if (unknown.length === 0) return undefined
  return new SandboxError(
    'invalid',
    unknown
      .slice(0, 5)
      .map((name) => `${shown(name)}: is not a known field`)
      .join('; '),
  )
}

/** Short, and nothing in it drives a terminal. */
function shown(name: string): string {
  return name.slice(0, 60).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '\ufffd')
}

function signalRefusal(signal: unknown): SandboxError | undefined {
  if (signal === undefined || isSignal(signal)) return undefined
  return new SandboxError('invalid', `signal: expected an AbortSignal, got ${kindOf(signal)}`)
}

/** By what it can do: an AbortSignal may come from another realm, or from a library. */
function isSignal(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  const signal = value as AbortSignal
  return typeof signal.aborted === 'boolean' && signalMethods.every((name) => typeof signal[name] === 'function')
}

/** Settles as what it is given, but rejects with the reason of the signal when that aborts first. */
export async function unlessAborted<Value>(pending: Promise<Value>, signal: AbortSignal | undefined): Promise<Value> {
  let stop = (): void => undefined
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal?.reason)
    if (signal?.aborted) stop()
    signal?.addEventListener('abort', stop, { once: true })
  })
  try {
    return await Promise.race([aborted, pending])
  } finally {
    signal?.removeEventListener('abort', stop)
  }
}
