/**
 * A sandbox of gVisor leaves the groups that the engine made for it, for ours. Which processes it has is told by the engine's groups themselves, not by who started whom:
 * of those in which guests' code runs many outlive the one that forked them.
 */
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { SandboxError } from '../../contract/errors.js'
import { parseCgroupMounts } from '../../sys/cgroup-mounts.js'
import { readProc } from '../../sys/posture/proc-files.js'

const patienceMs = 5000

/** Resolves when nobody is left in them. All threads of a process go with it, and what it starts from then on. */
export async function leaveEngineGroups(sentry: number, doors: readonly string[]): Promise<void> {
  if (doors.length === 0) return
  const left = groupsLeft(sentry, doors)
  // What one process enters by itself may be for single threads.
  const whole = doors.map((door) => join(dirname(door), 'cgroup.procs'))
  const until = performance.now() + patienceMs
  for (let pids = processesIn(left); pids.length > 0; pids = processesIn(left)) {
    if (performance.now() > until) throw new SandboxError('unavailable', 'the cell did not open: its processes do not leave the groups of the container engine')
    for (const pid of pids) for (const door of whole) enter(pid, door)
    await sleep(1)
  }
}

/** Those in hierarchies in which there is a group of ours; in the others it stays where it is. */
function groupsLeft(sentry: number, doors: readonly string[]): string[] {
  const ours = new Set(doors.map((door) => statSync(dirname(door)).dev))
  const mounts = parseCgroupMounts({ mountinfo: readProc('self', 'mountinfo'), cgroup: readProc(sentry, 'cgroup') })
  return [...new Set(mounts.map(({ own }) => own))].filter((group) => ours.has(statSync(group).dev))
}

function processesIn(groups: readonly string[]): number[] {
  return [...new Set(groups.flatMap((group) => readFileSync(join(group, 'cgroup.procs'), 'utf8').split('\n').map(Number)))].filter((pid) => pid > 0)
}

function enter(pid: number, door: string): void {
  try {
    writeFileSync(door, `${pid}`)
  } catch (error) {
    // It has ended meanwhile.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
