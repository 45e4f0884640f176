import type { KeyInfo, Scope } from '../../contract/tenants.js'
import { hasLedger, localActor, openLedger } from '../../ledger.js'
import { exitCodes } from '../exit-codes.js'
import { momentAhead } from '../moments.js'
import { escapeControls, printJson, say } from '../print.js'
import { writeOut } from '../streams.js'

export interface KeyCreateFlags {
  readonly tenant?: string
  readonly scope?: readonly string[]
  readonly expires?: string
  readonly name?: string
  readonly json?: true
}

export interface KeyListFlags {
  readonly tenant?: string
  readonly all?: true
  readonly json?: true
}

const notThere = 1

/** The key alone on stdout, so that a script can take it. */
export async function createKey({ tenant, scope, expires, name, json }: KeyCreateFlags): Promise<number> {
  await using ledger = await openLedger()
  const request = {
    ...(tenant !== undefined && { tenant }),
    ...(scope !== undefined && { scopes: [...scope] as Scope[] }),
    ...(expires !== undefined && { expires: momentAhead('--expires', expires) }),
    ...(name !== undefined && { name }),
  }
  const key = await ledger.keys.create(request, localActor)
  if (json) await printJson(key)
  else {
    say(
      `key ${key.id} of tenant ${key.tenant}, with scope ${key.scopes.at(-1)}${key.expiresAt === undefined ? '' : `, until ${key.expiresAt}`}; it is shown this once`,
    )
    await writeOut(`${key.secret}\n`)
  }
  return exitCodes.ok
}

/** A line for each; nothing when there is none. */
export async function listKeys({ tenant, all, json }: KeyListFlags): Promise<number> {
  const keys = hasLedger() ? await allKeys({ ...(tenant !== undefined && { tenant }), ...(all && { all }) }) : []
  if (json) await printJson({ keys })
  else await writeOut(keys.map((key) => `${lineOf(key)}\n`).join(''))
  return exitCodes.ok
}

async function allKeys(filter: { readonly tenant?: string; readonly all?: boolean }): Promise<readonly KeyInfo[]> {
  await using ledger = await openLedger()
  const keys: KeyInfo[] = []
  for (let cursor: string | undefined, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
    const { items, next } = await ledger.keys.list(filter, { limit: 1000, ...(cursor !== undefined && { cursor }) })
    keys.push(...items)
    cursor = next
  }
  return keys
}

/** Resolves to 1 when one of them was not there; the others are revoked all the same. */
export async function revokeKeys(ids: readonly string[], { json }: { readonly json?: true }): Promise<number> {
  await using ledger = await openLedger()
  const revoked: string[] = []
  const missing: string[] = []
  for (const id of ids) ((await ledger.keys.revoke(id, localActor)) ? revoked : missing).push(id)
  if (json) await printJson({ revoked, missing })
  else for (const id of missing) say(`there is no key ${id} that could be used`)
  return missing.length === 0 ? exitCodes.ok : notThere
}

function lineOf({ id, tenant, scopes, createdAt, lastUsedAt, expiresAt, revokedAt, name }: KeyInfo): string {
  const end = revokedAt === undefined ? (expiresAt === undefined ? '' : `expires ${minuteOf(expiresAt)}`) : `revoked ${minuteOf(revokedAt)}`
  const parts = [
    id,
    escapeControls(tenant).padEnd(12),
    scopes.join(',').padEnd(5),
    minuteOf(createdAt),
    lastUsedAt === undefined ? 'never used'.padEnd(21) : `used ${minuteOf(lastUsedAt)}`,
    end,
  ]
  return [...parts, name === undefined ? '' : escapeControls(name)].join('  ').trimEnd()
}

function minuteOf(time: string): string {
  return time.slice(0, 16).replace('T', ' ')
}
