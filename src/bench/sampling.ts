import { setTimeout as sleep } from 'node:timers/promises'
import type { Missing, Row } from './report.js'
import { summarise, withRatios } from './statistics.js'

/** One thing to be done again and again. */
export interface Subject {
  readonly name: string
  readonly run: () => Promise<unknown>
  /** What has to be done with the result, or waited for, before the next sample; not measured. */
  readonly after?: (result: unknown) => Promise<unknown>
}

interface SamplingOptions {
  readonly rounds: number
  readonly warmups?: number
  /** Keeps what one does ahead for its next sample from slowing the other down. */
  readonly pauseMs?: number
  readonly signal: AbortSignal
}

export interface Sampled {
  /** In the order of the subjects, with the ratio to the first. */
  readonly rows: readonly Row[]
  readonly missing: readonly Missing[]
}

/**
 * One sample of each subject per round, in an order that turns, so that noise of the machine hits all of them alike. A subject that fails is left out from then on
 * and told with its reason; the first, which all others are compared with, must not fail.
 */
export async function sampleInterleaved(subjects: readonly Subject[], options: SamplingOptions): Promise<Sampled> {
  const { rounds, warmups = 3, pauseMs = 0, signal } = options
  const samples = new Map(subjects.map((subject) => [subject, [] as number[]]))
  const missing: Missing[] = []
  for (let round = -warmups; round < rounds; round++) {
    for (const subject of rotate([...samples.keys()], round)) {
      signal.throwIfAborted()
      try {
        const ms = await sampleOnce(subject)
        if (round >= 0) samples.get(subject)?.push(ms)
      } catch (error) {
        if (subject === subjects[0] || signal.aborted) throw error
        samples.delete(subject)
        missing.push(missingOf(subject.name, error))
      }
      if (pauseMs > 0) await sleep(pauseMs)
    }
  }
  return { rows: withRatios([...samples].map(([{ name }, each]) => summarise(name, each))), missing }
}

async function sampleOnce(subject: Subject): Promise<number> {
  const begin = performance.now()
  const result = await subject.run()
  const ms = performance.now() - begin
  await subject.after?.(result)
  return ms
}

/** What the library refuses for what it is or where it runs is no failure of what was to be measured. */
export function missingOf(name: string, error: unknown): Missing {
  return { name, why: reasonOf(error), ...(error instanceof Error && 'code' in error && error.code === 'unsupported' && { isUnsupported: true }) }
}

export function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  return message.trim().split('\n').slice(0, 3).join(' ').slice(0, 300)
}

export function rotate<Item>(list: readonly Item[], by: number): readonly Item[] {
  if (list.length === 0) return list
  const offset = ((by % list.length) + list.length) % list.length
  return [...list.slice(offset), ...list.slice(0, offset)]
}

interface SeriesOptions {
  readonly rounds: number
  readonly length: number
  readonly signal: AbortSignal
}

/** Series of each subject, one call right after the other: a sample is the mean of a series. */
export async function sampleSeries(subjects: readonly Subject[], { rounds, length, signal }: SeriesOptions): Promise<Sampled> {
  const inSeries = ({ name, run }: Subject): Subject => ({
    name: `${name}, ${length} in a row`,
    run: async () => {
      for (let call = 0; call < length; call++) await run()
    },
  })
  const { rows, missing } = await sampleInterleaved(subjects.map(inSeries), { rounds, warmups: 1, signal })
  return { rows: rows.map((row) => ({ ...row, p50: row.p50 / length, p95: row.p95 / length, p99: row.p99 / length })), missing }
}
