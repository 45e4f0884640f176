import { type ErrorCode, SandboxError } from '../contract/errors.js'
import type { PolicyLayer } from '../contract/policy.js'

/** Something that a policy does not allow. Its hint shows that policy; whoever knows better how it was named may say so instead. */
export class PolicyRefusal extends SandboxError {
  constructor(code: Extract<ErrorCode, 'invalid' | 'unsupported'>, message: string, layers: readonly Pick<PolicyLayer, 'shownBy'>[]) {
    const [shownBy, ...others] = layers.map((layer) => layer.shownBy)
    super(code, message, others.length > 0 || shownBy === undefined ? {} : { hint: shownBy })
  }
}
