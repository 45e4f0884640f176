/**
 * Keys as they are handed out: `gbx_` (so that scanners of secrets know one), an id that is public, and 43 letters and digits of which 256 bits are random. The id finds the one hash to compare with;
 * the secret alone decides. It has far too many bits to be guessed from its hash, so a plain SHA-256 is kept: a slow one would only make every request slow.
 */
import { createHash, randomInt, timingSafeEqual } from 'node:crypto'

const letters = 'abcdefghijklmnopqrstuvwxyz0123456789'
const more = `${letters}ABCDEFGHIJKLMNOPQRSTUVWXYZ`
const idLength = 12
/** 62^43 is a little more than 2^256. */
const secretLength = 43
const form = new RegExp(`^gbx_([a-z0-9]{${idLength}})_([A-Za-z0-9]{${secretLength}})$`)

export interface MadeKey {
  readonly id: string
  readonly secret: string
  readonly hash: Uint8Array
}

export function makeKey(): MadeKey {
  const id = pick(letters, idLength)
  const secret = `gbx_${id}_${pick(more, secretLength)}`
  return { id, secret, hash: hashOfSecret(secret) }
}

function pick(from: string, count: number): string {
  return Array.from({ length: count }, () => from[randomInt(from.length)]).join('')
}

/** Undefined for what is no key of ours, by its form. */
export function keyIdIn(secret: string): string | undefined {
  return form.exec(secret)?.[1]
}

/** Longer than any key is cut: hashing takes as long for whatever is given. */
export function hashOfSecret(secret: string): Uint8Array {
  return createHash('sha256').update(secret.slice(0, 256)).digest()
}

/** Takes as long whatever the two have in common. */
export function isSameHash(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && timingSafeEqual(one, other)
}
