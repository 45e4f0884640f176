import { createHash } from 'node:crypto'
import { canonicalJson, presentable } from '../contract/canonical-json.js'

/** SHA-256, hexadecimal, of the canonical form, once what JSON has no place for is left out: see `presentable`. */
export function hashOf(value: unknown): string {
  return createHash('sha256')
    .update(canonicalJson(presentable(value)))
    .digest('hex')
}
