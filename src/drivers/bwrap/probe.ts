import type { Mechanism } from '../../cell/probe.js'
import { type BwrapFacts, readBwrapFacts } from './facts.js'
import { obstacleOf, obstaclesBefore } from './obstacles.js'

export const bwrapMechanism: Mechanism<BwrapFacts> = {
  driver: 'bwrap',
  tier: 'process',
  runtime: 'bwrap',
  wordsOf: (line) => (line.startsWith('bwrap:') ? line : undefined),
  readFacts: readBwrapFacts,
  runtimeOf: ({ bwrap }) => bwrap,
  obstaclesBefore,
  obstacleOf,
}
