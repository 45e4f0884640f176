import { findProgram, type HostFacts, programPath, readHostFacts, type RuntimeProgram } from '../../cell/facts.js'
import { canMapRanges, type FailedTrial, hostObstacle, lastLine, missingPrograms } from '../../cell/judgement.js'
import type { Mechanism } from '../../cell/probe.js'
import type { Obstacle } from '../../contract/driver.js'
import { installCommand } from '../../sys/install-command.js'
import type { Runtime } from './runtimes.js'

export interface OciFacts extends HostFacts {
  readonly program: RuntimeProgram | undefined
  readonly install: string
}

export function ociMechanism(runtime: Runtime, path = (): string | undefined => programPath(runtime.name)): Mechanism<OciFacts> {
  return {
    driver: `oci:${runtime.name}`,
    tier: runtime.tier,
    runtime: runtime.name,
    wordsOf: runtime.wordsOf,
    readFacts: async (version) => ({ ...readHostFacts(), program: await findProgram(path(), version), install: installCommand(runtime.package) }),
    ...judgesOf(runtime),
  }
}

interface Named {
  readonly name: string
  readonly isRootless?: boolean
}

/** What is in the way of any runtime, and what a failed trial says. */
export function judgesOf(runtime: Named): Pick<Mechanism<OciFacts>, 'runtimeOf' | 'obstaclesBefore' | 'obstacleOf'> {
  return {
    runtimeOf: ({ program }) => program,
    obstaclesBefore: (facts) => obstaclesBefore(runtime, facts),
    obstacleOf: (facts, trial) => hostObstacle(facts, trial.said) ?? unexplained(runtime, trial),
  }
}

function obstaclesBefore({ name, isRootless = false }: Named, facts: OciFacts): readonly Obstacle[] {
  if (facts.platform !== 'linux') {
    return [{ what: 'not Linux', why: `containers need a Linux kernel and this is ${facts.platform}`, hint: 'export GLOVEBOX_URL=https://…' }]
  }
  const missing: Obstacle = { what: `no ${name}`, why: `the program ${name} is not installed`, hint: facts.install }
  const rootless: Obstacle = {
    what: 'not root',
    why: `${name} cells need ids of their own, which only root can give`,
    hint: `sudo glovebox run --driver oci:${name} -- true`,
  }
  return [...(facts.program === undefined ? [missing] : []), ...(isRootless || canMapRanges(facts) ? [] : [rootless]), ...missingPrograms(facts)]
}

function unexplained({ name }: Named, { said, hint }: FailedTrial): Obstacle {
  return { what: 'a trial cell did not open', why: lastLine(said) || 'it ended without a word', hint: hint ?? `${name} --version` }
}
