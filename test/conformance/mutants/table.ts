import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { WardenProcess } from '../../../src/channel/index.js'
import type { Cell, Driver } from '../../../src/contract/driver.js'
import { SandboxError } from '../../../src/contract/errors.js'
import type { CallOptions, Platform, SandboxInfo } from '../../../src/contract/platform.js'
import type { RunRequest } from '../../../src/contract/run.js'
import type { SpecInput } from '../../../src/contract/spec.js'
import type { DriverName, Twist } from '../world.js'
import { misbuilt } from './misbuilt-cell.js'
import { lyingCell, lyingClose, lyingEngine, lyingWarden } from './twists.js'

/** A deliberate lie, and exactly the cases that have to catch it. */
export interface Mutant {
  readonly name: string
  readonly driver: DriverName
  readonly depth: 'driver' | 'engine'
  readonly twist: Twist
  readonly caughtBy: readonly string[]
  /** Only cases of this group are looked at: the lie is about nothing else. */
  readonly among?: string
  /** How long a case that waits for the lie may take; the others have the usual time. */
  readonly patienceMs?: number
}

const leavesNothing = [
  ...['run-leaves-nothing', 'failed-runs-leave-nothing', 'awkward-files', 'abort-during-create'].map((id) => `lifetime/${id}`),
  'pause/closed-while-paused',
]

const timeCases = ['sleeping', 'busy', 'deaf', 'stopped', 'hiding', 'respawning', 'silent', 'of-spec', 'keeps-output'].map((id) => `limits/time-${id}`)
const outputCases = ['kill', 'truncate', 'border', 'both-streams', 'of-spec'].map((id) => `limits/output-${id}`)

export const wardenMutants: readonly Mutant[] = [
  {
    name: 'says that programs stand still, and lets them go on',
    driver: 'fake',
    depth: 'driver',
    twist: { driver: lyingCell({ pause: () => Promise.resolve() }) },
    caughtBy: ['pause/stands-still'],
    patienceMs: 10_000,
  },
  {
    name: 'leaks a variable of the host into every program',
    driver: 'fake',
    depth: 'driver',
    twist: { connect: lyingWarden({ request: (request) => ({ ...request, env: { ...request.env, HOST_USER: 'root' } }) }) },
    caughtBy: ['programs/env-exact'],
  },
  {
    name: 'lets a shell look at arguments that begin with a dollar',
    driver: 'fake',
    depth: 'driver',
    twist: { connect: lyingWarden({ request: (request) => ({ ...request, argv: throughShell(request.argv) }) }) },
    caughtBy: ['programs/argv-literal', 'programs/argv-program-name'],
  },
  {
    name: "swallows the last byte of a long program's stdin",
    driver: 'fake',
    depth: 'driver',
    twist: { connect: lyingWarden({ input: (bytes) => (bytes.length > 4096 ? bytes.subarray(0, -1) : bytes) }) },
    caughtBy: ['bytes/stdin-exact', 'bytes/stdin-64m'],
  },
  {
    name: 'takes an ending that nobody saw for a success',
    driver: 'fake',
    depth: 'driver',
    twist: { connect: lyingWarden({ exit: (exit) => (exit.kind === 'lost' ? { ...exit, kind: 'exited', code: 0 } : exit) }) },
    caughtBy: ['endings/watcher-killed'],
  },
  {
    name: 'tells a deadly signal as the exit code a shell would make of it',
    driver: 'fake',
    depth: 'driver',
    twist: { connect: lyingWarden({ exit: (exit) => (exit.kind === 'signaled' ? { ...exit, kind: 'exited', code: 128 + exit.code } : exit) }) },
    caughtBy: ['endings/signals', 'endings/real-time-signal', 'endings/clean-signals', 'endings/self-stopped', 'lifetime/kill-tree'],
  },
  {
    name: 'cuts exit codes to seven bits',
    driver: 'fake',
    depth: 'driver',
    twist: { connect: lyingWarden({ exit: (exit) => (exit.kind === 'exited' ? { ...exit, code: exit.code & 127 } : exit) }) },
    caughtBy: ['endings/exit-codes'],
  },
  {
    name: 'mixes stderr into stdout',
    driver: 'fake',
    depth: 'driver',
    twist: { connect: lyingWarden({ output: ({ bytes }) => ({ type: 'stdout', bytes }) }) },
    caughtBy: ['bytes/stderr-separate', 'bytes/forged-frames', 'bytes/dev-stdout', 'bytes/large-output', 'concurrency/unmixed-output'],
  },
  {
    name: 'drops NUL bytes from what is printed',
    driver: 'fake',
    depth: 'driver',
    twist: { connect: lyingWarden({ output: ({ type, bytes }) => ({ type, bytes: bytes.filter((byte) => byte !== 0) }) }) },
    caughtBy: ['bytes/stdout-exact', 'bytes/stdin-exact', 'bytes/forged-frames', 'programs/env-exact'],
  },
  {
    name: 'kills the program and not its descendants',
    driver: 'fake',
    depth: 'driver',
    twist: { connect: lyingWarden({ kill: killAlone }) },
    caughtBy: ['lifetime/kill-tree'],
  },
  {
    name: 'leaves a process behind',
    driver: 'fake',
    depth: 'driver',
    twist: { driver: lyingClose(leaveProcess) },
    caughtBy: leavesNothing,
  },
  {
    name: 'leaves a file behind',
    driver: 'fake',
    depth: 'driver',
    twist: { driver: lyingClose(leaveFile) },
    caughtBy: leavesNothing,
  },
  {
    name: 'throws when it is closed a second time',
    driver: 'fake',
    depth: 'driver',
    twist: { driver: throwOnSecondClose },
    caughtBy: ['lifetime/close-twice'],
  },
]

export const engineMutants: readonly Mutant[] = [
  {
    name: 'hands a used sandbox of a pool out again',
    driver: 'fake',
    depth: 'engine',
    twist: { platform: handOutAgain },
    caughtBy: ['pools/handed-out-once', 'pools/never-used-again'],
    among: 'pools/',
  },
  {
    name: 'ignores the time limit',
    driver: 'fake',
    depth: 'engine',
    twist: { platform: lyingEngine({ create: (platform, spec, options) => platform.create(withoutTime(spec), options), request: ignoreTimeout }) },
    caughtBy: timeCases,
    patienceMs: 2600,
  },
  {
    name: 'ignores the output limit',
    driver: 'fake',
    depth: 'engine',
    twist: { platform: lyingEngine({ create: (platform, spec, options) => platform.create(withMoreOutput(spec), options), request: ignoreOutputLimit }) },
    caughtBy: outputCases,
  },
  {
    name: 'drops a stated limit that it cannot hold',
    driver: 'fake',
    depth: 'engine',
    twist: { platform: lyingEngine({ create: weaken }) },
    caughtBy: ['memory', 'cpus', 'disk', 'processes'].map((limit) => `limits/${limit}-refused`),
  },
  {
    name: 'says that limits hold which do not',
    driver: 'fake',
    depth: 'engine',
    twist: { driver: boastOfLimits },
    caughtBy: ['code/out-of-memory', 'limits/disk-enforced', 'limits/inodes-enforced', 'limits/memory-enforced'],
  },
  {
    name: 'tells a timeout as a success',
    driver: 'fake',
    depth: 'engine',
    twist: {
      platform: lyingEngine({ ending: (ending) => (ending.outcome.kind === 'timed-out' ? { ...ending, outcome: { kind: 'exited', code: 0 } } : ending) }),
    },
    caughtBy: timeCases,
  },
  {
    name: 'weakens the tier that was asked for',
    driver: 'fake',
    depth: 'engine',
    twist: { platform: lyingEngine({ create: (platform, spec, options) => platform.create(withoutTier(spec), options) }) },
    caughtBy: ['limits/tier-refused'],
  },
]

export const wallMutants: readonly Mutant[] = [
  {
    name: 'forgets the filter of system calls',
    driver: 'bwrap',
    depth: 'driver',
    twist: { filter: () => Promise.resolve(new Uint8Array()) },
    // The warden's own filter, which its programs inherit, refuses the rest all the same.
    caughtBy: ['wide-calls', 'typed-input'].map((id) => `isolation/${id}`),
  },
  {
    name: "shares the host's network",
    driver: 'bwrap',
    depth: 'driver',
    twist: { driver: misbuilt(({ bwrap, ...rest }) => ({ ...rest, bwrap: [...bwrap, '--share-net'] })) },
    caughtBy: [
      ...['host-loopback', 'host-abstract-socket', 'no-network', 'network-off-reach', 'network-off-doors', 'network-inbound', 'namespaces', 'neighbours'].map(
        (id) => `isolation/${id}`,
      ),
      'ports/of-its-own',
    ],
  },
  {
    name: 'opens a door to the way out for which nobody asked',
    driver: 'bwrap',
    depth: 'driver',
    twist: { driver: misbuilt(({ warden, ...rest }) => ({ ...rest, warden: [...warden, '--egress', '3128'] })) },
    among: 'isolation/',
    caughtBy: ['isolation/network-off-doors'],
  },
  {
    name: 'makes routes for which nobody asked',
    driver: 'bwrap',
    depth: 'driver',
    twist: {
      driver: misbuilt(({ bwrap, warden, ...rest }) => ({
        ...rest,
        bwrap: [...bwrap, '--cap-add', 'CAP_NET_ADMIN', '--cap-add', 'CAP_NET_BIND_SERVICE'],
        warden: [...warden, '--egress', '3128', '--direct'],
      })),
    },
    among: 'isolation/',
    caughtBy: ['no-network', 'network-off-reach', 'network-off-doors'].map((id) => `isolation/${id}`),
  },
  {
    name: "shows the host's /proc unmasked",
    driver: 'bwrap',
    depth: 'driver',
    twist: { driver: misbuilt(({ warden, ...rest }) => ({ ...rest, warden: without(warden, '--mask') })) },
    caughtBy: ['isolation/kernel-secrets', 'isolation/device-times'],
  },
  {
    name: 'leaves the root of the cell writable',
    driver: 'bwrap',
    depth: 'driver',
    twist: { driver: misbuilt(({ warden, ...rest }) => ({ ...rest, warden: withoutPair(warden, ['--readonly', '/']) })) },
    caughtBy: ['isolation/writes-outside', 'isolation/system-files', 'files/paths'],
  },
  {
    name: "hands in the host's own inodes",
    driver: 'bwrap',
    depth: 'driver',
    twist: { driver: misbuilt(({ warden, ...rest }) => ({ ...rest, warden: without(warden, '--veil') })) },
    caughtBy: ['isolation/host-opens', 'isolation/separate-locks'],
  },
  {
    name: "leaves the host's devices open to change",
    driver: 'bwrap',
    depth: 'driver',
    twist: { driver: misbuilt(({ warden, ...rest }) => ({ ...rest, warden: withoutPair(warden, ['--readonly', '/dev/null']) })) },
    caughtBy: ['isolation/device-times'],
  },
  {
    name: "hands in the host's devices",
    driver: 'bwrap',
    depth: 'driver',
    twist: { driver: misbuilt(({ bwrap, ...rest }) => ({ ...rest, bwrap: [...bwrap, '--dev-bind', '/dev/loop-control', '/dev/loop-control'] })) },
    caughtBy: ['isolation/devices'],
  },
]

/** An option and its value, wherever they are. */
function without(args: readonly string[], option: string): string[] {
  return args.filter((argument, at) => argument !== option && args[at - 1] !== option)
}

function withoutPair(args: readonly string[], [option, value]: readonly [string, string]): string[] {
  return args.filter((argument, at) => !(argument === option && args[at + 1] === value) && !(argument === value && args[at - 1] === option))
}

/** Only what begins with a dollar or a backquote is left to the shell, as a careless quoting would. */
function throughShell(argv: readonly string[]): readonly string[] {
  if (!argv.some((argument) => /^[$`]/.test(argument))) return argv
  const words = argv.map((argument) => (/^[$`]/.test(argument) ? `"${argument}"` : `'${argument.replaceAll("'", "'\\''")}'`))
  return ['/bin/sh', '-c', `exec ${words.join(' ')}`]
}

async function killAlone(process: WardenProcess): Promise<void> {
  process.discardOutput()
  process.signal(9)
  await process.exited
}

async function leaveProcess(cell: Cell): Promise<void> {
  spawn('sleep', ['20'], { stdio: 'ignore' }).unref()
  await cell.close()
}

async function leaveFile(cell: Cell): Promise<void> {
  writeFileSync(join(tmpdir(), `left-${randomUUID()}`), '')
  await cell.close()
}

function throwOnSecondClose(driver: Driver): Driver {
  const closed = new WeakSet<Cell>()
  return lyingClose(async (cell) => {
    if (closed.has(cell)) throw new SandboxError('conflict', 'the cell was closed already')
    closed.add(cell)
    await cell.close()
  })(driver)
}

function boastOfLimits(driver: Driver): Driver {
  const enforced = { enforced: true, by: 'good will' } as const
  const probe: Driver['probe'] = async () => {
    const honest = await driver.probe()
    return { ...honest, limits: { ...honest.limits, memory: enforced, disk: enforced } }
  }
  return { name: driver.name, tier: driver.tier, probe, open: (spec, signal) => driver.open(spec, signal) }
}

/** Only what the real engine would accept is changed: what it refuses it goes on refusing. */
function withoutTime(spec: SpecInput): SpecInput {
  return spec.limits?.time === '2s' ? { ...spec, limits: { ...spec.limits, time: '30s' } } : spec
}

function ignoreTimeout(request: RunRequest): RunRequest {
  return request.timeout === '400ms' || request.timeout === '2s' ? { ...request, timeout: '30s' } : request
}

function withMoreOutput(spec: SpecInput): SpecInput {
  return spec.limits?.output === '64k' ? { ...spec, limits: { ...spec.limits, output: '8m' } } : spec
}

function ignoreOutputLimit(request: RunRequest): RunRequest {
  return request.output?.limit === undefined ? request : { ...request, output: { ...request.output, limit: '8m' } }
}

async function weaken(platform: Platform, spec: SpecInput, options?: CallOptions): Promise<SandboxInfo> {
  try {
    return await platform.create(spec, options)
  } catch (error) {
    if (!(error instanceof SandboxError && error.message.includes('cannot be enforced'))) throw error
    return platform.create({ ...spec, limits: {} }, options)
  }
}

function withoutTier(spec: SpecInput): SpecInput {
  return spec.minTier === 'wasm' ? { ...spec, minTier: 'none' } : spec
}

/** Nothing of it is closed either, so that what was left can be found. */
function handOutAgain(platform: Platform): Platform {
  const first = new Map<string, Promise<SandboxInfo>>()
  const kept = new Set<string>()
  return lyingEngine({
    acquire: async (real, pool, ...call) => {
      const again = first.get(pool) ?? real.pools.acquire(pool, ...call)
      first.set(pool, again)
      kept.add((await again).id)
      return again
    },
    close: (real, id) => (kept.has(id) ? Promise.resolve() : real.close(id)),
  })(platform)
}
