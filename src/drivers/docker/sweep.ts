import type { EngineClient } from '../../sys/docker/client.js'
import { machineName } from '../../sys/owner.js'
import { Sweeper } from '../../sys/sweeper.js'
import { labels } from './container.js'
import { remove } from './spawner.js'

/** Whoever wants a cell of an engine that does not answer is told so by what comes next. */
const answerMs = 10_000

interface Listed {
  readonly Id: string
  readonly Labels?: Readonly<Record<string, string>>
}

/** Removes the containers of owners that died; resolves to how many. Most are gone by then: a container ends with its owner's connection, and is removed when it has. */
export async function sweepContainers(engine: EngineClient, sweeper = new Sweeper()): Promise<number> {
  const filters = JSON.stringify({ label: [labels.owner] })
  const listed = (await engine.call('GET', '/containers/json', { query: { all: '1', filters }, timeoutMs: answerMs })) as readonly Listed[]
  // Whether an owner lives is for its own machine to say.
  const own = listed.filter(({ Labels }) => Labels?.[labels.machine] === machineName())
  let removed = 0
  await Promise.all(
    own.map(({ Id, Labels }) =>
      sweeper.attemptSlowly({ kind: 'container', what: Id.slice(0, 12), owner: Labels?.[labels.owner] ?? '' }, async () => {
        await remove(engine, Id)
        removed += 1
      }),
    ),
  )
  return removed
}
