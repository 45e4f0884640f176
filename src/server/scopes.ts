import { SandboxError } from '../contract/errors.js'
import { type Actor, includesScope, type Scope } from '../contract/tenants.js'

/** Throws SandboxError('forbidden'). */
export function checkScope(actor: Actor, scope: Scope): void {
  if (includesScope(actor.scopes, scope)) return
  throw new SandboxError('forbidden', `this needs a key for ${scope}`, { hint: `glovebox keys create --scope ${scope}` })
}
