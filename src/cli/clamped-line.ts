import type { Clamping } from '../contract/policy.js'
import { valueInWords } from '../policy/policy-words.js'
import { nameFlags } from './flag-names.js'

/** The one line about what a policy lowered; undefined when there is nothing to say. */
export function explainClamped(clamped: readonly Clamping[]): string | undefined {
  if (clamped.length === 0) return undefined
  const byPolicy = new Map<string, string[]>()
  for (const clamping of clamped) byPolicy.set(clamping.policy, [...(byPolicy.get(clamping.policy) ?? []), change(clamping)])
  return [...byPolicy].map(([policy, changes]) => `lowered by policy '${policy}': ${changes.join('; ')}`).join('. ')
}

/** '--memory from 2g to 1g'. */
function change({ field, asked, given }: Clamping): string {
  const flag = nameFlags(`${field}: `).slice(0, -2)
  if (given === null) return `${flag} left out`
  return `${flag} from ${valueInWords(field, asked)} to ${valueInWords(field, given, Math.floor)}`
}
