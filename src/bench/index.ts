import { code } from './code.js'
import { cold } from './cold.js'
import { egress } from './egress.js'
import type { Ground, Section } from './ground.js'
import { idle } from './idle.js'
import { many } from './many.js'
import { oneShots } from './one-shot.js'
import { prepared } from './prepared.js'
import type { Table } from './report.js'
import { reasonOf } from './sampling.js'
import { sustained } from './sustained.js'
import { warm } from './warm.js'

export { dockerCliName, srtCliName } from './cold.js'
export { environmentOf, layDownBurdens, versionOf } from './environment.js'
export { atLeast, atMost, ratioOf } from './goals.js'
export type { Ground, Section } from './ground.js'
export { descendantsOf, pssBytes } from './host-processes.js'
export { newTraces, traceHost } from './host-traces.js'
export { renderLines } from './line-chart.js'
export { renderGoal, renderMarkdown, renderTable } from './markdown.js'
export { missedGoals, type Report, type Table } from './report.js'
export { writeReport } from './report-files.js'
export { sampleInterleaved } from './sampling.js'
export { renderSummary } from './summary.js'
export { expectOne, python } from './subjects.js'
export { measureThroughput } from './throughput.js'

/** In the order in which they are measured. */
export const sections: readonly Section[] = [cold, oneShots, prepared, sustained, warm, code, egress, idle, many]

/** Those that were named, or all but the long ones when none was. */
export function chooseSections(known: readonly Section[], names: readonly string[]): readonly Section[] {
  return known.filter(({ name, isLong }) => (names.length === 0 ? !isLong : names.includes(name)))
}

/** A section that fails is a table with the reason and a goal that was missed; the others are measured all the same. */
export async function measureSection(section: Section, ground: Ground): Promise<Table> {
  const { name, title } = section
  try {
    return { section: name, title, ...(await section.measure(ground)) }
  } catch (error) {
    if (ground.signal.aborted) throw error
    const why = reasonOf(error)
    return { section: name, title, rows: [], figures: [], missing: [{ name: title, why }], goals: [{ text: `${name} can be measured`, state: 'missed', why }] }
  }
}
