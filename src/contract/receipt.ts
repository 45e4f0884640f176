import * as z from 'zod'
import { deferred } from './deferred.js'
import { limitNames } from './limit-words.js'
import type { Json } from './posture.js'
import type { Outcome } from './run.js'
import { snapshotIdSchema } from './snapshots.js'
import { tiers, userNames } from './spec-words.js'
import { templateIdSchema } from './templates.js'

/** The record of what was enforced. Everything but `signature.value` is signed, in canonical form: keys sorted, no white space (RFC 8785). */

const jsonSchema: z.ZodType<Json> = z.json()
const evidenceSchema = deferred(() => z.enum(['kernel', 'runtime', 'probe', 'asserted']))
const countSchema = deferred(() => z.number().min(0))
const orNull = <Schema extends z.ZodType>(schema: Schema) => schema.nullable()
const timeSchema = deferred(() => z.iso.datetime())
const hashSchema = deferred(() => z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 hexadecimal digits'))
const base64Schema = deferred(() => z.string().regex(/^[A-Za-z0-9+/]+={0,2}$/, 'must be base64'))

/** One thing that was demanded, and what was found. */
const controlSchema = deferred(() =>
  z.strictObject({
    /** Such as `limit.memory`, `capabilities`, `mounts`. */
    control: z.string().min(1),
    /** `cell`; or the program that was looked at, as `run 1`; or `programs` while none has started. */
    subject: z.string().min(1),
    /** Null: nothing was asked for, and nothing is limited. */
    requested: jsonSchema,
    /** Who: whoever asked for the sandbox or changed it; a policy, by what it suggests, caps or lowers; or nobody, so that it is our default. */
    stated: z.enum(['spec', 'policy', 'default']),
    /** Null when nothing enforces it, or when it is only asserted and nobody could look. */
    enforced: jsonSchema,
    /** Only `kernel` and `probe` prove anything. */
    evidence: evidenceSchema,
    /** Where it was read, or why it could not be. */
    source: z.string(),
    /**
     * `proven`: observed by kernel or probe and as demanded; `told`, `asserted`: by its evidence; `not-enforced`: a default that nothing enforces here;
     * `not-asked`: nobody asked for it, so nothing is limited.
     */
    verdict: z.enum(['proven', 'told', 'asserted', 'not-enforced', 'not-asked']),
    why: z.string().optional(),
  }),
)

const policySchema = deferred(() =>
  z.strictObject({
    name: z.string(),
    /** SHA-256 of the canonical form of what it says: defaults, ceiling and what happens above it, in base units, with the preset that it extends. */
    hash: hashSchema,
    /** Whether more than it allows is refused, or lowered. */
    onExceed: z.enum(['refuse', 'clamp']),
  }),
)

const clampedSchema = deferred(() =>
  z.strictObject({
    /** As in a spec: `limits.memory`. */
    field: z.string(),
    asked: jsonSchema,
    given: jsonSchema,
    /** The policy whose cap it was. */
    by: z.string(),
  }),
)

const hitsSchema = deferred(() => z.strictObject({ memory: orNull(countSchema), processes: orNull(countSchema) }))

const usageSchema = deferred(() =>
  z.strictObject({
    wallMs: countSchema,
    cpuUserMs: countSchema,
    cpuSystemMs: countSchema,
    memoryPeakBytes: countSchema,
    processesPeak: orNull(countSchema),
    readBytes: countSchema,
    writtenBytes: countSchema,
    outputBytes: countSchema,
    hits: hitsSchema,
  }),
)

const outcomeSchema = deferred(() =>
  z.discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('exited'), code: z.int() }),
    z.strictObject({ kind: z.literal('signaled'), signal: z.string() }),
    z.strictObject({ kind: z.literal('timed-out'), by: z.enum(['wall', 'cpu']), limitMs: countSchema }),
    z.strictObject({ kind: z.literal('out-of-memory'), limitBytes: countSchema }),
    z.strictObject({ kind: z.literal('output-limit'), limitBytes: countSchema }),
    z.strictObject({ kind: z.literal('killed'), reason: z.string() }),
    z.strictObject({ kind: z.literal('not-started'), code: z.union([z.literal(126), z.literal(127)]), reason: z.string() }),
  ]),
) satisfies z.ZodType<Outcome>

const runSchema = deferred(() =>
  z.strictObject({
    number: z.int().min(1),
    /** SHA-256 of the canonical form of the command; the command itself may hold secrets. */
    commandHash: hashSchema,
    user: z.enum(userNames),
    /** Names only. */
    environment: z.array(z.string()),
    startedAt: timeSchema,
    /** How thoroughly its posture was read at the gate; `none` where the driver isolates nothing. */
    posture: z.enum(['full', 'short', 'none']),
    /** Its interpreter was begun, looked at and started, before the sandbox was anyone's, and was told its program then. */
    begunAhead: z.literal(true).optional(),
    /** Undefined while it runs. */
    outcome: outcomeSchema.optional(),
    usage: usageSchema.optional(),
  }),
)

const sandboxUsageSchema = deferred(() =>
  z.strictObject({
    wallMs: countSchema,
    cpuMs: countSchema,
    memoryBytes: orNull(countSchema),
    memoryPeakBytes: countSchema,
    processes: orNull(countSchema),
    processesPeak: orNull(countSchema),
    readBytes: countSchema,
    writtenBytes: countSchema,
    outputBytes: countSchema,
    runs: countSchema,
    hits: hitsSchema,
  }),
)

export const signatureSchema = deferred(() =>
  z.strictObject({
    algorithm: z.literal('ed25519'),
    /** SHA-256 of the public key's SPKI form, first 16 hexadecimal digits. */
    keyId: z.string().regex(/^[0-9a-f]{16}$/, 'must be 16 hexadecimal digits'),
    /** The public key, SPKI, base64: proves nothing by itself; compare it with one you trust. */
    publicKey: base64Schema,
    /** 64 bytes, base64: of all the rest of the receipt, the other three fields here included. */
    value: base64Schema,
  }),
)

export const receiptSchema = deferred(() =>
  z.strictObject({
    schema: z.literal('glovebox-receipt/1'),
    /** `tenant`: whose it was, as the door says that it was asked for at. */
    sandbox: z.strictObject({ id: z.string(), tenant: z.string().optional(), name: z.string().optional(), agent: z.string().optional() }),
    issuedAt: timeSchema,
    createdAt: timeSchema,
    /** When it was issued. `paused`: its programs were there and stood still. Not given: it is of a version that could not pause. */
    state: z.enum(['running', 'paused']).optional(),
    glovebox: z.string(),
    host: z.strictObject({ kernel: z.string(), arch: z.string() }),
    driver: z.strictObject({ name: z.string(), tier: z.enum(tiers), facts: z.record(z.string(), z.string()) }),
    template: z.string(),
    /** Of a built template, by its content. Not given: the template is what the machine had. */
    templateId: templateIdSchema.optional(),
    /** Of a template that was made from an image: the digest that names the image elsewhere. */
    imageDigest: templateIdSchema.optional(),
    /** The id of the snapshot whose files it began with. */
    from: snapshotIdSchema.optional(),
    /** What its programs had to themselves: a cell that nobody had used, or a liner inside one. Not given: it is of a version that had only cells. */
    fresh: z.enum(['cell', 'liner']).optional(),
    /** Whether that was made before anyone asked. Not given: it was not. */
    pooled: z.boolean().optional(),
    /** SHA-256 of the canonical form of the whole parsed spec. */
    specHash: hashSchema,
    /** All that hold, the operator's first. */
    policies: z.array(policySchema),
    /** What was asked for and lowered. */
    clamped: z.array(clampedSchema),
    controls: z.array(controlSchema),
    /** When the cell as a whole was read, where that was not for this receipt: it is of a run in a liner that was over, of which nothing was left to look at. */
    cellReadAt: timeSchema.optional(),
    /**
     * Processes and threads that were looked at when this was issued, all as demanded. `complete` when these were all there were; false when some started
     * and ended faster than they could be looked at, or when nobody looked.
     */
    inspected: z.strictObject({ processes: z.int().min(0), threads: z.int().min(0), complete: z.boolean() }),
    /** All that run, and the latest of those that are over; `usage.runs` is how many there were. */
    runs: z.array(runSchema),
    usage: sandboxUsageSchema,
    signature: signatureSchema,
  }),
)

export type Signature = z.output<typeof signatureSchema>
export type Receipt = z.output<typeof receiptSchema>
export type ReceiptControl = z.output<typeof controlSchema>
export type ReceiptRun = z.output<typeof runSchema>
export type UnsignedReceipt = Omit<Receipt, 'signature'>

/** Every limit has a control of this name. */
export const limitControls = limitNames.map((name) => `limit.${name}`)
