import type { DriverLimit, Feature } from '../contract/driver.js'
import type { Need, Subject } from './subject.js'

/** Why the subject cannot be asked for this, in the probe's own words; undefined when it can. */
export function lackOf(need: Need, subject: Subject): string | undefined {
  const { probe } = subject
  switch (need) {
    case 'engine':
      return subject.depth === 'driver' ? 'the engine keeps this promise, not a driver' : undefined
    case 'isolates':
      return probe.isolates ? undefined : `${probe.driver} says that it does not isolate`
    case 'own-inodes':
      return probe.facts['shared files'] === undefined ? undefined : `${probe.driver} says that cells share files: ${probe.facts['shared files']}`
    case 'own-kernel':
      return probe.ownKernel ? undefined : `${probe.driver} says that its programs run on the host's kernel`
    case 'shared-kernel':
      return probe.ownKernel ? `${probe.driver} says that its programs are processes of a kernel of their own, of which the host's tells nothing` : undefined
    case 'job-control':
      return probe.facts.terminals === undefined ? undefined : `${probe.driver} says of its terminals: ${probe.facts.terminals}`
    case 'filters-syscalls':
      return probe.filtersSyscalls ? undefined : `${probe.driver} says that it does not filter system calls`
    case 'user:root':
      return probe.users.root.available ? undefined : `no root here: ${probe.users.root.why}`
    case 'no-user:root':
      return probe.users.root.available ? `${probe.driver} says that it has root` : undefined
    default:
      return lackOfNamed(need, subject)
  }
}

type NamedNeed = `${'' | 'no-'}${'limit' | 'feature'}:${string}`

function lackOfNamed(need: NamedNeed, subject: Subject): string | undefined {
  const name = need.slice(need.indexOf(':') + 1)
  if (need.startsWith('limit:')) return lackOfLimit(name as DriverLimit, subject)
  if (need.startsWith('no-limit:')) return lackOfRefusal(name as DriverLimit, subject)
  const found = subject.probe.features[name as Feature]
  if (need.startsWith('feature:')) return found.available ? undefined : `no ${name} here: ${found.why}`
  return found.available ? `${subject.probe.driver} says that it has ${name}` : undefined
}

function lackOfLimit(limit: DriverLimit, { probe }: Subject): string | undefined {
  const enforcement = probe.limits[limit]
  if (!enforcement.enforced) return `no ${limit} limit here: ${enforcement.why}`
  return enforcement.whole ? `${probe.driver} says that the sandbox ends at its ${limit} limit: ${enforcement.by}` : undefined
}

function lackOfRefusal(limit: DriverLimit, { probe }: Subject): string | undefined {
  const enforcement = probe.limits[limit]
  return enforcement.enforced ? `${probe.driver} says that it enforces ${limit}: ${enforcement.by}` : undefined
}
