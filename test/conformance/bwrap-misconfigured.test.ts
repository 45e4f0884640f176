import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { containmentCases, runContainment, type Subject } from '../../src/conformance/index.js'
import type { Driver } from '../../src/contract/driver.js'
import { type CellParts, misbuilt } from './mutants/misbuilt-cell.js'
import { lyingEngine, lyingWarden } from './mutants/twists.js'
import { createWorld, type Twist, type World } from './world.js'

/** A real cell with one mistake, and the cases that have to go red. */
interface Misconfiguration {
  readonly name: string
  readonly twist: (world: World) => Twist
  readonly caughtBy: readonly string[]
  /** Where the engine is an ordinary user's: the modes of the host's files keep the rest from its programs, walls or not. */
  readonly caughtForUser?: readonly string[]
  /** Beneath an engine, where a case needs one. */
  readonly depth?: 'engine'
}

const isRoot = process.getuid?.() === 0

function without(args: readonly string[], option: string): string[] {
  return args.filter((argument, at) => argument !== option && args[at - 1] !== option)
}

const allNamespaces = ['user', 'pid', 'ipc', 'net', 'uts', 'cgroup']

/** With namespaces of its own but for these. */
function sharing(bwrap: readonly string[], shared: readonly string[]): string[] {
  const own = allNamespaces.filter((kind) => !shared.includes(kind)).map((kind) => `--unshare-${kind}`)
  return bwrap.flatMap((word) => (word === '--unshare-all' ? own : [word]))
}

/** Of the host's pid namespace no /proc can be mounted: there is the one that is there. And its warden is not pid 1. */
function amongAllProcesses({ bwrap, warden: [program = '', ...words], ...rest }: CellParts): CellParts {
  const shared = sharing(bwrap, ['pid']).filter((word) => word !== '--as-pid-1')
  return { ...rest, bwrap: shared.flatMap((word) => (word === '--proc' ? ['--ro-bind', '/proc'] : [word])), warden: [program, '--subreaper', ...words] }
}

/** As everywhere but for a limit of processes so high that it is none. */
const withoutLimitOfProcesses = lyingEngine({
  create: (platform, spec, options) => platform.create({ ...spec, limits: { ...spec.limits, processes: 4000 } }, options),
})

const cell =
  (mistake: (parts: CellParts, world: World) => CellParts) =>
  (world: World): Twist => ({ driver: misbuilt((parts) => mistake(parts, world)) })
const warden = (lie: Parameters<typeof lyingWarden>[0]) => (): Twist => ({ driver: misbuilt((parts) => parts), connect: lyingWarden(lie) })

/** It says that it has more than one id, and limits, and has neither. */
function boasting(driver: Driver): Driver {
  const claimed = { enforced: true, by: 'good will' } as const
  const plain = misbuilt((parts) => parts)(driver)
  return {
    name: plain.name,
    tier: plain.tier,
    open: (spec, signal) => plain.open(spec, signal),
    probe: async () => {
      const honest = await plain.probe()
      return { ...honest, users: { ...honest.users, root: { available: true } }, limits: { ...honest.limits, memory: claimed, processes: claimed } }
    },
  }
}

const misconfigurations: readonly Misconfiguration[] = [
  {
    name: "the host's network",
    twist: cell(({ bwrap, ...rest }) => ({ ...rest, bwrap: [...bwrap, '--share-net'] })),
    caughtBy: ['isolation/host-loopback', 'isolation/network-off-reach', 'isolation/no-network', 'posture/namespaces'],
  },
  {
    name: "the host's processes",
    twist: cell(amongAllProcesses),
    caughtBy: ['isolation/host-processes', 'isolation/namespaces', 'posture/namespaces'],
  },
  {
    name: "the host's IPC and hostname",
    twist: cell(({ bwrap, ...rest }) => ({ ...rest, bwrap: without(sharing(bwrap, ['ipc', 'uts']), '--hostname') })),
    caughtBy: ['isolation/namespaces', 'kernel/shared-memory-of-the-host', 'posture/namespaces'],
  },
  {
    name: 'an unmasked /proc',
    twist: cell(({ warden: words, ...rest }) => ({ ...rest, warden: without(words, '--mask') })),
    caughtBy: ['isolation/kernel-secrets', 'filesystem/masks-by-other-names'],
    caughtForUser: ['isolation/kernel-secrets'],
  },
  {
    name: 'a root that can be written to',
    twist: cell(({ warden: words, ...rest }) => ({
      ...rest,
      warden: words.filter((word, at) => !(word === '--readonly' && words[at + 1] === '/') && !(word === '/' && words[at - 1] === '--readonly')),
    })),
    caughtBy: ['isolation/writes-outside', 'posture/root-read-only'],
  },
  {
    name: 'no filter of system calls',
    twist: () => ({ driver: misbuilt((parts) => parts), filter: () => Promise.resolve(new Uint8Array()) }),
    caughtBy: ['isolation/wide-calls', 'isolation/typed-input', 'posture/filter'],
  },
  {
    name: 'no no_new_privs, without which it has no filter either',
    twist: cell(({ launcher, ...rest }) => ({ ...rest, launcher: ['python3', join(import.meta.dirname, 'mutants/without-no-new-privs.py'), ...launcher] })),
    caughtBy: ['posture/no-new-privileges', 'posture/filter'],
  },
  {
    name: 'the docker socket mounted',
    twist: cell(({ bwrap, ...rest }, { temporary }) => ({ ...rest, bwrap: [...bwrap, '--bind', join(temporary, 'engine.sock'), '/run/docker.sock'] })),
    caughtBy: ['isolation/control-sockets'],
  },
  {
    name: 'cgroups that can be written to',
    twist: cell(({ bwrap, ...rest }) => ({ ...rest, bwrap: [...bwrap, '--bind', '/sys/fs/cgroup', '/sys/fs/cgroup'] })),
    caughtBy: ['isolation/cgroup-files', 'filesystem/risky-file-systems', 'filesystem/sys'],
    caughtForUser: ['filesystem/risky-file-systems'],
  },
  {
    name: 'an inherited environment',
    twist: warden({ request: (request) => ({ ...request, env: { ...(process.env as Record<string, string>), ...request.env } }) }),
    caughtBy: ['isolation/host-environment', 'programs/env-exact', 'posture/environment'],
  },
  {
    name: 'a leaked descriptor',
    twist: warden({ request: (request) => ({ ...request, argv: ['/bin/sh', '-c', 'exec 9</; exec "$@"', 'sh', ...request.argv] }) }),
    caughtBy: ['isolation/descriptors', 'advisories/leaked-folder', 'posture/descriptors'],
  },
  {
    name: 'an added capability',
    twist: () => ({
      driver: misbuilt(({ bwrap, ...rest }) => ({ ...rest, bwrap: [...bwrap, '--cap-add', 'CAP_CHOWN'] })),
      connect: lyingWarden({ request: (request) => ({ ...request, capabilities: 1n }) }),
    }),
    caughtBy: ['isolation/capabilities', 'posture/capabilities'],
  },
  { name: 'an id of the host that others have too', twist: () => ({ driver: boasting }), caughtBy: ['tenants/ids'] },
  { name: 'no limit of processes', depth: 'engine', twist: () => ({ platform: withoutLimitOfProcesses }), caughtBy: ['attacks/threads'] },
  { name: 'no limit of anything by groups', twist: () => ({ driver: boasting }), caughtBy: ['posture/groups-of-control'] },
  {
    name: 'a device of the host',
    twist: cell(({ bwrap, ...rest }) => ({ ...rest, bwrap: [...bwrap, '--dev-bind', '/dev/null', '/dev/fuse'] })),
    caughtBy: ['isolation/devices'],
  },
]

describe('a cell with', () => {
  let world: World
  const listener = createServer()
  beforeAll(async () => {
    world = await createWorld()
    await new Promise<void>((resolve) => listener.listen(join(world.temporary, 'engine.sock'), resolve))
  })
  afterAll(async () => {
    listener.close()
    await world[Symbol.asyncDispose]()
  })

  /** Because of what got through: a cell that does not open, or a script that breaks, shows nothing. */
  const redIn = async (subject: Subject, ids: readonly string[]): Promise<string[]> => {
    const results = await runContainment(subject, { place: 'user', cases: containmentCases.filter(({ id }) => ids.includes(id)) })
    expect(results.filter(({ reason }) => reason === 'broke off')).toEqual([])
    return results.filter(({ verdict }) => verdict === 'failed').map(({ id }) => id)
  }

  for (const { name, twist, caughtBy, caughtForUser = caughtBy, depth } of misconfigurations) {
    const named = isRoot ? caughtBy : caughtForUser
    test(`${name} turns ${named.join(', ')} red`, { timeout: 120_000 }, async (context) => {
      const subject = await (depth === 'engine' ? world.engineSubject('bwrap', twist(world)) : world.driverSubject('bwrap', twist(world)))
      const { processes } = subject.probe.limits
      if (depth === 'engine' && !processes.enforced) context.skip(processes.why)
      expect((await redIn(subject, named)).sort()).toEqual([...named].sort())
    })
  }

  test('no mistake turns none of them red', { timeout: 120_000 }, async () => {
    const all = new Set(misconfigurations.flatMap(({ caughtBy }) => caughtBy))
    expect(await redIn(await world.driverSubject('bwrap', { driver: misbuilt((parts) => parts) }), [...all])).toEqual([])
  })
})
