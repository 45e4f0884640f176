import { atLeast, type Measured } from './goals.js'
import type { Ground, Section } from './ground.js'
import { absence, cellName, linerName, openOneShots } from './one-shot.js'
import { bareBwrap, bareBwrapName, coldCell, plainSpawn } from './subjects.js'
import { measureThroughput } from './throughput.js'

/** Long beside what a pool makes again at the end of each, one cell after the other. */
const sliceMs = 3000

export const sustained: Section = {
  name: 'sustained',
  title: 'Sustained: runs per second',
  isLong: false,
  async measure(ground: Ground) {
    const plain = plainSpawn()
    const unpooled = coldCell(ground)
    await using shots = await openOneShots(ground, 8)
    const subjects = [plain, bareBwrap(), unpooled, ...shots.subjects]
    const options = { rounds: Math.ceil(ground.rounds / 30), sliceMs, signal: ground.signal }
    const two = await measureThroughput(subjects, { ...options, concurrency: 2 })
    const eight = await measureThroughput(subjects, { ...options, concurrency: 8 })
    const beside = (ours: string, other: string): Measured => shareOf(eight.perSecond, ours, other)
    const hasCells = shots.subjects.some(({ name }) => name === cellName)
    return {
      rows: [],
      figures: [...two.figures, ...eight.figures],
      missing: [...two.missing, ...eight.missing, ...shots.missing],
      goals: [
        atLeast(
          'fresh liners: at least 2.5 × as many runs per second as plain spawns, 8 at once',
          absence(shots.missing, linerName) ?? beside(linerName, plain.name),
          2.5,
        ),
        atLeast(
          'fresh cells: at least 0.7 × as many runs per second as bare bwrap, 8 at once',
          beside(hasCells ? cellName : unpooled.name, bareBwrapName),
          0.7,
        ),
      ],
    }
  },
}

function shareOf(perSecond: ReadonlyMap<string, number>, ours: string, other: string): Measured {
  const own = perSecond.get(ours)
  const others = perSecond.get(other)
  if (own === undefined) return { failed: `${ours} was not measured` }
  if (others === undefined) return { absent: `${other} was not measured` }
  return own / others
}
