import * as z from 'zod'
import { SandboxError } from '../contract/errors.js'
import { durationSchema } from '../contract/quantities.js'

const durations = () => durationSchema({ min: 1, max: 100 * 366 * 86_400_000, example: '30d' })
const times = () => z.union([z.iso.datetime({ offset: true }), z.iso.date()])

/** A time, or so long ago. */
export function momentAgo(flag: string, text: string): string {
  return momentIn(flag, text, -1)
}

/** A time, or after so long. */
export function momentAhead(flag: string, text: string): string {
  return momentIn(flag, text, 1)
}

function momentIn(flag: string, text: string, direction: 1 | -1): string {
  const time = times().safeParse(text)
  if (time.success) return new Date(time.data).toISOString()
  const span = durations().safeParse(text)
  if (span.success) return new Date(Date.now() + direction * span.data).toISOString()
  throw new SandboxError('invalid', `${flag}: must be a duration such as '30d', or a time such as 2026-01-31T12:00:00Z, got '${text.slice(0, 40)}'`)
}
