import type { AuditTrail } from '../contract/audit.js'
import { SandboxError } from '../contract/errors.js'
import {
  type Actor,
  type AuthenticateOptions,
  type KeyFilter,
  type KeyInfo,
  type KeyRequest,
  type Keys,
  keyIdSchema,
  keyRequestSchema,
  type NewKey,
  type Page,
  type PageRequest,
  scopes,
} from '../contract/tenants.js'
import { parseObject, parseWith } from '../policy/refusal.js'
import { acting } from './acting.js'
import { hashOfSecret, isSameHash, keyIdIn, makeKey } from './key-format.js'
import { KeyUses } from './key-uses.js'
import { pageOf, parsePage } from './pages.js'
import type { TenantStore } from './store.js'
import { Throttle, type ThrottleOptions } from './throttle.js'

export interface KeyRingOptions {
  readonly store: TenantStore
  readonly trail: AuditTrail
  readonly throttle?: ThrottleOptions
}

/** Compared with where there is no key, so that looking for one that is not there takes as long. */
const nobody = { id: '0'.repeat(12), hash: new Uint8Array(32) }
const usedAgainMs = 60_000

export class KeyRing implements Keys {
  readonly #store: TenantStore
  readonly #trail: AuditTrail
  readonly #throttle: Throttle
  readonly #uses: KeyUses

  constructor({ store, trail, throttle = {} }: KeyRingOptions) {
    this.#store = store
    this.#trail = trail
    this.#throttle = new Throttle(throttle)
    this.#uses = new KeyUses(trail, () => performance.now())
  }

  async create(request: KeyRequest, by: Actor): Promise<NewKey> {
    const { tenant, scopes: asked, expires, name } = parseObject(keyRequestSchema, request, { what: 'key', objects: [] })
    if (expires !== undefined && Date.parse(expires) <= Date.now()) throw new SandboxError('invalid', `expires: ${expires} is over`)
    const { id, secret, hash } = makeKey()
    const given = scopes.filter((scope) => asked.includes(scope))
    const told = { ...(expires !== undefined && { expiresAt: new Date(expires).toISOString() }), ...(name !== undefined && { name }) }
    const info: KeyInfo = { id, tenant, scopes: given, createdAt: new Date().toISOString(), ...told }
    await acting(this.#trail, { act: 'key.create', actor: by.key, tenant, details: { id, scopes: given, ...told } }, async () => {
      if (!(await this.#store.addKey({ ...info, hash })))
        throw new SandboxError('not-found', `there is no tenant ${tenant}`, { hint: `glovebox tenants create ${tenant}` })
    })
    return { ...info, secret }
  }

  async authenticate(secret: unknown, { source }: AuthenticateOptions = {}): Promise<Actor> {
    const text = typeof secret === 'string' ? secret : ''
    const id = keyIdIn(text)
    const waitMs = this.#throttle.waitMs(source, id)
    if (waitMs > 0)
      throw new SandboxError('busy', 'too many wrong keys came from this address', { retryAfterMs: waitMs, hint: `sleep ${Math.ceil(waitMs / 1000)}` })
    const known = this.#store.key(id ?? nobody.id)
    const isSame = isSameHash(hashOfSecret(text), known?.hash ?? nobody.hash)
    if (!known || !isSame || !isUsable(known)) {
      this.#throttle.wrong(source, id)
      this.#uses.refused({ keyId: id, source })
      throw new SandboxError('unauthorized', 'the key is missing, wrong, expired or revoked', { hint: 'glovebox keys create' })
    }
    this.#throttle.right(source, known.id)
    this.#uses.used({ key: known.id, tenant: known.tenant, source })
    await this.#noteUse(known)
    return { key: known.id, tenant: known.tenant, scopes: known.scopes }
  }

  // eslint-disable-next-line @typescript-eslint/require-await -- another store would be waited for
  async list(filter: KeyFilter = {}, page: PageRequest = {}): Promise<Page<KeyInfo>> {
    const { after, limit } = parsePage(page, keyIdSchema)
    return pageOf(this.#store.keys({ ...filter, after, limit: limit + 1, now: new Date().toISOString() }), limit)
  }

  // eslint-disable-next-line @typescript-eslint/require-await -- another store would be waited for
  async isAccepted(id: string): Promise<boolean> {
    const known = this.#store.key(id)
    return known !== undefined && isUsable(known)
  }

  async revoke(id: string, by: Actor): Promise<boolean> {
    const known = this.#store.key(parseWith(keyIdSchema, id, 'id'))
    if (!known || known.revokedAt !== undefined) return false
    return acting(this.#trail, { act: 'key.revoke', actor: by.key, tenant: known.tenant, details: { id } }, () =>
      this.#store.revokeKey(id, new Date().toISOString()),
    )
  }

  /** To the minute: a request must not cost a write. */
  async #noteUse({ id, lastUsedAt }: KeyInfo): Promise<void> {
    const now = Date.now()
    if (lastUsedAt !== undefined && now - Date.parse(lastUsedAt) < usedAgainMs) return
    await this.#store.noteKeyUse(id, new Date(now).toISOString()).catch((error: unknown) => {
      // A disk that is full keeps nobody from closing what fills it.
      if (!(error instanceof SandboxError && error.code === 'full')) throw error
    })
  }
}

function isUsable({ revokedAt, expiresAt }: KeyInfo): boolean {
  return revokedAt === undefined && (expiresAt === undefined || Date.parse(expiresAt) > Date.now())
}
