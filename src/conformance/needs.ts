import type { DriverLimit } from '../contract/driver.js'
import type { Need, Subject } from './subject.js'

/** Why the subject cannot be asked for this, in the probe's own words; undefined when it can. */
export function lackOf(need: Need, subject: Subject): string | undefined {
  const { probe } = subject
  switch (need) {
    case 'engine':
      return subject.depth === 'driver' ? 'the engine keeps this promise, not a driver' : undefined
    case 'isolates':
      return probe.isolates ? undefined : `${probe.driver} says that it does not isolate`
    case 'filters-syscalls':
      return probe.filtersSyscalls ? undefined : `${probe.driver} says that it does not filter system calls`
    case 'user:root':
      return probe.users.root.available ? undefined : `no root here: ${probe.users.root.why}`
    case 'no-user:root':
      return probe.users.root.available ? `${probe.driver} says that it has root` : undefined
  }
  return lackOfLimit(need, subject)
}

function lackOfLimit(need: `limit:${DriverLimit}` | `no-limit:${DriverLimit}`, { probe }: Subject): string | undefined {
  const [kind, limit] = need.split(':') as ['limit' | 'no-limit', DriverLimit]
  const enforcement = probe.limits[limit]
  if (kind === 'limit') return enforcement.enforced ? undefined : `no ${limit} limit here: ${enforcement.why}`
  return enforcement.enforced ? `${probe.driver} says that it enforces ${limit}: ${enforcement.by}` : undefined
}
