import type { Figure, Missing } from './report.js'
import { reasonOf, rotate, type Subject } from './sampling.js'

interface ThroughputOptions {
  readonly concurrency: number
  readonly rounds: number
  readonly sliceMs: number
  readonly signal: AbortSignal
}

export interface Throughput {
  readonly figures: readonly Figure[]
  readonly missing: readonly Missing[]
  /** Runs per second, by name of the subject. */
  readonly perSecond: ReadonlyMap<string, number>
}

interface Tally {
  runs: number
  ms: number
}

/** How many of each are done per second by so many callers that never rest, in turns, so that noise of the machine hits all of them alike. */
export async function measureThroughput(subjects: readonly Subject[], options: ThroughputOptions): Promise<Throughput> {
  const tallies = new Map(subjects.map((subject) => [subject, { runs: 0, ms: 0 }]))
  const missing: Missing[] = []
  for (let round = -1; round < options.rounds; round++) {
    for (const subject of rotate([...tallies.keys()], round)) {
      options.signal.throwIfAborted()
      try {
        const slice = await runSlice(subject, options)
        // The first round warms up.
        if (round >= 0) add(tallies.get(subject), slice)
      } catch (error) {
        if (options.signal.aborted) throw error
        tallies.delete(subject)
        missing.push({ name: `${subject.name}, ${options.concurrency} at once`, why: reasonOf(error) })
      }
    }
  }
  const perSecond = new Map([...tallies].map(([{ name }, { runs, ms }]) => [name, (runs / ms) * 1000]))
  const figures = [...perSecond].map(([name, value]) => ({ name: `${name}, ${options.concurrency} at once`, value, unit: 'runs/s' }))
  return { figures, missing, perSecond }
}

function add(tally: Tally | undefined, { runs, ms }: Tally): void {
  if (tally === undefined) return
  tally.runs += runs
  tally.ms += ms
}

/** Ends when the last run that was begun in time is over and everything is as before, and counts that time too. */
async function runSlice(subject: Subject, { concurrency, sliceMs, signal }: ThroughputOptions): Promise<Tally> {
  const begin = performance.now()
  let runs = 0
  let failed = false
  const caller = async (): Promise<void> => {
    while (performance.now() - begin < sliceMs && !failed && !signal.aborted) {
      try {
        await subject.run()
        runs += 1
      } catch (error) {
        failed = true
        throw error
      }
    }
  }
  const ends = await Promise.allSettled(Array.from({ length: concurrency }, caller))
  // What was taken from a store that was full has to be put back, or a slice would be paid for by nobody.
  await subject.after?.(undefined)
  const ms = performance.now() - begin
  const failure = ends.find((end) => end.status === 'rejected')
  if (failure !== undefined) throw failure.reason
  return { runs, ms }
}
