/**
 * Interleaved sampling: one sample of each subject per round, so that noise of the machine hits all of them alike. What a subject's `after` does
 * with the result is not measured.
 */
export async function sampleInterleaved(subjects, { rounds, warmups = 3 }) {
  const samples = new Map(subjects.map((subject) => [subject.name, []]))
  for (let round = -warmups; round < rounds; round++) {
    for (const subject of rotate(subjects, round)) {
      const begin = process.hrtime.bigint()
      const result = await subject.run()
      const ms = Number(process.hrtime.bigint() - begin) / 1e6
      await subject.after?.(result)
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
