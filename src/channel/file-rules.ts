/** The payload of RULES: what programs may do with which files. */
import { SandboxError } from '../contract/errors.js'
import { maxRulesBytes } from './frames.js'

export interface FileRule {
  /** A sum of 1 execute, 2 read, 4 move between folders. */
  readonly access: number
  /** As the cell sees it, from its root; of a folder the rule holds for all beneath. One that is not there is skipped. */
  readonly path: string
}

const maxAccess = 7
const maxPathBytes = 4095

function encodeRule({ access, path }: FileRule, index: number): Buffer {
  if (!Number.isInteger(access) || access < 1 || access > maxAccess) throw new SandboxError('invalid', `rules[${index}]: access ${access} is none`)
  const bytes = Buffer.from(path)
  if (!path.startsWith('/') || path.includes('\0') || bytes.length > maxPathBytes)
    throw new SandboxError('invalid', `rules[${index}]: '${path.slice(0, 80)}' is no path from the root`)
  const rule = Buffer.allocUnsafe(8 + bytes.length)
  rule.writeUInt32LE(access, 0)
  rule.writeUInt32LE(bytes.length, 4)
  rule.set(bytes, 8)
  return rule
}

/** Throws SandboxError('invalid') naming the rule that does not fit the protocol. No rule at all lets nothing be executed or read. */
export function encodeRules(rules: readonly FileRule[]): Buffer {
  const count = Buffer.allocUnsafe(4)
  count.writeUInt32LE(rules.length)
  const payload = Buffer.concat([count, ...rules.map(encodeRule)])
  if (payload.length > maxRulesBytes) throw new SandboxError('invalid', `rules have ${payload.length} bytes together; at most ${maxRulesBytes} are possible`)
  return payload
}
