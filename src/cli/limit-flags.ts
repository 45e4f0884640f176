import { type LimitName, limitsSchema } from '../contract/limits.js'
import { parseFlag, refuseFlag } from './flag-values.js'

/** Limits as they are typed, under the names that commander has for the flags. */
export interface LimitFlags {
  readonly memory?: string
  readonly cpus?: string
  readonly cpuTime?: string
  readonly timeout?: string
  readonly disk?: string
  readonly inodes?: string
  readonly fileSize?: string
  readonly openFiles?: string
  readonly pids?: string
  readonly readRate?: string
  readonly writeRate?: string
  readonly output?: string
}

/** Sizes and durations are the schema's to read; numbers come as text, and are read here. */
type Row = readonly [flag: string, key: keyof LimitFlags, example?: string]

const rows: Readonly<Record<LimitName, Row>> = {
  memory: ['--memory', 'memory'],
  cpus: ['--cpus', 'cpus', '0.5'],
  cpuTime: ['--cpu-time', 'cpuTime'],
  time: ['--timeout', 'timeout'],
  disk: ['--disk', 'disk'],
  inodes: ['--inodes', 'inodes', '10000'],
  fileSize: ['--file-size', 'fileSize'],
  openFiles: ['--open-files', 'openFiles', '256'],
  processes: ['--pids', 'pids', '64'],
  readRate: ['--read-rate', 'readRate'],
  writeRate: ['--write-rate', 'writeRate'],
  output: ['--output', 'output'],
}

/** The limits that were stated, in base units. What is wrong is refused by the name of the flag, with what is expected. */
export function parseLimitFlags(flags: LimitFlags): Partial<Record<LimitName, number>> {
  const values = (Object.entries(rows) as [LimitName, Row][]).flatMap(([name, [flag, key, example]]) => {
    const text = flags[key]
    if (text === undefined) return []
    return [[name, example === undefined ? parseFlag(flag, () => limitsSchema.shape[name], text) : numberOf(text, { flag, name, example })] as const]
  })
  return Object.fromEntries(values)
}

interface NumberFlag {
  readonly flag: string
  readonly name: LimitName
  readonly example: string
}

function numberOf(text: string, { flag, name, example }: NumberFlag): number {
  const { min, max, isWhole } = rangeOf(name)
  const got = `got '${text.slice(0, 40)}'`
  const value = Number(text)
  if (!/^\d*\.?\d+$/.test(text) || (isWhole && !Number.isInteger(value))) {
    throw refuseFlag(flag, `expected a ${isWhole ? 'whole ' : ''}number such as '${example}', at least ${min} and at most ${max}, ${got}`)
  }
  if (value < min) throw refuseFlag(flag, `must be at least ${min}, ${got}`)
  if (value > max) throw refuseFlag(flag, `must be at most ${max}, ${got}`)
  return value
}

function rangeOf(name: LimitName) {
  const schema = limitsSchema.shape[name].unwrap()
  const [min, max, isWhole] = 'minValue' in schema ? [schema.minValue, schema.maxValue, schema.format === 'safeint'] : []
  return { min: min ?? 0, max: max ?? Number.MAX_SAFE_INTEGER, isWhole: isWhole === true }
}
