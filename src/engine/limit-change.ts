import type { Probe } from '../contract/driver.js'
import { SandboxError } from '../contract/errors.js'
import type { LimitName, Limits } from '../contract/limits.js'
import { checkLimits } from '../policy/apply.js'
import { lackingLimits } from '../policy/choose.js'
import { changeLimits } from '../policy/spec.js'

interface Standing {
  readonly limits: Limits
  readonly policy: Parameters<typeof checkLimits>[1]
  readonly probe: Probe
}

interface LimitChange {
  readonly limits: Limits
  readonly changed: readonly LimitName[]
  readonly clamped: ReturnType<typeof checkLimits>['clamped']
}

/** What limits become by a change that was asked for; undefined when nothing does. Throws SandboxError('unsupported') for what nothing here would enforce. */
export function judgeChange(change: unknown, { limits: before, policy, probe }: Standing): LimitChange | undefined {
  const { changed } = changeLimits(before, change)
  if (changed.length === 0) return undefined
  const { limits: allowed, clamped } = checkLimits(change, policy)
  const { limits } = changeLimits(before, allowed)
  const lacking = lackingLimits({ ...limits, stated: changed }, probe)
  if (lacking.length > 0) throw new SandboxError('unsupported', lacking.join('; '), { hint: 'glovebox doctor' })
  return { limits, changed, clamped }
}
