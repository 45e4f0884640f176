import { atMost, ratioOf } from './goals.js'
import type { Ground, Section } from './ground.js'
import { sampleInterleaved } from './sampling.js'
import { bareBwrap, coldCell, plainSpawn, throughCli } from './subjects.js'

/** Names by which the goals find the peers that they are about. */
export const dockerCliName = 'docker run --rm (CLI)'
export const srtCliName = 'sandbox-runtime (CLI)'

/** Times that what runs in this process is run before: a cold cell is one that nobody made ahead, not one whose engine was started for it, which is what the CLI's row tells. */
const heating = 150

export const cold: Section = {
  name: 'cold',
  title: 'Cold: run hello in Python, get its output',
  isLong: false,
  async measure(ground: Ground) {
    const plain = plainSpawn()
    const ours = coldCell(ground)
    const cli = throughCli(ground)
    await sampleInterleaved([plain, ours], { rounds: 0, warmups: heating, signal: ground.signal })
    const { rows, missing } = await sampleInterleaved([plain, bareBwrap(), ours, cli, ...ground.peers.found], ground)
    const beside = (own: string, other: string) => ratioOf({ rows, ours: own, beside: other })
    return {
      rows,
      figures: [],
      missing: [...ground.peers.missing, ...missing],
      goals: [
        atMost('create + python3 + close costs at most 2.0 × a plain spawn', beside(ours.name, plain.name), 2),
        atMost('glovebox run costs at most 0.5 × docker run --rm', beside(cli.name, dockerCliName), 0.5),
        atMost('glovebox run costs at most 0.5 × the CLI of sandbox-runtime', beside(cli.name, srtCliName), 0.5),
      ],
    }
  },
}
