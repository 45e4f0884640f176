import * as z from 'zod'
import { printable } from './printable.js'

const byteUnits: Record<string, number> = { b: 1, '': 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 }
const durationUnits: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

const bytesPattern = /^(\d+(?:\.\d+)?)(?:([bkmgtBKMGT]?)|([kmgtKMGT])[iI]?[bB])$/
const durationPattern = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/

/** '512m', '1.5g', '10kib' or a number of bytes. NaN when it is none of these. */
function parseBytes(text: string): number {
  const match = bytesPattern.exec(text.trim())
  if (!match) return Number.NaN
  const factor = byteUnits[(match[2] ?? match[3] ?? '').toLowerCase()] ?? Number.NaN
  // There is no half of a byte: 1.5 of them is a slip, where 1.1 of a larger unit is meant as nearly as can be.
  return factor === 1 ? Number(match[1]) : Math.round(Number(match[1]) * factor)
}

/** '250ms', '30s', '5m', '1h' or a number of milliseconds. NaN when it is none of these. */
function parseDuration(text: string): number {
  const match = durationPattern.exec(text.trim())
  return match ? Math.round(Number(match[1]) * (durationUnits[match[2] ?? ''] ?? Number.NaN)) : Number.NaN
}

interface Bounds {
  readonly min: number
  readonly max: number
  readonly example: string
}

interface Kind {
  readonly name: string
  /** What it counts once parsed. */
  readonly unit: string
  readonly units: Readonly<Record<string, number>>
  readonly pattern: RegExp
  parse(text: string): number
}

const size: Kind = { name: 'size', unit: 'bytes', units: byteUnits, pattern: bytesPattern, parse: parseBytes }
const duration: Kind = { name: 'duration with a unit', unit: 'milliseconds', units: durationUnits, pattern: durationPattern, parse: parseDuration }

function quantity(kind: Kind, bounds: Bounds) {
  // What is said here is for published schemas only; what is wrong is told by the transformation, in one sentence. Registered, because `meta` makes each a second time.
  const number = z.number().register(z.globalRegistry, { minimum: bounds.min, maximum: bounds.max })
  const text = z.string().register(z.globalRegistry, { pattern: kind.pattern.source, examples: [bounds.example] })
  return z
    .union([number, text])
    .register(z.globalRegistry, {
      get description() {
        return `A ${kind.name}, or a number of ${kind.unit}: ${rangeOf(kind, bounds)}.`
      },
    })
    .transform((input, context): number => {
      const value = typeof input === 'number' ? input : kind.parse(input)
      const got = typeof input === 'number' ? String(input) : `'${printable(input.slice(0, 40))}'`
      if (!Number.isFinite(value)) return refuse(context, `expected a ${kind.name} such as '${bounds.example}', ${rangeOf(kind, bounds)}, got ${got}`)
      if (!Number.isInteger(value)) return refuse(context, `expected a whole number of ${kind.unit}, got ${got}`)
      if (value < bounds.min) return refuse(context, `must be at least ${inUnits(kind, bounds.min, Math.ceil)}, got ${got}`)
      if (value > bounds.max) return refuse(context, `must be at most ${inUnits(kind, bounds.max, Math.floor)}, got ${got}`)
      return value
    })
}

function rangeOf(kind: Kind, { min, max }: Bounds): string {
  return `at least ${inUnits(kind, min, Math.ceil)} and at most ${inUnits(kind, max, Math.floor)}`
}

/** As users write it, in the largest unit that it fills, to one decimal. */
function inUnits(kind: Kind, value: number, round: (value: number) => number): string {
  const [name, factor] = Object.entries(kind.units).findLast(([, each]) => value >= each) ?? Object.entries(kind.units)[0] ?? ['', 1]
  return `${round((value / factor) * 10) / 10}${name}`
}

/** A size as users write it: 12637396992 → '11.7g', or '11.8g' when rounded up. */
export function bytesInUnits(bytes: number, round: (value: number) => number): string {
  return inUnits(size, bytes, round)
}

/** A duration as users write it: 90000 → '1.5m'. */
export function durationInUnits(ms: number, round: (value: number) => number): string {
  return inUnits(duration, ms, round)
}

/** What parses back to exactly this: in the largest unit that leaves a whole number. */
export function exactly(kind: 'bytes' | 'duration', value: number): string {
  const units = Object.entries(kind === 'bytes' ? byteUnits : durationUnits).filter(([name]) => name !== '')
  const [name, factor] = units.findLast(([, each]) => value >= each && value % each === 0) ?? units[0] ?? ['', 1]
  return `${value / factor}${name}`
}

function refuse(context: z.core.$RefinementCtx, message: string): never {
  context.issues.push({ code: 'custom', message, input: context.value })
  return z.NEVER
}

/** A size as users write it; bytes once parsed. */
export function bytesSchema(bounds: Bounds) {
  return quantity(size, bounds)
}

/** A duration as users write it; milliseconds once parsed. */
export function durationSchema(bounds: Bounds) {
  return quantity(duration, bounds)
}
