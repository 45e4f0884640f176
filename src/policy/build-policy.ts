import type { Ceiling, Policy } from '../contract/policy.js'

/**
 * What of an operator's policy holds while a Dockerfile is built: who its programs may be, what they may reach, and what stands around them. How much a sandbox may use, and
 * of which template it is, is meant for those that are used; a build states its own.
 */
export function buildPolicy({ ceiling, layers }: Policy): Policy {
  return { defaults: {}, ceiling: heldOf(ceiling), layers: layers.map((layer) => ({ ...layer, defaults: {}, ceiling: heldOf(layer.ceiling) })) }
}

function heldOf({ minTier, users, roots, drivers, network, seccomp }: Ceiling): Ceiling {
  return {
    ...(minTier !== undefined && { minTier }),
    ...(users !== undefined && { users }),
    ...(roots !== undefined && { roots }),
    ...(drivers !== undefined && { drivers }),
    ...(network !== undefined && { network }),
    ...(seccomp !== undefined && { seccomp }),
  }
}
