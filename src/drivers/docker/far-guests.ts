/** What the kernel of another machine says of every process and thread that runs a guest's code. */
import { setTimeout as sleep } from 'node:timers/promises'
import { SandboxError } from '../../contract/errors.js'
import type { Posture } from '../../contract/posture.js'
import { isGone } from '../../sys/posture/proc-files.js'
import { placeOf } from '../../sys/posture/process-posture.js'
import { parseLife } from '../../sys/posture/thread-life.js'
import type { FarView } from './far-posture.js'
import { factsOf, observeFarProcess, pidsOf, whileThere } from './far-process.js'

const mostPasses = 20
const pauseMs = 5

/** As of a cell of this machine: a posture of each that was met alive, and one of the cell that says whether these are all. */
export async function observeFarGuests(view: FarView): Promise<Posture[]> {
  const met = new Map<string, Posture | 'wardens'>()
  let isComplete = false
  for (let pass = 0, before: ReadonlySet<string> = new Set(); pass < mostPasses && !isComplete; pass += 1) {
    if (pass > 1) await sleep(pauseMs)
    const marks = await lookAtAll(view, met)
    isComplete = pass > 0 && marks !== undefined && [...marks].every((mark) => before.has(mark))
    before = marks ?? new Set()
  }
  const guests = [...met.values()].filter((each) => each !== 'wardens')
  return [...guests, { subject: 'cell', observations: [{ control: 'complete', value: isComplete, evidence: 'kernel', source: '/proc' }] }]
}

/** A mark of each thread that is there now; undefined when one of them was gone before it was looked at. */
async function lookAtAll(view: FarView, met: Map<string, Posture | 'wardens'>): Promise<ReadonlySet<string> | undefined> {
  const { teller, warden } = view
  const threads = (await Promise.all((await pidsOf(teller)).map((pid) => threadsOf(view, pid)))).flat()
  const looks = await Promise.all(
    threads.map(async (thread) => {
      const stat = await whileThere(teller.read(`/proc/${thread}/stat`))
      const life = stat === undefined ? undefined : parseLife(stat)
      if (life === undefined) return []
      const mark = `${thread} since ${life.startedAt}`
      if (met.has(mark) || thread.startsWith(`${warden.pid}/`)) return [mark]
      const found = await lookAt(view, thread)
      if (found !== undefined) met.set(mark, found)
      return [found === undefined ? vanished : mark]
    }),
  )
  const marks = new Set(looks.flat())
  return marks.has(vanished) ? undefined : marks
}

const vanished = 'vanished'

/** Those of a process in the cell; whoever is in the container alone has a single number. */
async function threadsOf({ teller }: FarView, pid: number): Promise<string[]> {
  const status = await whileThere(teller.read(`/proc/${pid}/status`))
  if (status === undefined) return []
  const row = /^NSpid:(.*)$/m.exec(status)?.[1]
  // Whose it is must be known: one that is passed over would be one that nobody looked at.
  if (row === undefined) throw new SandboxError('not-enforced', `whose process ${pid} is was not told`, { hint: 'glovebox doctor' })
  const levels = row.trim().split(/\s+/).length
  if (levels < 2) return []
  const tasks = (await whileThere(teller.list(`/proc/${pid}/task`))) ?? []
  return tasks.map((task) => `${pid}/task/${task}`)
}

/** Undefined when it is gone. What is the warden's own has one filter less than any guest, and its file or the place of whoever makes liners. */
async function lookAt(view: FarView, thread: string): Promise<Posture | 'wardens' | undefined> {
  const { teller, warden, surroundings } = view
  try {
    const { status, namespaces } = await factsOf(teller, thread)
    const place = placeOf(namespaces, warden.namespaces)
    const isFiltered = status.filters !== null && warden.status.filters !== null && status.filters > warden.status.filters
    const makesLiners = place === 'cradle' || (place === 'liner' && status.pids.at(-1) === 1)
    if (!isFiltered && (makesLiners || (await teller.identity(`/proc/${thread}/exe`)) === warden.file)) return 'wardens'
    const observations = await observeFarProcess(teller, thread, surroundings)
    const name = `pid ${status.processes.at(-1)}`
    return { subject: status.pids[0] === status.processes[0] ? name : `${name} thread ${status.pids.at(-1)}`, observations }
  } catch (error) {
    // Links of a process that is ending are told to be forbidden.
    if (isGone(error) || (await whileThere(teller.read(`/proc/${thread}/stat`)).then((stat) => stat === undefined || parseLife(stat) === undefined)))
      return undefined
    throw error
  }
}
