import * as z from 'zod'
import { deferred } from './deferred.js'
import type { Driver } from './driver.js'
import type { PolicyInput, PresetName } from './policy.js'

export interface PlatformBounds {
  /** Sandboxes at once, those being created included. */
  readonly maxSandboxes: number
  /** Programs at once in one sandbox. The warden takes no more than 1,024. */
  readonly maxRuns: number
  /** A cell that takes longer to open, or a warden that takes longer to start or kill a program, is given up. */
  readonly answerMs: number
  /** What is kept of the output of all processes that run in one sandbox, together; when it does not do for all, each keeps an equal part. */
  readonly maxRingBytes: number
  /** A sandbox that stays paused for longer is closed. */
  readonly maxPausedMs: number
}

export interface PlatformSettings {
  /** The drivers to choose from; all that there are when not given. `fake`, which isolates nothing, is used only for a spec that names it and accepts tier `none`. */
  readonly drivers?: readonly Driver[]
  /** Where what can be built again is kept, instead of the usual place. */
  readonly cacheDir?: string
  /** Where snapshots are kept, instead of the usual place: a folder that only its owner can write to. */
  readonly snapshotDir?: string
  /** Where built templates are kept, instead of the usual place: a folder that only its owner can write to. */
  readonly templateDir?: string
  /** What no sandbox of this platform may exceed, and what it gets where it says nothing. */
  readonly policy?: PresetName | PolicyInput
  /** Authorities, as PEM, whose servers are trusted beside those that the host trusts, here and by programs inside: a company's own, say. */
  readonly trusted?: readonly string[]
  readonly bounds?: Partial<PlatformBounds>
}

const driverMethods = ['probe', 'open'] as const

function isDriver(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  const driver = value as Record<string, unknown>
  return typeof driver.name === 'string' && driverMethods.every((name) => typeof driver[name] === 'function')
}

const countSchema = deferred(() => z.int().min(1))

/** A policy is judged where policies are. */
export const platformSettingsSchema = deferred(() =>
  z.strictObject({
    drivers: z.array(z.custom<Driver>(isDriver, 'expected a driver')).optional(),
    cacheDir: z.string().min(1).optional(),
    snapshotDir: z.string().min(1).optional(),
    templateDir: z.string().min(1).optional(),
    policy: z.unknown().optional(),
    trusted: z
      .array(z.string().regex(/^\s*-----BEGIN CERTIFICATE-----/, 'must be a certificate, as PEM'))
      .max(64)
      .optional(),
    bounds: z
      .strictObject({ maxSandboxes: countSchema, maxRuns: countSchema.max(1024), answerMs: countSchema, maxRingBytes: countSchema, maxPausedMs: countSchema })
      .partial()
      .optional(),
  }),
)
