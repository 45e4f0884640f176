import type { EngineClient } from '../../sys/docker/client.js'
import { isAlive, machineName, parseOwner } from '../../sys/owner.js'
import { labels } from './container.js'
import { remove } from './spawner.js'

interface Owned {
  readonly Labels?: Readonly<Record<string, string>> | null
}

interface Listed extends Owned {
  readonly Id: string
}

/** Removes the containers of owners that died; resolves to how many. Most are gone by then: a container ends with its owner's connection, and is removed when it has. */
export async function sweepContainers(engine: EngineClient): Promise<number> {
  const filters = JSON.stringify({ label: [labels.owner] })
  const listed = (await engine.call('GET', '/containers/json', { query: { all: '1', filters } })) as readonly Listed[]
  const dead = listed.filter(isOfDeadOwner)
  await Promise.all(dead.map(({ Id }) => remove(engine, Id)))
  return dead.length
}

/** The same of disks that an engine made and did not remove with their containers, because it ended before. */
export async function sweepDisks(engine: EngineClient): Promise<void> {
  const filters = JSON.stringify({ label: [labels.owner], dangling: ['true'] })
  const { Volumes } = (await engine.call('GET', '/volumes', { query: { filters } })) as {
    readonly Volumes?: readonly (Owned & { readonly Name: string })[] | null
  }
  await Promise.all((Volumes ?? []).filter(isOfDeadOwner).map(({ Name }) => engine.call('DELETE', `/volumes/${Name}`).catch(() => undefined)))
}

function isOfDeadOwner({ Labels }: Owned): boolean {
  const owner = parseOwner(Labels?.[labels.owner] ?? '')
  // Whether an owner lives is for its own machine to say.
  return owner !== undefined && Labels?.[labels.machine] === machineName() && !isAlive(owner)
}
