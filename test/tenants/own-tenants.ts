import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Actor } from '../../src/contract/tenants.js'
import { openTenants } from '../../src/tenants/index.js'
import { ownTrailFolder } from '../audit/own-trail.js'

export const operator: Actor = { key: 'local', tenant: 'default', scopes: ['read', 'run', 'admin'] }

/** Keys, tenants and quotas in a folder of their own, with a real audit trail beside them; gone at the end. */
export async function ownTenants() {
  const trailFolder = ownTrailFolder()
  const folder = mkdtempSync(join(tmpdir(), 'glovebox-tenants-test-'))
  const trail = await trailFolder.open()
  const rooms = await openTenants(join(folder, 'tenants.db'), { trail })
  return {
    ...rooms,
    trail,
    folder,
    async [Symbol.asyncDispose]() {
      await rooms[Symbol.asyncDispose]()
      await trail[Symbol.asyncDispose]()
      trailFolder[Symbol.dispose]()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
