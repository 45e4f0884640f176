import * as z from 'zod'
import { deferred } from './deferred.js'
import { limitsSchema } from './limits.js'
import { maxConnectionsSchema, networkBytesSchema, networkHostSchema, networkRateSchema, networkSchema } from './network.js'
import type { Json } from './posture.js'
import { commandsSchema, driverNameSchema, envNameSchema, envSchema, labelSchema, lifetimeSchema, pathSchema, seccompSchema, templateSchema } from './spec.js'
import { mountModes, rootModes, tiers, userNames } from './spec-words.js'

/** Policies that come with us, from the narrowest to the widest. */
export const presetNames = ['strict', 'default', 'data'] as const
export type PresetName = (typeof presetNames)[number]

/** What happens to a spec that states more than a cap allows. */
const onExceed = ['refuse', 'clamp'] as const

/** What a spec gets where it says nothing. Like our own defaults: not enforced here is named, not refused. */
const defaultsSchema = deferred(() =>
  z.strictObject({
    limits: limitsSchema.optional().describe('Limits of a spec that states none.'),
    lifetime: lifetimeSchema.optional().describe('From creation to closing.'),
    template: templateSchema.optional(),
    user: z.enum(userNames).optional(),
    root: z.enum(rootModes).optional(),
    minTier: z.enum(tiers).optional().describe('The weakest boundary that is accepted.'),
    env: envSchema.optional().describe('Variables; one that a spec sets itself is left as the spec has it.'),
    commands: commandsSchema.optional().describe('The only programs that may be executed.'),
    network: networkSchema.optional().describe('The way out of a spec that says nothing of it; a spec that does has its own and nothing of this one.'),
    seccomp: seccompSchema.optional().describe("A seccomp profile in Docker's JSON format: the path of a file, or its content."),
  }),
)

const mountsCeilingSchema = deferred(() =>
  z.strictObject({
    sources: z.array(pathSchema).max(256).optional().describe('Folders that a source must be in; any when left out, none when empty.'),
    modes: z.array(z.enum(mountModes)).max(8).optional(),
  }),
)

const networkCeilingSchema = deferred(() =>
  z.strictObject({
    hosts: z.array(networkHostSchema).max(1024).optional().describe('What entries of allow must be within; anything when left out, nothing when empty.'),
    private: z
      .array(z.string().max(100))
      .max(256)
      .optional()
      .describe("Addresses that are not public, as '10.1.0.0/16', and are judged as if they were. Of an operator's policy only: it allows more, not less."),
    maxConnections: maxConnectionsSchema.optional(),
    bytes: networkBytesSchema.optional(),
    bandwidth: networkRateSchema.optional(),
  }),
)

/** What a spec may go down from, never up. A field that is left out caps nothing; an empty list allows nothing. */
const ceilingSchema = deferred(() =>
  z.strictObject({
    limits: limitsSchema.optional().describe('The most of each limit. A limit that is capped is enforced, or the sandbox is refused.'),
    lifetime: lifetimeSchema.optional().describe('The longest lifetime.'),
    minTier: z.enum(tiers).optional().describe('The weakest boundary that may be asked for.'),
    users: z.array(z.enum(userNames)).max(8).optional(),
    roots: z.array(z.enum(rootModes)).max(8).optional(),
    templates: z.array(templateSchema).max(256).optional(),
    drivers: z.array(driverNameSchema).max(64).optional(),
    mounts: mountsCeilingSchema.optional(),
    commands: commandsSchema.optional().describe('Programs that a spec may list; one that lists none gets all of these and no others.'),
    network: z
      .union([z.literal(false), networkCeilingSchema])
      .optional()
      .describe('False: no sandbox has a way out.'),
    seccomp: z.enum(['default-only', 'custom']).optional().describe("Whether a spec may bring a profile of its own, instead of ours or this policy's."),
    env: z.array(envNameSchema).max(1024).optional().describe('Names of variables that a spec or a run may set.'),
  }),
)

/** A policy as it is written: in a file, in a spec, or as the operator's. */
export const policySchema = deferred(() =>
  z.strictObject({
    $schema: z.string().optional(),
    name: labelSchema.optional().describe('What messages call it.'),
    description: z.string().max(4096).optional(),
    extends: z.enum(presetNames).optional().describe('A preset whose defaults are taken and whose ceiling holds too.'),
    defaults: defaultsSchema.optional().describe('What a spec gets where it says nothing.'),
    ceiling: ceilingSchema.optional().describe('What a spec may lower but never raise.'),
    onExceed: z.enum(onExceed).optional().describe("A spec above a cap is refused, or lowered to it and told so. 'refuse' when left out."),
  }),
)

export type PolicyInput = z.input<typeof policySchema>
export type PolicyDefaults = z.output<typeof defaultsSchema>
export type Ceiling = z.output<typeof ceilingSchema>
export type NetworkCeiling = NonNullable<Ceiling['network']> | false

/** What one author says, under the name that messages have for it. */
export interface PolicyLayer {
  readonly name: string
  /** The command that prints it, where there is one: a policy that a program made itself stands in no file. */
  readonly shownBy?: string
  readonly defaults: PolicyDefaults
  readonly ceiling: Ceiling
  readonly onExceed: (typeof onExceed)[number]
}

/** One policy or several together. */
export interface Policy {
  readonly defaults: PolicyDefaults
  /** What all layers allow. */
  readonly ceiling: Ceiling
  /** The operator's first. */
  readonly layers: readonly PolicyLayer[]
}

/** Who says what stands in a field of a spec: whoever asked for the sandbox, or a policy, by what it suggests or caps. A field that is not here has our default. */
export type Origins = Readonly<Record<string, 'spec' | 'policy'>>

/** Something that was asked for and lowered to a cap, in base units. */
export interface Clamping {
  /** As in a spec: `limits.memory`. */
  readonly field: string
  readonly asked: Json
  readonly given: Json
  /** Whose cap it was. */
  readonly policy: string
}
