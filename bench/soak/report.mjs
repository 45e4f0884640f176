/** What was found, in the form of a benchmark's report: figures, goals that were met or missed, and a chart of the whole time. */
import { renderLines } from '../../dist/bench/index.js'

const mostGrowth = 0.1
const mebibytes = (bytes) => bytes / 2 ** 20

function goal(text, lines, measured = lines.length) {
  if (lines.length === 0) return { text, state: 'met', measured }
  const more = lines.length > 10 ? ` … and ${lines.length - 10} more` : ''
  return { text, state: 'missed', why: `${lines.slice(0, 10).join('; ')}${more}` }
}

function growthGoal(text, before, after) {
  const ratio = after / before
  const found = `${mebibytes(before).toFixed(1)} MiB before, ${mebibytes(after).toFixed(1)} MiB after`
  return ratio <= 1 + mostGrowth ? { text, state: 'met', measured: ratio } : { text, state: 'missed', why: found }
}

function goals({ warm, end, left, accounts, told, open }) {
  return [
    growthGoal(`memory of the engine's process is at most ${1 + mostGrowth} × that after the warm-up`, warm.rssBytes, end.rssBytes),
    growthGoal(
      `its heap after collections is at most ${1 + mostGrowth} × that after the warm-up, without the code that V8 has compiled`,
      warm.heapBytes - warm.codeBytes,
      end.heapBytes - end.codeBytes,
    ),
    goal('no process, mount, cgroup, id, file or descriptor is left', left),
    goal('every act that was begun has ended, once and as it had to', [...accounts.failures, ...open], accounts.ended),
    goal('every sandbox that was created was closed, once', told.differences, told.created),
  ]
}

function figures({ warm, end, accounts, told, seconds }) {
  const amounts = [
    ['acts', accounts.ended, ''],
    ['acts per second', accounts.ended / seconds, '/s'],
    ['sandboxes created', told.created, ''],
    ['memory after the warm-up', mebibytes(warm.rssBytes), 'MiB'],
    ['memory at the end', mebibytes(end.rssBytes), 'MiB'],
    ['heap that V8 has taken, after the warm-up', mebibytes(warm.heapTotalBytes), 'MiB'],
    ['heap that V8 has taken, at the end', mebibytes(end.heapTotalBytes), 'MiB'],
    ['heap after the warm-up', mebibytes(warm.heapBytes), 'MiB'],
    ['heap at the end', mebibytes(end.heapBytes), 'MiB'],
    ['of it code that V8 has compiled, after the warm-up', mebibytes(warm.codeBytes), 'MiB'],
    ['of it code that V8 has compiled, at the end', mebibytes(end.codeBytes), 'MiB'],
    ...told.exits.map(([kind, count]) => [`programs that ended as ${kind}`, count, '']),
    ...accounts.rows.map(({ name, end, count }) => [`${name}: ${end}`, count, '']),
  ]
  return amounts.map(([name, value, unit]) => ({ name, value, unit }))
}

export function reportOf(found, environment) {
  const { seed, minutes, lanes } = found
  const title = `Soak: ${minutes} minutes of mixed use of one engine over bwrap, ${lanes} callers, seed ${seed}`
  const table = { section: 'soak', title, rows: [], figures: figures(found), missing: [], goals: goals(found) }
  return { environment, tables: [table], samples: found.samples }
}

export function chartOf({ samples, minutes, warm }) {
  const line = (name, value) => ({ name, points: samples.map((sample) => [sample.seconds, value(sample)]) })
  const rates = samples.map((sample, index) => {
    const before = samples[index - 1] ?? { seconds: 0, acts: 0 }
    return [sample.seconds, (sample.acts - before.acts) / Math.max(0.001, sample.seconds - before.seconds)]
  })
  return renderLines(
    `Soak: ${minutes} minutes of mixed use of one engine`,
    [
      {
        title: 'Memory of the engine',
        unit: 'MiB',
        lines: [line('resident', ({ rssBytes }) => mebibytes(rssBytes)), line('heap', ({ heapBytes }) => mebibytes(heapBytes))],
      },
      { title: 'Descriptors', unit: '', lines: [line('open', ({ descriptors }) => descriptors)] },
      { title: 'Acts', unit: 'per second', lines: [{ name: 'ended', points: rates }] },
    ],
    { 'warm-up over': warm.seconds },
  )
}
