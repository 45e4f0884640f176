import { type FailedTrial, hostObstacle, lastLine, missingPrograms } from '../../cell/judgement.js'
import type { Obstacle } from '../../contract/driver.js'
import type { BwrapFacts } from './facts.js'

/** What is in the way before anything is tried. */
export function obstaclesBefore(facts: BwrapFacts): Obstacle[] {
  if (facts.platform !== 'linux') {
    return [{ what: 'not Linux', why: `bwrap cells need a Linux kernel and this is ${facts.platform}`, hint: 'export GLOVEBOX_URL=https://…' }]
  }
  const missing: Obstacle = { what: 'no bwrap', why: 'the program bwrap (bubblewrap) is not installed', hint: facts.installBwrap }
  return [...(facts.bwrap === undefined ? [missing] : []), ...missingPrograms(facts)]
}

/** Why a trial did not open, most certain first. */
export function obstacleOf(facts: BwrapFacts, trial: FailedTrial): Obstacle {
  return tooOld(facts, trial.said) ?? hostObstacle(facts, trial.said) ?? unexplained(trial)
}

function tooOld(facts: BwrapFacts, said: string): Obstacle | undefined {
  const option = /Unknown option (--[a-z0-9-]+)/.exec(said)?.[1]
  if (option === undefined) return undefined
  return { what: 'bwrap too old', why: `bwrap ${facts.bwrap?.version ?? ''} does not know ${option}`, hint: facts.installBwrap }
}

function unexplained({ said, hint }: FailedTrial): Obstacle {
  return {
    what: 'a trial cell did not open',
    why: lastLine(said) || 'it ended without a word',
    hint: hint ?? 'bwrap --unshare-all --unshare-user --ro-bind / / --proc /proc true',
  }
}
