import type { SandboxInfo } from '../contract/platform.js'
import type { SpecInput } from '../contract/spec.js'
import type { Acts } from './acts.js'
import { shownRequest } from './shown.js'

/** What is asked for, before anybody has looked whether it is a spec. */
export function createFacts(spec: SpecInput, acts: Acts) {
  const agent: unknown = (spec as SpecInput | null | undefined)?.agent
  return { ...(typeof agent === 'string' && { agent }), details: { spec: shownRequest(spec, acts.settings) } }
}

/** What it became. */
export function bornEnding({ id, driver, tier }: SandboxInfo) {
  return { sandbox: id, details: { driver, tier } }
}
