import { withPlatform } from '../choose-platform.js'
import { parseMetadata } from '../create-flags.js'
import { exitCodes } from '../exit-codes.js'
import { parseFlag, refuseFlag } from '../flag-values.js'
import { printJson } from '../print.js'
import { findSandbox } from '../sandbox-reference.js'
import { snapshotNameSchema } from '../../contract/snapshots.js'
import { specSchema } from '../../contract/spec.js'
import { writeOut } from '../streams.js'

export interface SnapshotFlags {
  readonly name?: string
  readonly json?: true
}

export interface ForkFlags extends SnapshotFlags {
  readonly count?: string
  readonly metadata?: readonly string[]
}

/** Keeps what it has written. Prints the id of the snapshot. */
export async function snapshot(sandbox: string, flags: SnapshotFlags): Promise<number> {
  const name = parseFlag('--name', () => snapshotNameSchema, flags.name)
  return withPlatform('kept', async ({ platform, signal }) => {
    const { id } = await findSandbox(platform, sandbox, signal)
    const taken = await platform.snapshots.take(id, { signal, ...(name !== undefined && { name }) })
    if (flags.json) await printJson(taken)
    else await writeOut(`${taken.id}\n`)
    return exitCodes.ok
  })
}

const mostForks = 1000
const mostOwnName = 190

/** New sandboxes that begin with its files. Prints their ids. */
export async function fork(sandbox: string, flags: ForkFlags): Promise<number> {
  const count = flags.count === undefined ? 1 : Number(flags.count)
  if (!/^\d{1,4}$/.test(flags.count ?? '1') || count < 1 || count > mostForks) {
    throw refuseFlag('--count', `expected a whole number from 1 to ${mostForks}, got '${flags.count?.slice(0, 40)}'`)
  }
  const name = parseFlag('--name', () => specSchema.shape.name, flags.name)
  const metadata = flags.metadata && parseMetadata(flags.metadata)
  return withPlatform('kept', async ({ platform, signal }) => {
    const { id, spec } = await findSandbox(platform, sandbox, signal)
    // Its own name stays its own: whoever says it goes on meaning it.
    const named = name ?? (spec.name === undefined ? undefined : `${spec.name.slice(0, mostOwnName)}-fork`)
    const sandboxes = await platform.snapshots.fork(id, count, { signal, ...(named !== undefined && { name: named }), ...(metadata && { metadata }) })
    if (flags.json) await printJson({ sandboxes })
    else await writeOut(sandboxes.map((each) => `${each.id}\n`).join(''))
    return exitCodes.ok
  })
}
