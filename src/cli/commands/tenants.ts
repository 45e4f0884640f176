import { readPolicy } from '../../compose.js'
import { SandboxError } from '../../contract/errors.js'
import type { QuotaName, TenantChange, TenantInfo, TenantInput } from '../../contract/tenants.js'
import { hasLedger, localActor, openLedger } from '../../ledger.js'
import { exitCodes } from '../exit-codes.js'
import { escapeControls, printJson, say } from '../print.js'
import { writeOut } from '../streams.js'
import { bytesInWords } from '../words.js'

export interface TenantFlags {
  readonly title?: string
  readonly policy?: string
  readonly sandboxes?: string
  readonly cpus?: string
  readonly memory?: string
  readonly disk?: string
  readonly creates?: string
  readonly egress?: string
  readonly auditCode?: string
  readonly auditEnv?: string
  readonly auditReceipts?: string
  readonly json?: true
}

const none = 'none'
const notThere = 1

/** The quota that each flag is of, and whether it is a size. */
const quotaFlags: Readonly<Record<'sandboxes' | 'cpus' | 'memory' | 'disk' | 'creates' | 'egress', { readonly quota: QuotaName; readonly isSize: boolean }>> = {
  sandboxes: { quota: 'sandboxes', isSize: false },
  cpus: { quota: 'cpus', isSize: false },
  memory: { quota: 'memory', isSize: true },
  disk: { quota: 'disk', isSize: true },
  creates: { quota: 'createsPerMinute', isSize: false },
  egress: { quota: 'egressPerDay', isSize: true },
}

export async function createTenant(id: string, flags: TenantFlags): Promise<number> {
  const { name, policy, quotas, audit } = wishOf(flags)
  const input = {
    id,
    ...(typeof name === 'string' && { name }),
    ...(policy !== undefined && policy !== null && { policy }),
    quotas: withoutNull(quotas),
    ...(audit && { audit }),
  } as TenantInput
  await using ledger = await openLedger()
  return await tell(await ledger.tenants.create(input, localActor), flags)
}

export async function setTenant(id: string, flags: TenantFlags): Promise<number> {
  await using ledger = await openLedger()
  const { audit, ...wish } = wishOf(flags)
  const change = audit === undefined ? wish : { ...wish, audit: { ...(await ledger.tenants.get(id)).audit, ...audit } }
  return await tell(await ledger.tenants.update(id, change as TenantChange, localActor), flags)
}

/** A line for each. */
export async function listTenants({ json }: { readonly json?: true }): Promise<number> {
  const tenants = hasLedger() ? await allTenants() : []
  if (json) await printJson({ tenants })
  else await writeOut(tenants.map((tenant) => `${lineOf(tenant)}\n`).join(''))
  return exitCodes.ok
}

async function allTenants(): Promise<readonly TenantInfo[]> {
  await using ledger = await openLedger()
  const tenants: TenantInfo[] = []
  for (let cursor: string | undefined, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
    const { items, next } = await ledger.tenants.list({ limit: 1000, ...(cursor !== undefined && { cursor }) })
    tenants.push(...items)
    cursor = next
  }
  return tenants
}

/** Resolves to 1 when one of them was not there; the others are removed all the same. */
export async function removeTenants(ids: readonly string[], { json }: { readonly json?: true }): Promise<number> {
  await using ledger = await openLedger()
  const removed: string[] = []
  const missing: string[] = []
  for (const id of ids) ((await ledger.tenants.remove(id, localActor)) ? removed : missing).push(id)
  if (json) await printJson({ removed, missing })
  else for (const id of missing) say(`there is no tenant ${id}`)
  return missing.length === 0 ? exitCodes.ok : notThere
}

/** What the flags say: null takes away. */
function wishOf(flags: TenantFlags) {
  const { title, policy } = flags
  const given = (Object.keys(quotaFlags) as (keyof typeof quotaFlags)[]).filter((flag) => flags[flag] !== undefined)
  const quotas = Object.fromEntries(given.map((flag) => [quotaFlags[flag].quota, quotaOf(flag, flags[flag] ?? '')]))
  const audit = {
    ...(flags.auditCode !== undefined && { code: flags.auditCode }),
    ...(flags.auditEnv !== undefined && { env: flags.auditEnv }),
    ...(flags.auditReceipts !== undefined && { receipts: flags.auditReceipts }),
  }
  return {
    ...(title !== undefined && { name: title === none ? null : title }),
    ...(policy !== undefined && { policy: policy === none ? null : readPolicy(policy) }),
    quotas,
    ...(Object.keys(audit).length > 0 && { audit }),
  }
}

function quotaOf(flag: keyof typeof quotaFlags, text: string): string | number | null {
  if (text === none) return null
  if (quotaFlags[flag].isSize) return text
  const value = /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : Number.NaN
  if (Number.isNaN(value))
    throw new SandboxError('invalid', `--${flag}: must be a number or '${none}', got '${text.slice(0, 40)}'`, { hint: 'glovebox tenants set --help' })
  return value
}

function withoutNull(quotas: Readonly<Record<string, string | number | null>>): Record<string, string | number> {
  return Object.fromEntries(Object.entries(quotas).flatMap(([name, value]) => (value === null ? [] : [[name, value]])))
}

async function tell(tenant: TenantInfo, { json }: Pick<TenantFlags, 'json'>): Promise<number> {
  if (json) await printJson(tenant)
  else await writeOut(`${lineOf(tenant)}\n`)
  return exitCodes.ok
}

function lineOf({ id, name, policy, quotas, audit }: TenantInfo): string {
  const flags = Object.entries(quotaFlags)
  const limits = flags.flatMap(([flag, { quota, isSize }]) => {
    const limit = quotas[quota]
    return limit === undefined ? [] : [`${flag} ${isSize ? bytesInWords(limit) : limit}`]
  })
  const held = policy === undefined ? [] : [`policy ${typeof policy === 'string' ? policy : (policy.name ?? 'of its own')}`]
  const kept = audit.code === 'hash' ? ['audit by hash'] : []
  const title = name === undefined ? [] : [name]
  return escapeControls(`${id.padEnd(16)}${[...limits, ...held, ...kept, ...title].join(', ') || 'no quotas'}`)
}
