import { connectWarden, type Warden, type WardenExit } from '../../../src/channel/index.js'
import type { Cell, CellSpec, Driver, RunCounts, RunLimits, TemplateRoot } from '../../../src/contract/driver.js'
import type { Limits } from '../../../src/contract/limits.js'
import { defaultLimits } from '../../../src/contract/limit-words.js'
import type { UserName } from '../../../src/contract/spec.js'
import { createBwrapDriver } from '../../../src/drivers/bwrap/driver.js'
import { inodesFor } from '../../../src/policy/spec.js'
import { randomId } from '../../../src/sys/random-id.js'
import { createHostTemplates } from '../../../src/templates/host.js'

export interface Guest extends AsyncDisposable {
  readonly cell: Cell
  readonly warden: Warden
  /** Runs a shell script in the cell; answers what it printed on both streams. */
  sh(script: string, user?: UserName): Promise<string>
  /** The same, as a run that is held to limits of its own, and what it used. */
  run(script: string, limits?: Partial<RunLimits>): Promise<GuestRun>
}

export interface GuestRun {
  readonly said: string
  readonly exit: WardenExit
  readonly counts: RunCounts
}

export interface GuestOptions {
  readonly driver?: Driver
  readonly limits?: Partial<Limits>
  readonly root?: TemplateRoot
  readonly spec?: Partial<Pick<CellSpec, 'rootMode' | 'mounts' | 'commands' | 'network' | 'liners'>>
}

export async function specOf(options: GuestOptions = {}): Promise<CellSpec> {
  const root = options.root ?? (await createHostTemplates().resolve('host'))
  const { diskBytes } = { ...defaultLimits, ...options.limits }
  const limits = { ...defaultLimits, inodes: inodesFor(diskBytes), fileSizeBytes: diskBytes, stated: [], ...options.limits }
  return { id: randomId(), root, limits, rootMode: 'readonly', mounts: [], commands: undefined, ...options.spec }
}

export async function openGuest(options: GuestOptions = {}): Promise<Guest> {
  const spec = await specOf(options)
  const cell = await (options.driver ?? createBwrapDriver()).open(spec, new AbortController().signal)
  const warden = await connectWarden(cell.channel)
  return {
    cell,
    warden,
    sh: async (script, user = 'user') => (await runScript({ cell, warden, spec, script, user, limits: {} })).said,
    run: (script, limits = {}) => runScript({ cell, warden, spec, script, user: 'user', limits }),
    [Symbol.asyncDispose]: async () => {
      warden.close()
      await cell.close()
    },
  }
}

interface ScriptRun {
  readonly cell: Cell
  readonly warden: Warden
  readonly spec: CellSpec
  readonly script: string
  readonly user: UserName
  readonly limits: Partial<RunLimits>
}

async function runScript({ cell, warden, spec, script, user, limits }: ScriptRun): Promise<GuestRun> {
  const guest = cell.users.find(({ name }) => name === user)
  if (!guest) throw new Error(`this cell has no ${user}`)
  const { uid, gid, capabilities } = guest
  const run = cell.beginRun({ memoryBytes: undefined, processes: undefined, ...limits })
  const result = await warden.start({
    argv: ['/bin/sh', '-c', `exec 2>&1\n${script}`],
    env: { ...spec.root.env, ...cell.env },
    cwd: cell.workdir,
    uid,
    gid,
    capabilities,
    rlimits: [],
    stdin: false,
    ...(run.group === undefined ? {} : { group: run.group }),
  })
  if (!result.started) throw new Error(`${result.text}: errno ${result.errno}`)
  const chunks: Uint8Array[] = []
  for await (const { bytes } of result.process.output) chunks.push(bytes)
  const exit = await result.process.exited
  const counts = run.usage()
  await run.close()
  return { said: Buffer.concat(chunks).toString('utf8'), exit, counts }
}
