/** Addresses that are proof of themselves: of one file or one port, until a time, and no longer than the key is accepted that signed them. The secret is this process's own, as are the sandboxes that they lead to. */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import * as z from 'zod'
import { SandboxError } from '../contract/errors.js'
import type { Actor } from '../contract/tenants.js'

const grantSchema = z.strictObject({
  tenant: z.string(),
  key: z.string(),
  sandbox: z.string(),
  /** Milliseconds since 1970. */
  expires: z.number(),
  port: z.number().optional(),
  /** Base64 of the path's bytes. */
  path: z.string().optional(),
  method: z.enum(['GET', 'PUT']).optional(),
})

export type Grant = z.output<typeof grantSchema>

const base32 = 'abcdefghijklmnopqrstuvwxyz234567'
const labelPattern = /^(\d{1,5})-([a-z0-9]{20})-([a-z0-9]{1,9})-([a-z2-7]{26})$/
const mostSandboxes = 10_000
const mostSigners = 64

export class Signing {
  readonly #secret = randomBytes(32)
  /** Who signed for a port of it, by key: a name of a host has no room for that. */
  readonly #signers = new Map<string, Map<string, Pick<Grant, 'tenant' | 'key'>>>()
  readonly #isAccepted: (key: string) => Promise<boolean>

  /** `isAccepted`: whether a key of this id would be accepted now. */
  constructor(isAccepted: (key: string) => Promise<boolean>) {
    this.#isAccepted = isAccepted
  }

  token(grant: Grant): string {
    const text = Buffer.from(JSON.stringify(grant)).toString('base64url')
    return `${text}.${this.#mac(`token ${text}`).toString('base64url')}`
  }

  /** Throws SandboxError('unauthorized'), the same whatever is wrong with it. */
  async open(token: string): Promise<Grant> {
    const [text = '', mac = '', ...more] = token.split('.')
    if (more.length > 0 || !isSame(this.#mac(`token ${text}`), Buffer.from(mac, 'base64url'))) throw refusal()
    const parsed = grantSchema.safeParse(JSON.parse(Buffer.from(text, 'base64url').toString()))
    if (!parsed.success) throw refusal()
    return this.#held(parsed.data)
  }

  /** Of a port, as the first part of the name of a host. */
  label({ tenant, key, sandbox, port, expires }: Grant): string {
    const signers = this.#signers.get(sandbox) ?? new Map<string, Pick<Grant, 'tenant' | 'key'>>()
    signers.set(key, { tenant, key })
    dropOldest(signers, mostSigners)
    this.#signers.set(sandbox, signers)
    dropOldest(this.#signers, mostSandboxes)
    const text = `${port}-${sandbox}-${Math.ceil(expires / 1000).toString(36)}`
    return `${text}-${this.#labelMac(text, { tenant, key })}`
  }

  async openLabel(label: string): Promise<Grant> {
    const [, port = '', sandbox = '', seconds = '', mac = ''] = labelPattern.exec(label) ?? []
    const text = `${port}-${sandbox}-${seconds}`
    const signers = [...(this.#signers.get(sandbox)?.values() ?? [])]
    const signer = signers.find((each) => isSame(Buffer.from(this.#labelMac(text, each)), Buffer.from(mac)))
    if (!signer) throw refusal()
    return this.#held({ ...signer, sandbox, port: Number(port), expires: Number.parseInt(seconds, 36) * 1000 })
  }

  async #held(grant: Grant): Promise<Grant> {
    if (!(grant.expires > Date.now()) || !(await this.#isAccepted(grant.key))) throw refusal()
    return grant
  }

  #labelMac(text: string, { tenant, key }: Pick<Grant, 'tenant' | 'key'>): string {
    return Array.from(this.#mac(`label ${tenant} ${key} ${text}`).subarray(0, 26), (byte) => base32[byte & 31]).join('')
  }

  #mac(text: string): Buffer {
    return createHmac('sha256', this.#secret).update(text).digest()
  }
}

/** Nothing but what was signed is done with it. */
export function actorOf({ tenant, key }: Grant): Actor {
  return { tenant, key, scopes: ['read', 'run'] }
}

/** Of a map that is in the order of its making. */
function dropOldest(map: Map<string, unknown>, most: number): void {
  for (const oldest of map.keys()) {
    if (map.size <= most) return
    map.delete(oldest)
  }
}

function isSame(one: Buffer, other: Buffer): boolean {
  return one.length === other.length && timingSafeEqual(one, other)
}

function refusal(): SandboxError {
  return new SandboxError('unauthorized', 'the address is not signed, or not any more')
}
