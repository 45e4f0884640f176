import { readFileSync } from 'node:fs'
import { descendantsOf } from './posture/process-tree.js'

/** /proc counts in hundredths of a second, whatever the kernel's own clock. */
const tickMs = 10
/** Of the fields after the name: user and system time of a process, then of the children it waited for. */
const firstTime = 11
const times = 4

/** What all that descends from a process has used, in milliseconds, those included that were waited for. */
export function processorTimeBelow(pid: number): number {
  return descendantsOf(pid).reduce((sum, each) => sum + processorTimeOf(each), 0)
}

function processorTimeOf(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields.slice(firstTime, firstTime + times).reduce((sum, ticks) => sum + Number(ticks) * tickMs, 0)
  } catch {
    return 0
  }
}
