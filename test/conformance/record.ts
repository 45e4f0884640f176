import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CaseResult } from '../../src/conformance/index.js'
import type { Probe } from '../../src/contract/driver.js'

/** What one driver did with the cases at one depth, for whoever publishes it. */
export interface ConformanceRecord {
  readonly driver: string
  readonly depth: 'driver' | 'engine' | 'client'
  readonly isRoot: boolean
  /** Why nothing was asked of it. */
  readonly absent?: string
  readonly probe?: Probe
  readonly results: readonly Pick<CaseResult, 'id' | 'verdict' | 'reason'>[]
}

/** In the folder that the environment names; nowhere unless it does. */
export function keepRecord(record: Omit<ConformanceRecord, 'isRoot'>): void {
  const folder = process.env.GLOVEBOX_CONFORMANCE_RECORD
  if (folder === undefined) return
  mkdirSync(folder, { recursive: true })
  const isRoot = process.getuid?.() === 0
  const name = `${record.driver.replace(':', '-')}-${record.depth}-${isRoot ? 'root' : 'user'}.json`
  writeFileSync(join(folder, name), JSON.stringify({ ...record, isRoot }))
}
