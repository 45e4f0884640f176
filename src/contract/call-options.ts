import { SandboxError } from './errors.js'
import { kindOf, plainObjectRefusal } from './plain-object.js'
import type { CallOptions } from './platform.js'

const signalMethods = ['addEventListener', 'removeEventListener', 'throwIfAborted'] as const

/** What is wrong with the options of a call, of which all but `signal` are someone else's to judge; undefined when nothing is. */
export function callOptionsRefusal(options: unknown, field = 'options'): SandboxError | undefined {
  return plainObjectRefusal(options, field) ?? signalRefusal((options as CallOptions).signal)
}

/** The options of a call. Throws SandboxError('invalid') when they are none, or their signal is none. */
export function checkCallOptions<Options extends CallOptions>(options: Options, field = 'options'): Options {
  const refusal = callOptionsRefusal(options, field)
  if (refusal) throw refusal
  return options
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
