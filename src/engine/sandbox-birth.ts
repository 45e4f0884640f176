import type { SandboxInfo } from '../contract/platform.js'
import type { PlannedSandbox } from '../policy/apply.js'
import type { MadeHome } from './live-cell.js'
import type { Preparation } from './making.js'

/** A cell that is made and becomes a sandbox now. */
export interface Birth {
  readonly id: string
  /** What was asked for. */
  readonly planned: PlannedSandbox
  readonly preparation: Preparation
  readonly home: MadeHome
  /** Whether it was made before anyone asked. */
  readonly pooled: boolean
  /** Of one that is handed out by a pool. */
  readonly pool?: 'hit' | 'miss'
  /** Nothing of it is left. */
  onGone?(): void
}

/** What is told of it at first: its times begin now. */
export function infoAtBirth({ id, planned, preparation, home, pool }: Birth): SandboxInfo {
  const { spec, choice, cell } = preparation
  const now = Date.now()
  return {
    id,
    state: 'running',
    spec: { ...planned.spec, limits: spec.limits, mounts: spec.mounts, ...(spec.cwd !== undefined && { cwd: spec.cwd }) },
    ...(cell.root.id !== undefined && { templateId: cell.root.id }),
    ...(cell.root.imageDigest !== undefined && { imageDigest: cell.root.imageDigest }),
    driver: home.probe.driver,
    tier: home.probe.tier,
    ...(pool && { pool }),
    createdAt: new Date(now).toISOString(),
    expiresAt: new Date(now + planned.spec.lifetimeMs).toISOString(),
    unenforced: choice.unenforced,
    clamped: planned.clamped,
  }
}
