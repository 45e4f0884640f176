import * as z from 'zod'
import { expiryActs } from './lifetimes.js'
import type { Limits } from './limits.js'
import { limitsSchema } from './limits.js'
import { networkSchema } from './network.js'
import type { PolicyInput, PresetName } from './policy.js'
import { bytesSchema, durationSchema } from './quantities.js'
import { snapshotReferenceSchema } from './snapshots.js'
import { mountModes, rootModes, specDefaults, tiers, userNames } from './spec-words.js'

export type { RootMode, Tier, UserName } from './spec-words.js'

const noNul = (text: string): boolean => !text.includes('\0')

export const textSchema = z.string().refine(noNul, 'must not contain a NUL character')

export const envNameSchema = z
  .string()
  .min(1)
  .refine((name) => noNul(name) && !name.includes('='), 'a variable name must not contain = or a NUL character')

export const envSchema = z.record(envNameSchema, textSchema)

export const pathSchema = textSchema
  .refine((path) => path.startsWith('/'), 'must be an absolute path')
  .refine((path) => new TextEncoder().encode(path).length <= 4095, 'must be at most 4095 bytes')

export const labelSchema = z
  .string()
  .min(1)
  .max(200)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused here
  .regex(/^[^\u0000-\u001f\u007f]*$/, 'must not contain control characters')

/** A folder or file of the host's that a cell can see. */
export const mountSchema = z.strictObject({
  source: pathSchema,
  target: pathSchema,
  mode: z.enum(mountModes).default('ro'),
})

export type Mount = z.output<typeof mountSchema>

export const templateSchema = z.string().regex(/^[a-z0-9][a-z0-9._-]{0,62}$/, "must be a template's name, such as 'python'")
export const lifetimeSchema = durationSchema({ min: 1, max: 30 * 86_400_000, example: '5m' })
const idleSchema = durationSchema({ min: 100, max: 30 * 86_400_000, example: '5m' })
const ringSchema = bytesSchema({ min: 0, max: 64 * 2 ** 20, example: '1m' })
export const driverNameSchema = z.string().min(1).max(40)
export const commandsSchema = z.array(textSchema.min(1, 'must not be empty')).max(256)
export const seccompSchema = z.union([textSchema.min(1, 'must not be empty'), z.record(z.string(), z.unknown())])

/** What a user asks for when creating a sandbox. */
export const specSchema = z.strictObject({
  template: templateSchema.default(specDefaults.template),
  /** The snapshot that it begins with, by id or name; of the same template. */
  from: snapshotReferenceSchema.optional(),
  name: labelSchema.optional(),
  agent: labelSchema.optional(),
  metadata: z.record(labelSchema, z.string().max(4096)).default({}),
  limits: limitsSchema.default({}),
  /** From creation to closing, whatever runs; it stands still while the sandbox is paused. */
  lifetime: lifetimeSchema.default(specDefaults.lifetime),
  /** How long nothing may be asked of it and nothing work in it; any time when not given. */
  idle: idleSchema.optional(),
  /** What happens when its lifetime or its idle time is over. */
  onExpiry: z.enum(expiryActs).default(specDefaults.onExpiry),
  env: envSchema.default({}),
  /** Where runs start; the cell's workspace when not given. */
  cwd: pathSchema.optional(),
  user: z.enum(userNames).default(specDefaults.user),
  root: z.enum(rootModes).default(specDefaults.root),
  mounts: z.array(mountSchema).max(64).default([]),
  /** The only programs that may be executed, by name or absolute path; all when not given, none when empty. */
  commands: commandsSchema.optional(),
  /** The way out, and what it allows. False: there is none, and never will be. */
  network: networkSchema.default(specDefaults.network),
  /** A seccomp profile in Docker's JSON format instead of the default one: the path of a file, or its content. */
  seccomp: seccompSchema.optional(),
  /** How much of what a kept process prints is held for its readers, stdout and stderr together; what is older is dropped, and counted. */
  ring: ringSchema.default(specDefaults.ring),
  driver: driverNameSchema.optional(),
  minTier: z.enum(tiers).default(specDefaults.minTier),
  /** Fills what the rest leaves unstated, and caps what it states. Parsed by whoever applies it, before anything else is. */
  policy: z.custom<PresetName | PolicyInput>().optional(),
})

export type SpecInput = z.input<typeof specSchema>

/** The spec once parsed and completed, its policy applied: every limit has a value. */
export interface Spec extends Omit<z.output<typeof specSchema>, 'limits' | 'lifetime' | 'idle' | 'policy'> {
  readonly limits: Limits
  readonly lifetimeMs: number
  /** Undefined: any time. */
  readonly idleMs: number | undefined
}

/** Sandbox ids become DNS labels, so nothing else is accepted anywhere. */
export const idSchema = z.string().regex(/^[a-z0-9]{20}$/, 'must be a sandbox id: 20 lower-case letters and digits')
