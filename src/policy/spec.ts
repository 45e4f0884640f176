import * as z from 'zod'
import { deferred } from '../contract/deferred.js'
import { SandboxError } from '../contract/errors.js'
import { defaultLimits, type LimitName, limitNames, type Limits } from '../contract/limit-words.js'
import { limitsSchema } from '../contract/limits.js'
import { plainObjectRefusal } from '../contract/plain-object.js'
import type { SandboxFilter, SandboxInfo } from '../contract/platform.js'
import { idSchema, type Spec, specSchema } from '../contract/spec.js'
import { checkEnv } from './bounds.js'
import { checkMountTargets } from './mounts.js'
import { networkRules } from './network-rules.js'
import { plainSpec } from './plain-spec.js'
import { parseObject, parseWith } from './refusal.js'

/** What a user asked for, checked field by field and completed. Throws SandboxError('invalid') naming the field. */
export function parseSpec(input: unknown): Spec {
  const parsed = plainSpec(input) ?? parseObject(specSchema, input, { what: 'spec', objects: ['limits', 'env', 'metadata'] })
  const { limits, lifetime, idle, ...rest } = parsed
  checkEnv(rest.env)
  checkMountTargets(rest.mounts)
  if (rest.network !== false) networkRules(rest.network)
  return { ...rest, limits: completeLimits(limits), lifetimeMs: lifetime, idleMs: idle }
}

/** Every limit with a value; those without one of their own take the default and are not in `stated`. */
function completeLimits(input: z.output<typeof limitsSchema>): Limits {
  const diskBytes = input.disk ?? defaultLimits.diskBytes
  return {
    memoryBytes: input.memory ?? defaultLimits.memoryBytes,
    cpus: input.cpus ?? defaultLimits.cpus,
    cpuTimeMs: input.cpuTime,
    timeMs: input.time ?? defaultLimits.timeMs,
    diskBytes,
    inodes: input.inodes ?? inodesFor(diskBytes),
    fileSizeBytes: input.fileSize ?? fileSizeFor(diskBytes),
    openFiles: input.openFiles ?? defaultLimits.openFiles,
    processes: input.processes ?? defaultLimits.processes,
    readBytesPerSecond: input.readRate,
    writeBytesPerSecond: input.writeRate,
    outputBytes: input.output ?? defaultLimits.outputBytes,
    stated: limitNames.filter((name) => input[name] !== undefined),
  }
}

const changeSchema = deferred(() => z.strictObject({ limits: limitsSchema }))

/** A live sandbox's limits with some of them changed, and which those are. Throws SandboxError('invalid') naming the field. */
export function changeLimits(current: Limits, change: unknown): { readonly limits: Limits; readonly changed: readonly LimitName[] } {
  const refusal = plainObjectRefusal(change, 'limits')
  if (refusal) throw refusal
  const { limits: input } = parseObject(changeSchema, { limits: change }, { what: 'limits', objects: ['limits'] })
  const changed = limitNames.filter((name) => input[name] !== undefined)
  const isStated = (name: LimitName): boolean => current.stated.includes(name) || changed.includes(name)
  const diskBytes = input.disk ?? current.diskBytes
  const limits: Limits = {
    memoryBytes: input.memory ?? current.memoryBytes,
    cpus: input.cpus ?? current.cpus,
    cpuTimeMs: input.cpuTime ?? current.cpuTimeMs,
    timeMs: input.time ?? current.timeMs,
    diskBytes,
    inodes: input.inodes ?? (isStated('inodes') || input.disk === undefined ? current.inodes : inodesFor(diskBytes)),
    fileSizeBytes: input.fileSize ?? (isStated('fileSize') || input.disk === undefined ? current.fileSizeBytes : fileSizeFor(diskBytes)),
    openFiles: input.openFiles ?? current.openFiles,
    processes: input.processes ?? current.processes,
    readBytesPerSecond: input.readRate ?? current.readBytesPerSecond,
    writeBytesPerSecond: input.writeRate ?? current.writeBytesPerSecond,
    outputBytes: input.output ?? current.outputBytes,
    stated: limitNames.filter(isStated),
  }
  return { limits, changed }
}

/** Every file that is not empty takes a page, so this many never stand in the way of an honest guest; the floor leaves room for folders. */
export function inodesFor(diskBytes: number): number {
  return Math.max(1024, Math.ceil(diskBytes / 4096))
}

/** A page more than the disk: a file that fills it is told that there is no space, which programs expect, and only a sparse one that it is too large. */
export function fileSizeFor(diskBytes: number): number {
  return diskBytes + 4096
}

export function parseId(id: unknown): string {
  return parseWith(idSchema, id, 'id')
}

const filterSchema = deferred(() =>
  z.strictObject({
    name: z.string().optional(),
    agent: z.string().optional(),
    metadata: z.record(z.string(), z.string()).optional(),
  }),
)

/** A condition that was written but has no value would silently match everything, so it is refused. */
export function parseFilter(filter: unknown): SandboxFilter {
  if (filter === undefined) return {}
  const parsed = parseObject(filterSchema, filter, { what: 'filter', objects: ['metadata'] })
  for (const [field, value] of Object.entries(filter as object)) {
    if (value === undefined) throw new SandboxError('invalid', `${field}: is undefined; leave it out to match every sandbox`)
  }
  return parsed as SandboxFilter
}

export function matchesFilter({ spec }: Pick<SandboxInfo, 'spec'>, filter: SandboxFilter): boolean {
  if (filter.name !== undefined && filter.name !== spec.name) return false
  if (filter.agent !== undefined && filter.agent !== spec.agent) return false
  return Object.entries(filter.metadata ?? {}).every(([key, value]) => Object.hasOwn(spec.metadata, key) && spec.metadata[key] === value)
}
