import type * as z from 'zod'
import { isPlainCommand } from '../contract/plain-command.js'
import { plainObjectRefusal } from '../contract/plain-object.js'
import type { runRequestSchema } from '../contract/run.js'

/** What the schema makes of a request for a program as most are asked for, without the schema; undefined for every other, about which the schema decides. */
export function plainRequest(request: unknown): z.output<typeof runRequestSchema> | undefined {
  if (plainObjectRefusal(request, 'run')) return undefined
  const { command, stdin = false, output, ...rest } = request as Readonly<Record<string, unknown>>
  if (!isPlainCommand(command) || typeof stdin !== 'boolean' || Reflect.ownKeys(rest).length > 0) return undefined
  const isCaptured = output !== undefined
  if (isCaptured && (plainObjectRefusal(output, 'output') || Reflect.ownKeys(output as object).length > 0)) return undefined
  return { command: [...command], env: {}, stdin, background: false, limits: {}, ...(isCaptured && { output: { onLimit: 'kill' as const } }) }
}
