import { resolve } from 'node:path'
import type { Command, Option } from 'commander'
import { presetNames } from '../contract/policy.js'
import { asPart, splitAtColons } from './colon-parts.js'

/** Flags that are about the installing, not about the server. */
const ownFlags = new Set(['print', 'as', 'file'])

/** What has to be typed for the same flags. A client starts us in a folder of its own choice, so every path is made absolute. */
export function flagWords(command: Command): string[] {
  return command.options.flatMap((option) => {
    const name = option.attributeName()
    if (ownFlags.has(name) || command.getOptionValueSource(name) !== 'cli') return []
    const value: unknown = command.getOptionValue(name)
    const values = Array.isArray(value) ? (value as unknown[]) : [value]
    return values.flatMap((each) => (each === true ? [flagOf(option)] : [flagOf(option), anywhere(name, String(each))]))
  })
}

function flagOf({ long, short }: Option): string {
  return long ?? short ?? ''
}

function anywhere(name: string, value: string): string {
  switch (name) {
    case 'policy':
      return presetNames.some((preset) => preset === value) ? value : resolve(value)
    case 'seccomp':
    case 'receipt':
      return resolve(value)
    case 'mount':
    case 'upload':
      return withPart(value, 0)
    case 'download':
      return withPart(value, 1)
    default:
      return value
  }
}

/** A path between colons, made absolute; the place that a download has without one is here. */
function withPart(value: string, index: number): string {
  const parts = splitAtColons(value)
  if (index >= parts.length) return `${value}:${asPart(resolve(parts[0]?.split('/').findLast((part) => part !== '') ?? '.'))}`
  return parts.map((part, at) => asPart(at === index ? resolve(part) : part)).join(':')
}
