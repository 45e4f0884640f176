/** What is written beside a template's files when it is built. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as z from 'zod'
import { deferred } from '../contract/deferred.js'
import { SandboxError } from '../contract/errors.js'
import type { TemplateInfo } from '../contract/templates.js'
import { templateIdSchema } from '../contract/templates.js'

export const recordFile = 'record.json'
/** There when it was found to be damaged. */
export const damagedNote = 'damaged'

export interface StoredTemplate {
  readonly info: TemplateInfo
  /** The folder of all that belongs to it; its files are below `root`. */
  readonly object: string
}

const recordSchema = deferred(() =>
  z.strictObject({
    schema: z.literal('glovebox-template/1'),
    id: templateIdSchema,
    recipe: z.string(),
    summary: z.string(),
    builtAt: z.string(),
    bytes: z.int().min(0),
    entries: z.int().min(0),
    shell: z.string(),
    env: z.record(z.string(), z.string()),
    system: z.string(),
    arch: z.string(),
    python: z.string().optional(),
    languages: z.array(z.strictObject({ name: z.string(), version: z.string().optional() })).optional(),
    image: z
      .strictObject({
        source: z.string(),
        digest: templateIdSchema,
        user: z.string(),
        workdir: z.string(),
        entrypoint: z.array(z.string()),
        cmd: z.array(z.string()),
        labels: z.record(z.string(), z.string()),
        leftOut: z.array(z.strictObject({ path: z.string(), why: z.string() })),
        leftOutCount: z.int().min(0),
      })
      .optional(),
    packages: z.array(z.strictObject({ name: z.string(), version: z.string() })),
    inputs: z.string(),
  }),
)

export function recordText({ name: _name, ...info }: TemplateInfo): string {
  return `${JSON.stringify({ schema: 'glovebox-template/1', ...info })}\n`
}

/** Throws SandboxError('broken') when it is gone or not what was written. */
export function readRecord({ name, id, object }: { readonly name: string; readonly id: string; readonly object: string }): StoredTemplate {
  try {
    const { schema: _schema, python, languages, image, ...rest } = recordSchema.parse(JSON.parse(readFileSync(join(object, recordFile), 'utf8')))
    if (rest.id !== id) throw new Error(`it is of ${rest.id}`)
    const found = languages?.map(({ name: language, version }) => ({ name: language, ...(version !== undefined && { version }) }))
    return { object, info: { name, ...rest, ...(python !== undefined && { python }), ...(found && { languages: found }), ...(image && { image }) } }
  } catch (error) {
    throw new SandboxError('broken', `template ${name} is damaged: its record cannot be read`, { hint: `glovebox template build ${name}`, cause: error })
  }
}
