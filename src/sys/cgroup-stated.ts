import { SandboxError } from '../contract/errors.js'
import type { CgroupLimits, StatedLimits } from './cgroup-limits.js'
import type { Controller } from './cgroup-mounts.js'

const pageBytes = 4096

export interface StatedComparison {
  readonly stated: StatedLimits
  readonly limits: CgroupLimits
  readonly controllers: readonly Controller[]
}

/** A limit holds when the kernel says so, not when a write succeeded. Memory is counted in whole pages. A rate is only ever asked for by someone, so it must hold. */
export function refuseOtherLimits({ stated, limits, controllers }: StatedComparison): void {
  const { memoryBytes, cpus, processes } = stated
  const rates = limits.rates
  const wrong = [
    controllers.includes('memory') &&
      !(memoryBytes !== undefined && memoryBytes <= limits.memoryBytes && memoryBytes > limits.memoryBytes - pageBytes) &&
      'memory',
    controllers.includes('cpu') && !(cpus !== undefined && Math.abs(cpus - limits.cpus) < 1e-4) && 'cpus',
    controllers.includes('pids') && processes !== limits.processes && 'processes',
    rates !== undefined && stated.readBytesPerSecond !== rates.readBytesPerSecond && 'readRate',
    rates !== undefined && stated.writeBytesPerSecond !== rates.writeBytesPerSecond && 'writeRate',
  ].filter((name) => name !== false)
  if (wrong.length > 0) throw new SandboxError('unsupported', `the kernel states other limits than it was given: ${wrong.join(', ')}`)
}
