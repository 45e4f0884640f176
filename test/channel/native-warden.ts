import { connectWarden, type StartRequest, type Warden, type WardenProcess } from '../../src/channel/index.js'
import type { Cell, CellSpec, GuestUser } from '../../src/contract/driver.js'
import { createFakeDriver } from '../../src/drivers/fake/driver.js'

/** The fake driver looks at nothing of a spec. */
export const anySpec = {} as CellSpec

export interface NativeWarden extends AsyncDisposable {
  readonly cell: Cell
  readonly warden: Warden
  request(argv: readonly string[], options?: Partial<StartRequest>): StartRequest
  start(argv: readonly string[], options?: Partial<StartRequest>): Promise<WardenProcess>
}

/** The real warden, started by the fake driver. */
export async function openWarden(path?: string): Promise<NativeWarden> {
  const cell = await createFakeDriver(path === undefined ? {} : { warden: path }).open(anySpec, new AbortController().signal)
  const warden = await connectWarden(cell.channel, {})
  const { uid, gid } = cell.users[0] as GuestUser
  const request: NativeWarden['request'] = (argv, options = {}) => ({
    argv,
    env: { PATH: '/usr/local/bin:/usr/bin:/bin' },
    cwd: cell.workdir,
    uid,
    gid,
    capabilities: 0n,
    rlimits: [],
    stdin: false,
    ...options,
  })
  return {
    cell,
    warden,
    request,
    start: async (argv, options) => {
      const result = await warden.start(request(argv, options))
      if (!result.started) throw new Error(`${result.text}: errno ${result.errno}`)
      return result.process
    },
    [Symbol.asyncDispose]: async () => {
      warden.close()
      await cell.close()
    },
  }
}

export interface Collected {
  readonly stdout: Buffer
  readonly stderr: Buffer
}

export async function collect(process: WardenProcess): Promise<Collected> {
  const pieces = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] }
  for await (const { type, bytes } of process.output) pieces[type].push(bytes)
  return { stdout: Buffer.concat(pieces.stdout), stderr: Buffer.concat(pieces.stderr) }
}
