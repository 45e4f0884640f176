/** What specs take, remembered: callers ask for the same again and again, and working out what policies make of it takes longer than all else that is counted. */
import { isDeepStrictEqual } from 'node:util'
import type { Policy } from '../contract/policy.js'
import type { SpecInput } from '../contract/spec.js'
import type { QuotaRequest } from '../contract/tenants.js'

const mostKnown = 100
const mostTextLength = 2000

export class KnownWishes {
  readonly #plan: (spec: SpecInput, policy: Policy | undefined) => QuotaRequest
  readonly #known = new Map<string, QuotaRequest>()
  #policy: Policy | undefined

  /** `plan` says the same whenever it is given the same. */
  constructor(plan: (spec: SpecInput, policy: Policy | undefined) => QuotaRequest) {
    this.#plan = plan
  }

  /** Throws what planning it throws. */
  of(spec: SpecInput, policy: Policy | undefined): QuotaRequest {
    if (policy !== this.#policy) this.#known.clear()
    this.#policy = policy
    const text = textOf(spec)
    const known = text === undefined ? undefined : this.#known.get(text)
    if (known) return known
    const wish = this.#plan(spec, policy)
    if (text !== undefined) this.#keep(text, wish)
    return wish
  }

  #keep(text: string, wish: QuotaRequest): void {
    this.#known.set(text, wish)
    if (this.#known.size > mostKnown) this.#known.delete(this.#known.keys().next().value as string)
  }
}

/** Undefined for what its text does not tell all of: functions, bytes, secrets; and for what is long. */
function textOf(spec: SpecInput): string | undefined {
  try {
    const text = JSON.stringify(spec) as string | undefined
    return text !== undefined && text.length <= mostTextLength && isDeepStrictEqual(JSON.parse(text), spec) ? text : undefined
  } catch {
    return undefined
  }
}
