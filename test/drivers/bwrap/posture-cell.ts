import { createHash } from 'node:crypto'
import { connectWarden, type StartRequest, type Warden } from '../../../src/channel/index.js'
import type { Cell, CellSpec, Driver, PostureSubject } from '../../../src/contract/driver.js'
import type { Posture } from '../../../src/contract/posture.js'
import type { UserName } from '../../../src/contract/spec.js'
import { createBwrapDriver } from '../../../src/drivers/bwrap/driver.js'
import { cachePlace } from '../../../src/sys/places.js'
import { createSeccompCompiler } from '../../../src/sys/seccomp.js'
import { specOf } from './open-guest.js'

/** A cell with the default filter, whose programs can be looked at while they wait. */
export interface PosedCell extends AsyncDisposable {
  readonly cell: Cell
  readonly warden: Warden
  readonly spec: CellSpec
  /** Starts a script and calls back while it waits at its gate; answers what it printed, after it was let go. */
  script(script: string, options: ScriptOptions): Promise<string>
}

export interface ScriptOptions {
  readonly user?: UserName
  readonly depth?: 'full' | 'short'
  readonly atGate: (posture: Posture, request: StartRequest) => void | Promise<void>
}

export interface PoseOptions {
  readonly driver?: Driver
  readonly spec?: Partial<CellSpec>
  readonly limits?: Partial<CellSpec['limits']>
}

export const defaultRlimits = [
  { resource: 4, soft: 0n, hard: 0n },
  { resource: 7, soft: 1024n, hard: 2048n },
  { resource: 1, soft: 2n ** 20n, hard: 2n ** 20n },
]

export async function defaultFilter(): Promise<{ readonly bytes: Uint8Array; readonly hash: string }> {
  const bytes = await createSeccompCompiler({ cacheDir: cachePlace() }).compileDefault()
  return { bytes, hash: createHash('sha256').update(bytes).digest('hex') }
}

export async function poseCell({ driver = createBwrapDriver(), spec: other, limits = {} }: PoseOptions = {}): Promise<PosedCell> {
  const spec = { ...(await specOf({ limits })), ...other }
  const cell = await driver.open(spec, new AbortController().signal)
  try {
    const warden = await connectWarden(cell.channel, { filter: (await defaultFilter()).bytes })
    return {
      cell,
      warden,
      spec,
      script: (script, options) => runScript({ cell, warden, spec }, script, options),
      [Symbol.asyncDispose]: async () => {
        warden.close()
        await cell.close()
      },
    }
  } catch (error) {
    await cell.close()
    throw error
  }
}

async function runScript({ cell, warden, spec }: Pick<PosedCell, 'cell' | 'warden' | 'spec'>, script: string, options: ScriptOptions): Promise<string> {
  const guest = cell.users.find(({ name }) => name === (options.user ?? 'user'))
  if (!guest) throw new Error(`this cell has no ${options.user}`)
  const { uid, gid, capabilities } = guest
  const run = cell.beginRun({ memoryBytes: undefined, processes: undefined })
  const group = run.group === undefined ? {} : { group: run.group }
  const argv = ['/bin/sh', '-c', `exec 2>&1\n${script}`] as const
  const request: StartRequest = { argv, env: spec.root.env, cwd: cell.workdir, uid, gid, capabilities, rlimits: defaultRlimits, stdin: false, ...group }
  const atGate = async (pid: number): Promise<void> => {
    const subject: PostureSubject = { kind: 'program', pid, depth: options.depth ?? 'full', group: run.group }
    const [posture] = await cell.posture(subject)
    await options.atGate(posture as Posture, request)
  }
  try {
    const result = await warden.start(request, { atGate })
    if (!result.started) throw new Error(`${result.text}: errno ${result.errno}`)
    const chunks: Uint8Array[] = []
    for await (const { bytes } of result.process.output) chunks.push(bytes)
    await result.process.exited
    return Buffer.concat(chunks).toString('utf8')
  } finally {
    await run.close()
  }
}
