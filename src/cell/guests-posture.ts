/** What the kernel says of every process and thread that runs a guest's code. They go on running while they are looked at. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Observation, Posture } from '../contract/posture.js'
import { type ThreadPlaces, threadsOfCell } from '../sys/posture/cell-threads.js'
import { threadsBelow } from '../sys/posture/group-members.js'
import { readNamespaces } from '../sys/posture/namespaces.js'
import { fileOf, isGone, readProc } from '../sys/posture/proc-files.js'
import { observeProcess, placeOf, type Surroundings } from '../sys/posture/process-posture.js'
import { type ProcessStatus, parseStatus } from '../sys/posture/process-status.js'
import { lifeOf } from '../sys/posture/thread-life.js'

export interface GuestsView {
  readonly places: ThreadPlaces
  readonly surroundings: Omit<Surroundings, 'cgroupOf'>
}

const mostPasses = 20
const mostLooks = 4
const pauseMs = 2

/**
 * A posture of each that was met alive, and after them one of the cell that says whether these are all: two lists were made one after the other,
 * nothing in the second was new, and all of it was looked at. Whoever starts and ends faster than that is met in part.
 */
export async function observeGuests(view: GuestsView): Promise<Posture[]> {
  const met = new Map<string, Posture>()
  let isComplete = false
  for (let pass = 0, before: ReadonlySet<string> = new Set(); pass < mostPasses && !isComplete; pass += 1) {
    if (pass > 1) await sleep(pauseMs)
    const marks = await lookAtAll(createGaze(view), met)
    isComplete = !marks.has(vanished) && [...marks].every((mark) => before.has(mark)) && pass > 0
    before = marks
  }
  return [...met.values(), { subject: 'cell', observations: [{ control: 'complete', value: isComplete, evidence: 'kernel', source: '/proc' }] }]
}

const vanished = 'vanished'

interface Gaze extends GuestsView {
  readonly warden: { readonly file: string; readonly filters: number | null }
  readonly surroundings: Surroundings
}

function createGaze({ places, surroundings }: GuestsView): Gaze {
  const { first, folders } = places
  const members = new Map(folders?.map((folder) => [folder, threadsBelow(folder)]))
  // Whoever was started since the list was made is looked for again.
  const isOutside = (folder: string, id: number): boolean => !members.get(folder)?.has(id) && !threadsBelow(folder).has(id)
  const cgroupOf = (id: number): string => {
    const missed = folders?.find((folder) => isOutside(folder, id))
    return missed === undefined ? (folders === undefined ? 'none' : 'run') : `not in ${missed}`
  }
  const warden = { file: fileOf(first), filters: parseStatus(readProc(first, 'status')).filters }
  return { places, warden, surroundings: { ...surroundings, cgroupOf } }
}

/** A mark of every thread that is listed now: the same as long as nothing happens to it. */
async function lookAtAll(gaze: Gaze, met: Map<string, Posture>): Promise<Set<string>> {
  const marks = new Set<string>()
  for (const thread of threadsOfCell(gaze.places)) {
    const life = lifeOf(thread)
    const mark = `${thread} since ${life?.startedAt}`
    const found = life === undefined || met.has(mark) ? undefined : await lookAt({ gaze, thread, startedAt: life.startedAt })
    if (typeof found === 'object') met.set(mark, found)
    marks.add(found === vanished ? vanished : mark)
  }
  return marks
}

interface ThreadOrder {
  readonly gaze: Gaze
  readonly thread: number
  readonly startedAt: string
}

/**
 * Undefined for what is the warden's own. Of a thread that ends while it is read some of what is told is not true any more; when it lives afterwards
 * it did so all the time, and everything is. One that is being made is in no group for a moment, and is looked at again.
 */
async function lookAt({ gaze, thread, startedAt }: ThreadOrder): Promise<Posture | typeof vanished | undefined> {
  const who = `${thread}/task/${thread}`
  const isThere = (): boolean => lifeOf(thread)?.startedAt === startedAt
  try {
    for (let look = 1; ; look += 1) {
      const status = parseStatus(readProc(who, 'status'))
      if (isWardens(who, status, gaze)) return undefined
      const observations = observeProcess(who, gaze.surroundings)
      if (!isThere()) return vanished
      if (!isOutside(observations)) return { subject: subjectOf(status), observations }
      // A number may have been given to somebody else since it was listed.
      if (look === mostLooks) return threadsOfCell(gaze.places).has(thread) ? { subject: subjectOf(status), observations } : vanished
      await sleep(pauseMs)
    }
  } catch (error) {
    // Namespaces of a thread that is gone are told to be forbidden.
    if (isGone(error) || !isThere()) return vanished
    throw error
  }
}

/**
 * Keepers, and programs until their filter is loaded, which is the last thing before execve. The file alone would not tell: a guest may execute the
 * same one, but is never rid of its filter.
 */
function isWardens(who: string, { filters, pids }: ProcessStatus, { warden, surroundings }: Gaze): boolean {
  if (filters !== null && warden.filters !== null && filters > warden.filters) return false
  return fileIfThere(who) === warden.file || makesLiners(who, pids, surroundings)
}

/** A zygote, or the first process of a liner that it made: neither runs anything of a guest's, and every guest has one filter more. */
function makesLiners(who: string, pids: readonly number[], { namespaces }: Surroundings): boolean {
  const place = placeOf(readNamespaces(who), namespaces)
  return place === 'cradle' || (place === 'liner' && pids.at(-1) === 1)
}

/** None of a thread that is about to end. */
function fileIfThere(who: string): string | undefined {
  try {
    return fileOf(who)
  } catch (error) {
    if (isGone(error)) return undefined
    throw error
  }
}

function isOutside(observations: readonly Observation[]): boolean {
  const { cgroup } = observations.find(({ control }) => control === 'placement')?.value as { cgroup: string }
  return cgroup.startsWith('not in ')
}

function subjectOf({ pids, processes }: ProcessStatus): string {
  const process = `pid ${processes.at(-1)}`
  return pids[0] === processes[0] ? process : `${process} thread ${pids.at(-1)}`
}
