import type { AuditEntry, AuditTrail } from '../contract/audit.js'
import { SandboxError } from '../contract/errors.js'

/** In the audit trail before its effect, and how it ended after. */
export async function acting<T>(trail: AuditTrail, entry: AuditEntry, act: () => Promise<T>): Promise<T> {
  const begun = await trail.append(entry)
  try {
    const result = await act()
    await trail.finish(begun, { outcome: { kind: 'ok' } })
    return result
  } catch (error) {
    const [code, message] = error instanceof SandboxError ? [error.code, error.message] : ['internal', 'a defect of ours']
    await trail.finish(begun, { outcome: { kind: 'error', code, message } })
    throw error
  }
}
