import * as z from 'zod'
import { type Language, languageSchema } from './code.js'
import { deferred } from './deferred.js'
import type { NetworkRecord, NetworkSummary } from './network.js'
import type { CreationOptions } from './platform-network.js'
import type { CallOptions, PlatformProcess, SandboxInfo } from './platform.js'
import { durationSchema } from './quantities.js'
import type { Receipt } from './receipt.js'
import type { RunRequest } from './run.js'
import { labelSchema, type Spec, type SpecInput } from './spec.js'

/** How new what a one-shot runs in is: a cell that nobody has used, or a liner of its own inside a cell that others had liners in before. */
export const freshKinds = ['cell', 'liner'] as const
export type Fresh = (typeof freshKinds)[number]

const dayMs = 86_400_000

/** How a pool keeps its sandboxes. */
export const poolSchema = deferred(() =>
  z.strictObject({
    /** So many are kept ready; what suits the machine when not given. */
    size: z.int().min(0).max(1000).optional(),
    /** So many are there at once, those in use and those being made or closed included; what suits the machine when not given. */
    max: z.int().min(1).max(10_000).optional(),
    /** So many callers may wait once there are `max`; one more is refused with 'busy'. */
    queue: z.int().min(0).max(100_000).default(1000),
    /** One that has waited for longer is closed, and another made. */
    recycleAfter: durationSchema({ min: 50, max: dayMs, example: '10m' }).default(600_000),
    /** Once nobody has asked for so long, none is kept ready until somebody does. Not given: never where `size` is, else a minute. */
    idleAfter: durationSchema({ min: 50, max: dayMs, example: '1m' }).optional(),
    fresh: z.enum(freshKinds).default('cell'),
    /** Of cells: the interpreter of this language waits in each of them, begun. None when not given. */
    language: languageSchema.optional(),
    /** Of liners: after so many runs their cell is closed, and another made. */
    recycleAfterRuns: z.int().min(1).max(1_000_000).optional(),
    /** Modules of Python that are imported before anyone asks; none when not given. */
    imports: z
      .array(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$/, "must be a module's name, such as 'numpy'"))
      .max(64)
      .optional(),
  }),
)

export type PoolInput = z.input<typeof poolSchema>
export type PoolSettings = z.output<typeof poolSchema>

/** Who a sandbox is for, told when it is handed out. */
export const claimSchema = deferred(() =>
  z.strictObject({
    name: labelSchema.optional(),
    agent: labelSchema.optional(),
    metadata: z.record(labelSchema, z.string().max(4096)).optional(),
  }),
)

export type Claim = z.input<typeof claimSchema>

export interface PoolInfo {
  readonly id: string
  /** What each of its sandboxes is like. */
  readonly spec: Spec
  readonly size: number
  readonly max: number
}

export interface PoolStatus {
  /** All there are: available, in use, being made or being closed. */
  readonly total: number
  /** Those that wait, with all done that can be before somebody asks. */
  readonly available: number
  readonly inUse: number
  /** Callers that wait for one. */
  readonly waiting: number
  /** What went wrong last in the background, where nobody waited to be told: one that could not be made, or not be closed. */
  readonly failure?: string
}

export interface OneShotCall extends CreationOptions {
  /** Of a command `liner` unless given, where there can be one, else `cell`. Given, it is that or refused. */
  readonly fresh?: Fresh
  /** False: it is created for this call. True unless given: it comes from where such are kept ready, once there are any. */
  readonly pool?: boolean
  /** Whether its receipt will be asked for. False: it never will, so that nothing of it need be kept for that; not given: perhaps. */
  readonly receipt?: boolean
  /** Of code: what is kept ready has an interpreter of this language, begun. */
  readonly language?: Language
}

export interface OneShotRunCall extends OneShotCall {
  /** Nothing of the program runs before this is fulfilled, nor ever when it is rejected, with which the call is rejected then. What it will run in is found meanwhile. */
  readonly after?: Promise<unknown>
  /** Instead of `after`, for a program without a network and without folders of the host's: nothing that it does outlives the machine's power. */
  readonly afterIfConfined?: Promise<unknown>
}

/** What a one-shot did by its network, under its own id and with nothing of any other's. */
export interface OneShotNetwork {
  /** From before its program began until it is released; for one reader. */
  readonly log: AsyncIterable<NetworkRecord>
  summary(): Promise<NetworkSummary>
}

export interface Released {
  /** All that it did by its network, if it had one. */
  readonly network?: NetworkSummary
}

/** A program in surroundings of its own. */
export interface OneShot {
  readonly sandbox: SandboxInfo
  readonly program: PlatformProcess
  /** Undefined where its sandbox has no network. */
  readonly network?: OneShotNetwork
  /** Of its surroundings and of this run, as long as it was not released. */
  receipt(options?: CallOptions): Promise<Receipt>
  /** Ends everything in it. Resolves before that is done; what goes wrong is in a pool's status, and is told when the platform is disposed of. */
  release(): Promise<Released>
}

/** What a one-shot is run in: a sandbox of a pool, or one like this. */
export type OneShotPlace = { readonly pool: string } | { readonly spec: SpecInput }

/** Sandboxes that are made before anyone asks for them. None that was used is handed to anyone again. */
export interface PlatformPools {
  /** Resolves when the first is there; with a `size` of 0 at once. */
  create(spec: SpecInput, settings?: PoolInput, options?: CallOptions): Promise<PoolInfo>
  status(pool: string, options?: CallOptions): Promise<PoolStatus>
  /** One that nobody has used: its id, its times and who it is for begin now. Throws SandboxError('busy') when too many wait. */
  acquire(pool: string, claim?: Claim, options?: CreationOptions): Promise<SandboxInfo>
  /** Everything of it ends, what is in use too. Resolves when nothing is left. Quiet when it is gone. */
  close(pool: string): Promise<void>
  /** A sandbox for one use, as `create` gives one. */
  take(spec: SpecInput, options?: OneShotCall): Promise<SandboxInfo>
  /** Ends everything in a sandbox: its network at once, the rest without waiting until nothing is left. Quiet when it is gone. */
  release(sandbox: string): Promise<Released>
  run(place: OneShotPlace, request: RunRequest, options?: OneShotRunCall): Promise<OneShot>
}
