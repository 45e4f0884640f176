import type { Observation } from '../contract/posture.js'
import type { FilterReading } from '../sys/posture/newest-filter.js'

/** What the newest filter of a program is, as far as the kernel shows it. */
export function filterObservation(reading: FilterReading, observations: readonly Observation[]): Observation {
  if ('unreadable' in reading) return { control: 'filter', value: null, evidence: 'asserted', source: reading.unreadable }
  const isFiltered = (observations.find(({ control }) => control === 'seccomp')?.value as { mode: number }).mode === 2
  if (reading.hash === null && isFiltered) return { control: 'filter', value: null, evidence: 'asserted', source: 'this kernel shows no filters' }
  return { control: 'filter', value: reading.hash, evidence: 'kernel', source: 'PTRACE_SECCOMP_GET_FILTER' }
}
