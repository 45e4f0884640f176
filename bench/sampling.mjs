/**
 * Interleaved sampling: one sample of each subject per round, so that noise of the machine hits all of them alike. What a subject's `after` does
 * with the result is not measured, and `pauseMs` keeps what one does ahead for its next sample from slowing the other down.
 */
export async function sampleInterleaved(subjects, { rounds, warmups = 3, pauseMs = 0 }) {
  const samples = new Map(subjects.map((subject) => [subject.name, []]))
  for (let round = -warmups; round < rounds; round++) {
    for (const subject of rotate(subjects, round)) {
      const begin = process.hrtime.bigint()
      const result = await subject.run()
      const ms = Number(process.hrtime.bigint() - begin) / 1e6
      await subject.after?.(result)
      if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs))
      if (round >= 0) samples.get(subject.name).push(ms)
    }
  }
  return subjects.map((subject) => ({ name: subject.name, ...summarise(samples.get(subject.name)) }))
}

function rotate(list, by) {
  const offset = ((by % list.length) + list.length) % list.length
  return [...list.slice(offset), ...list.slice(0, offset)]
}

function summarise(samples) {
  const sorted = [...samples].sort((a, b) => a - b)
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]
  return { samples: sorted.length, p50: at(0.5), p95: at(0.95), p99: at(0.99) }
}

/** Adds the ratio of each median to the median of the first subject, the plain spawn. */
export function withRatios(rows) {
  return rows.map((row) => ({ ...row, ratio: row.p50 / rows[0].p50 }))
}

/** Series of each subject, one call right after the other: a sample is the mean of a series. */
export async function sampleSeries(subjects, { rounds, length }) {
  const inSeries = ({ name, run }) => ({
    name: `${name}, ${length} in a row`,
    run: async () => {
      for (let call = 0; call < length; call++) await run()
    },
  })
  const rows = await sampleInterleaved(subjects.map(inSeries), { rounds, warmups: 1 })
  return rows.map(({ p50, p95, p99, ...row }) => ({ ...row, p50: p50 / length, p95: p95 / length, p99: p99 / length }))
}
