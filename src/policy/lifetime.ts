import { lifetimeSchema } from '../contract/spec.js'
import type { Policy } from '../contract/policy.js'
import { durationInUnits } from '../contract/quantities.js'
import { PolicyRefusal } from './policy-refusal.js'
import { parseWith } from './refusal.js'

/** How long a sandbox is to live from now. Throws SandboxError('invalid') naming what is wrong with it. */
export function parseLifetime(duration: unknown): number {
  return parseWith(lifetimeSchema, duration, 'duration')
}

/**
 * What may be had of a longer life: with what it has lived already it stays within every cap, or is refused; a policy that lowers instead of
 * refusing gives what is left. Throws PolicyRefusal.
 */
export function holdLifetime(durationMs: number, livedMs: number, { layers }: Policy): number {
  return layers.reduce((held, layer) => {
    const cap = layer.ceiling.lifetime
    const left = cap === undefined ? Number.POSITIVE_INFINITY : Math.floor(cap - livedMs)
    if (held <= left) return held
    if (layer.onExceed === 'clamp' && left > 0) return left
    const asked = `${durationInUnits(held, Math.ceil)} more after ${durationInUnits(livedMs, Math.ceil)}`
    throw new PolicyRefusal('invalid', `duration: ${asked} is above the ${durationInUnits(cap ?? 0, Math.floor)} that policy '${layer.name}' allows`, [layer])
  }, durationMs)
}
