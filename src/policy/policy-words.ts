import type { Json } from '../contract/posture.js'
import { bytesInUnits, durationInUnits, exactly } from '../contract/quantities.js'
import { printable } from './refusal.js'

const sizes = ['limits.memory', 'limits.disk', 'limits.fileSize', 'limits.readRate', 'limits.writeRate', 'limits.output', 'network.bytes', 'network.bandwidth']
const durations = ['limits.cpuTime', 'limits.time', 'lifetime']

/** The value of a field as users write it; what was asked is rounded up and what is allowed down, so that the two never read the same. */
export function valueInWords(field: string, value: Json, round = Math.ceil): string {
  if (typeof value === 'number') {
    if (sizes.includes(field)) return bytesInUnits(value, round)
    return durations.includes(field) ? durationInUnits(value, round) : String(value)
  }
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.map((each) => valueInWords(field, each as Json, round)).join(', ')
  if (typeof value === 'string') return `'${printable(value)}'`
  return value === null ? 'nothing' : typeof value === 'boolean' ? String(value) : 'an object'
}

/** What a policy file would say for it: exact, in units. */
export function valueInFile(field: string, value: number): string | number {
  if (sizes.includes(field)) return exactly('bytes', value)
  return durations.includes(field) ? exactly('duration', value) : value
}
