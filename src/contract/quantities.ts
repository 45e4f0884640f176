import { z } from 'zod'

const byteUnits: Record<string, number> = { '': 1, b: 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 }
const durationUnits: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** '512m', '1.5g', '10kib' or a number of bytes. NaN when it is none of these. */
function parseBytes(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(?:([bkmgt]?)|([kmgt])i?b)$/i.exec(text.trim())
  if (!match) return Number.NaN
  return Math.round(Number(match[1]) * (byteUnits[(match[2] ?? match[3] ?? '').toLowerCase()] ?? Number.NaN))
}

/** '250ms', '30s', '5m', '1h' or a number of milliseconds. NaN when it is none of these. */
function parseDuration(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text.trim())
  return match ? Math.round(Number(match[1]) * (durationUnits[match[2] ?? ''] ?? Number.NaN)) : Number.NaN
}

interface Bounds {
  readonly min: number
  readonly max: number
  readonly example: string
}

function quantity(parse: (text: string) => number, unit: string, bounds: Bounds) {
  return z.union([z.number(), z.string()]).transform((input, context): number => {
    const value = typeof input === 'number' ? input : parse(input)
    if (!Number.isFinite(value)) return refuse(context, `expected a ${unit} such as '${bounds.example}', got '${String(input).slice(0, 40)}'`)
    if (!Number.isInteger(value)) return refuse(context, `expected a whole ${unit}, got ${value}`)
    if (value < bounds.min) return refuse(context, `must be at least ${bounds.min} (${unit}), got ${value}`)
    if (value > bounds.max) return refuse(context, `must be at most ${bounds.max} (${unit}), got ${value}`)
    return value
  })
}

function refuse(context: z.core.$RefinementCtx, message: string): never {
  context.issues.push({ code: 'custom', message, input: context.value })
  return z.NEVER
}

/** A size as users write it; bytes once parsed. */
export function bytesSchema(bounds: Bounds) {
  return quantity(parseBytes, 'number of bytes', bounds)
}

/** A duration as users write it; milliseconds once parsed. */
export function durationSchema(bounds: Bounds) {
  return quantity(parseDuration, 'number of milliseconds', bounds)
}
