/** The options of programs by the names that users know them by. */
import { callOptionsRefusal, unknownOptionRefusal } from '../contract/call-options.js'
import { reworded, SandboxError } from '../contract/errors.js'
import { type Command, onOutputLimit as waysAtLimit, type RunRequest } from '../contract/run.js'
import type { RunOptions } from './sandbox.js'

const programFields = ['signal', 'cwd', 'env', 'user', 'timeout', 'limits'] as const
const runFields = [...programFields, 'stdin', 'output', 'onOutputLimit'] as const
export const spawnFields = [...programFields, 'stdin', 'tag'] as const
export const terminalFields = [...programFields, 'tag', 'command', 'cols', 'rows'] as const

/** What is wrong is told by the name that the caller knows it by. */
export async function withOwnNames<Result>(act: () => Promise<Result>, names: Readonly<Record<string, string>>): Promise<Result> {
  try {
    return await act()
  } catch (error) {
    const [name, own] = Object.entries(names).find(([name]) => error instanceof SandboxError && error.message.includes(`${name}: `)) ?? []
    if (!(error instanceof SandboxError) || name === undefined) throw error
    throw reworded(error, error.message.replaceAll(`${name}: `, `${own ?? name}: `))
  }
}

/** The rest is judged by the platform, which knows the sandbox's limits; this one it knows under another name. */
export function runOptionsRefusal(options: RunOptions, more: readonly string[] = []): SandboxError | undefined {
  const refusal = callOptionsRefusal(options) ?? unknownOptionRefusal(options, [...runFields, ...more])
  if (refusal) return refusal
  const { onOutputLimit } = options
  if (onOutputLimit === undefined || waysAtLimit.includes(onOutputLimit)) return undefined
  return new SandboxError('invalid', `onOutputLimit: expected one of ${waysAtLimit.map((way) => `'${way}'`).join(', ')}`)
}

/** As the platform takes it. */
export function runRequest(command: Command, options: RunOptions, { captured }: { readonly captured: boolean }): RunRequest {
  const { signal: _signal, stdin, output, onOutputLimit, ...rest } = options
  const kept = { ...(output !== undefined && { limit: output }), ...(onOutputLimit !== undefined && { onLimit: onOutputLimit }) }
  return { ...rest, command, stdin: stdin !== undefined, ...(captured && { output: kept }) }
}
