/** What may be asked of snapshots. Throws SandboxError('invalid') naming the field. */
import * as z from 'zod'
import { deferred } from '../contract/deferred.js'
import { SandboxError } from '../contract/errors.js'
import { plainObjectRefusal } from '../contract/plain-object.js'
import { type ForkOptions, type SnapshotInfo, snapshotNameSchema, snapshotReferenceSchema } from '../contract/snapshots.js'
import { labelSchema, specSchema } from '../contract/spec.js'
import { parseObject, parseWith } from './refusal.js'

const mostForks = 1000

const forkSchema = deferred(() =>
  z.strictObject({
    count: z.int().min(1).max(mostForks),
    name: labelSchema.optional(),
    metadata: specSchema.shape.metadata.optional(),
  }),
)

export interface ForkPlan extends Pick<ForkOptions, 'name' | 'metadata'> {
  readonly count: number
}

export function parseFork(count: unknown, { name, metadata }: Pick<ForkOptions, 'name' | 'metadata'>): ForkPlan {
  const parsed = parseObject(forkSchema, { count, name, metadata }, { what: 'fork', objects: ['metadata'] })
  return {
    count: parsed.count,
    ...(parsed.name !== undefined && { name: parsed.name }),
    ...(parsed.metadata !== undefined && { metadata: parsed.metadata }),
  }
}

export function parseSnapshotName(name: unknown): string {
  return parseWith(snapshotNameSchema, name, 'name')
}

/** Of a snapshot, by id or name. */
export function parseReference(reference: unknown, field: string): string {
  return parseWith(snapshotReferenceSchema, reference, field)
}

/** The snapshot that a spec names. What is wrong with the rest of the spec is for others to say. */
export function referenceIn(spec: unknown): string | undefined {
  const refusal = plainObjectRefusal(spec, 'spec')
  if (refusal) throw refusal
  const { from } = spec as { readonly from?: unknown }
  return from === undefined ? undefined : parseReference(from, 'from')
}

/** A spec that says nothing of a template means that of its snapshot. */
export function withTemplateOf<Input extends { readonly template?: unknown }>(spec: Input, template: string): Input {
  return spec.template === undefined ? { ...spec, template } : spec
}

/** The same name may be other files by now. */
export function templateIdRefusal(
  field: string,
  now: string | undefined,
  snapshot: Pick<SnapshotInfo, 'id' | 'template' | 'templateId'>,
): SandboxError | undefined {
  if (now === snapshot.templateId) return undefined
  const word = (id: string | undefined): string => id?.slice(0, 'sha256:'.length + 12) ?? 'what the machine has'
  return new SandboxError(
    'conflict',
    `${field}: snapshot ${snapshot.id} is of template '${snapshot.template}' when it was ${word(snapshot.templateId)}; now it is ${word(now)}`,
    {
      hint: 'glovebox template ls',
    },
  )
}

/** What is written over another template's files would be something that never was. */
export function templateRefusal(field: string, asked: string, snapshot: { readonly id: string; readonly template: string }): SandboxError | undefined {
  if (asked === snapshot.template) return undefined
  return new SandboxError('invalid', `${field}: snapshot ${snapshot.id} is of template '${snapshot.template}', not of '${asked}'`)
}
