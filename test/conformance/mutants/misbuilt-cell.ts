import type { Driver, Probe } from '../../../src/contract/driver.js'
import { SandboxError } from '../../../src/contract/errors.js'
import { guestUsers, workdir } from '../../../src/cell/arguments.js'
import { cellArgv } from '../../../src/drivers/bwrap/arguments.js'
import { bwrapPath } from '../../../src/drivers/bwrap/facts.js'
import { nativeProgram } from '../../../src/sys/native.js'
import { spawnProcess } from '../../../src/sys/spawn.js'

/** The arguments of a cell in their three parts: for the launcher, for bwrap, and for the warden. */
export interface CellParts {
  readonly launcher: readonly string[]
  readonly bwrap: readonly string[]
  readonly warden: readonly string[]
}

/** A bwrap cell of a single id, built by the real arguments but for one mistake. Its probe claims what the real one does. */
export function misbuilt(mistake: (parts: CellParts) => CellParts): (driver: Driver) => Driver {
  return (driver) => ({
    name: driver.name,
    tier: driver.tier,
    probe: async () => withoutRoot(await driver.probe()),
    open: async (spec, signal) => {
      signal.throwIfAborted()
      const programs = { launcher: nativeProgram('launcher'), bwrap: bwrapPath() ?? 'bwrap', warden: nativeProgram('warden') }
      const argv = joined(mistake(parted(cellArgv({ spec, ids: { kind: 'single' }, programs, ownerPid: process.pid }))))
      const cell = await spawnProcess(argv, { cwd: '/', env: {} })
      let closing: Promise<void> | undefined
      const close = async (): Promise<void> => {
        cell.channel.on('error', () => undefined)
        cell.channel.destroy()
        await cell.wait()
      }
      return {
        channel: cell.channel,
        users: guestUsers({ kind: 'single' }),
        workdir,
        layers: [],
        diagnosis: () => cell.diagnosis(),
        expects: [],
        beginRun: () => ({
          group: undefined,
          usage: () => nothingCounted,
          countFromNow: () => undefined,
          isPopulated: () => false,
          spareTime: () => undefined,
          close: () => Promise.resolve(),
        }),
        limit: () => Promise.reject(new SandboxError('unsupported', 'this cell has no cgroup')),
        posture: () => Promise.resolve([]),
        usage: () => Promise.resolve({ ...nothingCounted, memoryBytes: undefined, processes: undefined }),
        worked: () => undefined,
        pause: () => Promise.reject(new SandboxError('unsupported', 'this cell has no cgroup')),
        resume: () => Promise.resolve(),
        close: () => {
          closing ??= close()
          return closing
        },
      }
    },
  })
}

const nothingCounted = { cpuMs: undefined, memoryPeakBytes: undefined, processesPeak: undefined, hits: { memory: undefined, processes: undefined } }

function withoutRoot(probe: Probe): Probe {
  const none = { enforced: false, why: 'this cell has no cgroup' } as const
  return {
    ...probe,
    features: { ...probe.features, pause: { available: false, why: 'this cell has no cgroup' } },
    users: { ...probe.users, root: { available: false, why: 'this cell has a single id' } },
    limits: { ...probe.limits, memory: none, cpus: none, cpuTime: none, processes: none, readRate: none, writeRate: none },
  }
}

function parted(argv: readonly string[]): CellParts {
  const first = argv.indexOf('--')
  const second = argv.indexOf('--', first + 1)
  return { launcher: argv.slice(0, first), bwrap: argv.slice(first + 1, second), warden: argv.slice(second + 1) }
}

function joined({ launcher, bwrap, warden }: CellParts): [string, ...string[]] {
  const [program = '', ...rest] = launcher
  return [program, ...rest, '--', ...bwrap, '--', ...warden]
}
