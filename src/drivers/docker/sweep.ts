import type { EngineClient } from '../../sys/docker/client.js'
import { machineName } from '../../sys/owner.js'
import { gone, type LeftoverKind, Sweeper } from '../../sys/sweeper.js'
import { labels } from './container.js'
import { remove } from './spawner.js'

/** Whoever wants a cell of an engine that does not answer is told so by what comes next. */
const answerMs = 10_000

interface Owned {
  readonly Labels?: Readonly<Record<string, string>> | null
}

interface Left extends Owned {
  readonly kind: LeftoverKind
  readonly what: string
  readonly remove: () => Promise<unknown>
}

/** Removes the containers of owners that died; resolves to how many. Most are gone by then: a container ends with its owner's connection, and is removed when it has. */
export async function sweepContainers(engine: EngineClient, sweeper = new Sweeper()): Promise<number> {
  const filters = JSON.stringify({ label: [labels.owner] })
  const listed = (await engine.call('GET', '/containers/json', { query: { all: '1', filters }, timeoutMs: answerMs })) as readonly (Owned & {
    readonly Id: string
  })[]
  const left = listed.map(({ Id, Labels }) => ({ kind: 'container' as const, what: Id.slice(0, 12), Labels: Labels ?? {}, remove: () => remove(engine, Id) }))
  return await sweepOwn(left, sweeper)
}

/** The same of disks that an engine made and did not remove with their containers, because it ended before. */
export async function sweepDisks(engine: EngineClient, sweeper = new Sweeper()): Promise<number> {
  const filters = JSON.stringify({ label: [labels.owner], dangling: ['true'] })
  const { Volumes } = (await engine.call('GET', '/volumes', { query: { filters }, timeoutMs: answerMs })) as {
    readonly Volumes?: readonly (Owned & { readonly Name: string })[] | null
  }
  const left = (Volumes ?? []).map(({ Name, Labels }) => ({
    kind: 'disk' as const,
    what: Name,
    Labels: Labels ?? {},
    remove: () => engine.call('DELETE', `/volumes/${Name}`),
  }))
  return await sweepOwn(left, sweeper)
}

async function sweepOwn(left: readonly Left[], sweeper: Sweeper): Promise<number> {
  // Whether an owner lives is for its own machine to say.
  const own = left.filter(({ Labels }) => Labels?.[labels.machine] === machineName())
  let removed = 0
  await Promise.all(
    own.map(({ kind, what, Labels, remove: act }) =>
      sweeper.attemptSlowly({ kind, what, owner: Labels?.[labels.owner] ?? '' }, async () => {
        const was = await act()
        // Docker that was killed goes on to list what it removed when it started again, until it starts once more.
        if (was !== gone) removed += 1
        return was
      }),
    ),
  )
  return removed
}
