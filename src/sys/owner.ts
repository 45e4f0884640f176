import { createHash } from 'node:crypto'
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'

/**
 * A process named so that nothing else ever has the same name: a pid alone is used again after its process died.
 * Names are file names; records that bear one belong to that process.
 */
export interface Owner {
  readonly pid: number
  readonly startTime: string
  readonly pidNamespace: string
  readonly boot: string
}

export function currentOwner(): Owner {
  return { pid: process.pid, startTime: startTimeOf(process.pid) ?? '0', pidNamespace: currentPidNamespace(), boot: currentBoot() }
}

export function ownerName(owner: Owner): string {
  return `${owner.pid}.${owner.startTime}.${owner.pidNamespace}.${owner.boot}`
}

export function parseOwner(name: string): Owner | undefined {
  const match = /^(\d+)\.(\d+)\.(\d+)\.([0-9a-f]+)$/.exec(name)
  if (!match) return undefined
  const [, pid, startTime, pidNamespace, boot] = match as unknown as [string, string, string, string, string]
  return { pid: Number(pid), startTime, pidNamespace, boot }
}

/** True when in doubt: an owner in another pid namespace cannot be seen from here, and what is alive must not be swept. */
export function isAlive(owner: Owner): boolean {
  if (owner.boot !== currentBoot()) return false
  if (owner.pidNamespace !== currentPidNamespace()) return true
  return startTimeOf(owner.pid) === owner.startTime
}

/** In clock ticks since boot; undefined when there is no such process or only its zombie. */
function startTimeOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name in parentheses may hold anything, so fields are counted from its end; the state comes first.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields[19]
  } catch {
    return undefined
  }
}

export function currentPidNamespace(): string {
  return /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0] ?? '0'
}

export function currentBoot(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').replaceAll('-', '').trim()
}

/** Tells this machine from others that have something at the same place, also after it was started again. Its own name for itself is not told to them. */
export function machineName(): string {
  return createHash('sha256').update(`glovebox ${machineId()}`).digest('hex').slice(0, 16)
}

function machineId(): string {
  try {
    return readFileSync('/etc/machine-id', 'latin1').trim() || hostname()
  } catch {
    return hostname()
  }
}
