import { spawnSync } from 'node:child_process'
import { cliPath } from './cli.js'

interface Probe {
  readonly driver: string
  readonly available: boolean
  readonly features: Readonly<Record<string, { readonly available: boolean }>>
  readonly limits: Readonly<Record<string, { readonly enforced: boolean }>>
}

const report = JSON.parse(spawnSync(process.execPath, [cliPath, 'doctor', '--json'], { encoding: 'utf8' }).stdout) as { readonly drivers: readonly Probe[] }
const bwrap = report.drivers.find((probe) => probe.driver === 'bwrap')

/** What the driver itself says about this machine: the only reason to skip a test of it. */
export const isBwrapReady = bwrap?.available === true
export const canPause = bwrap?.features.pause?.available === true
export const enforcesMemory = bwrap?.limits.memory?.enforced === true
