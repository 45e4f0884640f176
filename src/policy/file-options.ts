import type * as z from 'zod'
import { callOptionsRefusal } from '../contract/call-options.js'
import type { UserName } from '../contract/spec.js'
import { parseObject } from './refusal.js'

export type FileOptionsSchema = z.ZodType<{ readonly user?: UserName | undefined }>

export type ParsedOptions<Schema extends FileOptionsSchema> = z.output<Schema>

export interface FileOptionsParsed<Schema extends FileOptionsSchema> {
  readonly signal: AbortSignal | undefined
  readonly options: ParsedOptions<Schema>
}

/** The options of a call on files. Throws SandboxError('invalid') naming the field. */
export function parseFileOptions<Schema extends FileOptionsSchema>(schema: Schema, given: unknown): FileOptionsParsed<Schema> {
  const refusal = callOptionsRefusal(given)
  if (refusal) throw refusal
  const { signal, ...rest } = given as { readonly signal?: AbortSignal }
  return { signal, options: parseObject(schema, rest, { what: 'options', objects: [] }) }
}
