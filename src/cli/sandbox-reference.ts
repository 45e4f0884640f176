/** A sandbox as people name it: by its id, its name, or the beginning of its id. */
import { SandboxError } from '../contract/errors.js'
import type { Platform, SandboxInfo } from '../contract/platform.js'
import { meant, nearWords } from './near-words.js'
import { lastingSandboxes } from './sandbox-owner.js'

/** What is enough to tell sandboxes apart. */
export type Named = Pick<SandboxInfo, 'id'> & { readonly spec: Pick<SandboxInfo['spec'], 'name'> }

const wholeId = /^[a-z0-9]{20}$/
const beginningOfId = /^[a-z0-9]{1,20}$/
const mostTold = 5

/** The one that is meant. Throws SandboxError('not-found') when there is none, and 'conflict' when it could be several, which the message lists. */
export async function findSandbox(platform: Pick<Platform, 'info' | 'list'>, reference: string, signal: AbortSignal): Promise<SandboxInfo> {
  const known = wholeId.test(reference) ? await infoOf(platform, reference, signal) : undefined
  if (known) return known
  const all: SandboxInfo[] = []
  for await (const info of lastingSandboxes(platform, {}, signal)) all.push(info)
  return pickSandbox(reference, all)
}

/** An id, then a name, then the beginning of an id: what is meant exactly is never taken for something else. */
export function pickSandbox<Each extends Named>(reference: string, all: readonly Each[]): Each {
  const named = all.filter(({ spec }) => spec.name === reference)
  const begun = beginningOfId.test(reference) ? all.filter(({ id }) => id.startsWith(reference)) : []
  const found = all
    .filter(({ id }) => id === reference)
    .concat(named)
    .concat(named.length > 0 ? [] : begun)
  const [only, ...others] = [...new Set(found)]
  if (only === undefined) throw nothingNamed(reference, all)
  if (only.id !== reference && others.length > 0) throw severalNamed(reference, [only, ...others])
  return only
}

function nothingNamed(reference: string, all: readonly Named[]): SandboxError {
  const names = all.flatMap(({ spec }) => (spec.name === undefined ? [] : [spec.name]))
  const near = meant(nearWords(reference, names))
  return new SandboxError('not-found', `there is no sandbox ${quoted(reference)}${near}`, { hint: all.length === 0 ? 'glovebox create' : 'glovebox ls' })
}

function severalNamed(reference: string, found: readonly Named[]): SandboxError {
  const told = found.slice(0, mostTold).map(({ id, spec }) => (spec.name === undefined ? id : `${id} (${spec.name})`))
  const more = found.length > mostTold ? `, and ${found.length - mostTold} more` : ''
  return new SandboxError('conflict', `${quoted(reference)} could be any of ${told.join(', ')}${more}`, { hint: 'glovebox ls' })
}

function quoted(reference: string): string {
  return `'${reference.slice(0, 80)}'`
}

/** Undefined when there is none: a name may look like an id. */
async function infoOf(platform: Pick<Platform, 'info'>, id: string, signal: AbortSignal): Promise<SandboxInfo | undefined> {
  try {
    return await platform.info(id, { signal })
  } catch (error) {
    if (error instanceof SandboxError && error.code === 'not-found') return undefined
    throw error
  }
}
