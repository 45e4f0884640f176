/** The one place that knows every room: puts drivers, templates and the engine together, and owns the default platform. */
import { readFileSync } from 'node:fs'
import { arch, availableParallelism, freemem, release } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import type { Driver, Probe } from './contract/driver.js'
import { reworded, SandboxError } from './contract/errors.js'
import type { Platform } from './contract/platform.js'
import { type PlatformSettings, platformSettingsSchema } from './contract/platform-settings.js'
import { type Policy, type PolicyInput, type PresetName, presetNames } from './contract/policy.js'
import type { CellDriverOptions } from './cell/cell-driver.js'
import { programPath } from './cell/facts.js'
import { runtimeNames } from './drivers/oci/runtimes.js'
import { createBwrapDriver } from './drivers/bwrap/driver.js'
import { createTrialMemory } from './cell/trial-memory.js'
import { bwrapPath } from './drivers/bwrap/facts.js'
import { createOciDriver } from './drivers/oci/driver.js'
import { createGvisorDriver } from './drivers/oci/gvisor-driver.js'
import { createVmDriver, vmRuntimeNames } from './drivers/oci/vm-driver.js'
import { createFakeDriver } from './drivers/fake/driver.js'
import { Engine } from './engine/engine.js'
import type { EngineOptions } from './engine/engine-options.js'
import { remotePlatform } from './connect.js'
import { buildPolicy } from './policy/build-policy.js'
import { mergePolicies, noPolicy, parsePolicy, parsePolicyText, shownBy } from './policy/policy-file.js'
import { parseObject } from './policy/refusal.js'
import { signReceipt } from './receipt/index.js'
import { listenOnLoopback } from './sys/loopback-listener.js'
import { resolveMounts } from './sys/mount-source.js'
import { cachePlace, type GivenPlaces, placesWith } from './sys/places.js'
import { readPolicyText } from './sys/policy-text.js'
import { loadReceiptKey, type ReceiptKey } from './sys/receipt-key.js'
import { runtimeFiles } from './sys/runtime-files.js'
import { hasTracesOfDead } from './sys/traces.js'
import { createSeccompCompiler, type SeccompCompiler } from './sys/seccomp.js'
import { readSeccompSource } from './sys/seccomp-source.js'
import type { PackageShelf } from './egress/package-shelf.js'
import { createCommandResolver } from './templates/commands.js'
import { createSnapshotStore } from './templates/snapshots.js'
import { TemplateStore } from './templates/store.js'
import { createTemplates } from './templates/templates.js'
import { createEventBus } from './watch/event-bus.js'
import { type TemplateBuilder, createTemplateBuilder } from './templates/builder.js'
import type { Workshop } from './templates/workshop.js'

/** Needs no look at it. */
const noSettings: PlatformSettings = {}

/** A platform on this machine. Nothing is touched before it is used; whoever creates it disposes of it. */
export function createPlatform(settings = noSettings): Platform {
  return new Engine(engineOptions(settings))
}

/** The same without looking at what the kernel says of its cells, so that the price of looking can be measured. Never for anything else. */
export function createUninspectedPlatform(settings: PlatformSettings = {}): Platform {
  return new Engine({ ...engineOptions(settings), inspect: false })
}

/** Everything an engine is put together from. */
export function engineOptions(settings: PlatformSettings): EngineOptions {
  if (settings !== noSettings) parseObject(platformSettingsSchema, settings, { what: 'settings', objects: ['bounds'] })
  const { drivers, cacheDir, snapshotDir, templateDir, policy, bounds } = settings
  const templates = cacheDir === undefined ? {} : { cache: join(cacheDir, 'templates') }
  const operator = operatorPolicy(policy)
  return {
    drivers: drivers ?? builtInDrivers((program) => ({ trials: createTrialMemory(program) })),
    templates: createTemplates({ ...templates, store: new TemplateStore(templateDir) }),
    commands: createCommandResolver(templates),
    mounts: (mounts) => resolveMounts(mounts),
    filter: filterSource(cacheDir),
    signer: receiptSigner(),
    machine: thisMachine,
    listen: (order) => listenOnLoopback(order),
    runtimes: () => runtimeFiles(),
    events: createEventBus(),
    egress: egressSource(settings),
    onIdleExit: whenNothingIsLeftToDo,
    sweep: sweepBeside(settings),
    snapshots: snapshotDir === undefined ? createSnapshotStore() : createSnapshotStore(() => snapshotDir),
    ...(operator && { policy: operator }),
    ...(bounds && { bounds }),
  }
}

/** Builds templates and keeps them. What is to be tried of a draft is tried in cells that no policy of the operator's is meant for; what a Dockerfile says is held to it. */
export function templateBuilder(settings: Pick<PlatformSettings, 'templateDir' | 'cacheDir' | 'drivers' | 'policy'> = {}): TemplateBuilder {
  const store = new TemplateStore(settings.templateDir)
  const workshop: Workshop = (root, { isHeld = false } = {}) => {
    const { policy, ...options } = engineOptions(settings)
    const templates = { resolve: () => Promise.resolve(root) }
    const held = isHeld && policy ? { policy: buildPolicy(policy) } : {}
    return new Engine({ ...options, ...held, templates, snapshots: createSnapshotStore(() => store.part('steps')) })
  }
  return createTemplateBuilder(store, workshop)
}

/** Whoever sets the environment is the operator, also of a program that makes its platform itself: both policies hold. */
function operatorPolicy(given: PlatformSettings['policy']): Policy | undefined {
  const own = given === undefined ? undefined : parsePolicy(given, 'platform')
  const named = process.env.GLOVEBOX_POLICY
  if (named === undefined) return own
  try {
    const operator = shownBy(parsePolicy(readPolicy(named), 'operator'), 'glovebox policy show')
    return own === undefined ? operator : mergePolicies(operator, own)
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error
    throw reworded(error, `GLOVEBOX_POLICY: ${error.message.replace(/^policy: /, '')}`)
  }
}

/** What a spec with this policy is held to on the default platform: the operator's and its own. */
export function policyInForce(own: PresetName | PolicyInput | undefined): Policy {
  const operator = operatorPolicy(undefined)
  if (own === undefined) return operator ?? noPolicy
  const parsed = parsePolicy(own, 'spec')
  return operator === undefined ? parsed : mergePolicies(operator, parsed)
}

/** A policy as people name it: a preset, or the path of a file, in which the path of a profile is relative to the file. */
export function readPolicy(nameOrPath: string): PresetName | PolicyInput {
  if (nameOrPath === '') throw new SandboxError('invalid', `policy: is empty; name a file, or one of ${presetNames.join(', ')}`)
  const preset = presetNames.find((name) => name === nameOrPath)
  if (preset !== undefined) return preset
  const document = parsePolicyText(readPolicyText(nameOrPath), nameOrPath)
  const { defaults } = document
  if (typeof defaults?.seccomp !== 'string') return document
  return { ...document, defaults: { ...defaults, seccomp: resolve(dirname(nameOrPath), defaults.seccomp) } }
}

/** What each driver can do on this machine, whatever policies say, found by trying now. */
export function probeDrivers(): Promise<readonly Probe[]> {
  return Promise.all(builtInDrivers().map((driver) => driver.probe()))
}

/** Each builds its cells with what only Linux has. */
function builtInDrivers(optionsOf: (program: () => string | undefined) => CellDriverOptions = () => ({})): readonly Driver[] {
  if (process.platform !== 'linux') return []
  const containers = runtimeNames.map((name) =>
    createOciDriver(
      name,
      optionsOf(() => programPath(name)),
    ),
  )
  const gvisor = createGvisorDriver(optionsOf(() => programPath('runsc')))
  const machines = vmRuntimeNames.map((name) => createVmDriver(name))
  return [createBwrapDriver(optionsOf(bwrapPath)), ...containers, dockerDriver(), gvisor, dockerSandboxDriver(), ...machines, createFakeDriver()]
}

/** Most commands never talk to a container engine: what does is loaded when it is first needed. */
function dockerDriver(): Driver {
  return loadedLater({ name: 'docker', tier: 'container' }, async () => (await import('./drivers/docker/driver.js')).createDockerDriver())
}

/** The same of gVisor that an engine starts. */
function dockerSandboxDriver(): Driver {
  return loadedLater({ name: 'docker:runsc', tier: 'gvisor' }, async () => (await import('./drivers/docker/sandbox-driver.js')).createDockerSandboxDriver())
}

function loadedLater(named: Pick<Driver, 'name' | 'tier'>, create: () => Promise<Driver>): Driver {
  let loaded: Promise<Driver> | undefined
  const load = (): Promise<Driver> => (loaded ??= create())
  return { ...named, standby: true, probe: async () => (await load()).probe(), open: async (spec, signal) => (await load()).open(spec, signal) }
}

/** A compiler that is made when the first cell needs a filter. */
function filterSource(cacheDir: string | undefined): EngineOptions['filter'] {
  let compiler: SeccompCompiler | undefined
  return async (profile, guest) => {
    compiler ??= createSeccompCompiler({ cacheDir: cacheDir ?? cachePlace() })
    return profile === undefined ? compiler.compileDefault(guest) : compiler.compile(await readSeccompSource(profile), guest)
  }
}

/** Most platforms have no sandbox with a network: what serves one is loaded when the first is created. */
function egressSource({ cacheDir, trusted = [] }: Pick<PlatformSettings, 'cacheDir' | 'trusted'>): NonNullable<EngineOptions['egress']> {
  let loaded: Promise<NonNullable<EngineOptions['egress']>> | undefined
  const load = (): NonNullable<typeof loaded> =>
    (loaded ??= import('./egress/source.js').then(({ createEgressSource }) => createEgressSource({ folder: () => cacheDir ?? cachePlace(), trusted })))
  return {
    open: async (order) => (await load()).open(order),
    certificates: async () => (await load()).certificates(),
    close: async () => (await loaded)?.close(),
  }
}

/** What is kept of packages by the platforms of this user. */
export async function packageShelf(): Promise<{ readonly shelf: PackageShelf; readonly folder: string }> {
  const [{ PackageShelf: Shelf }, { packagesName }] = await Promise.all([import('./egress/package-shelf.js'), import('./egress/source.js')])
  const folder = join(cachePlace(), packagesName)
  return { shelf: new Shelf({ folder: () => folder }), folder }
}

/** The key is made or read when the first receipt is signed. */
function receiptSigner(): EngineOptions['signer'] {
  let key: Promise<ReceiptKey> | undefined
  return {
    sign: async (unsigned) => {
      key ??= loadReceiptKey()
      key.catch(() => {
        key = undefined
      })
      return signReceipt(unsigned, (await key).privateKey)
    },
  }
}

/** Asked only when a receipt needs it. */
const thisMachine: EngineOptions['machine'] = {
  get version() {
    return readVersion()
  },
  kernel: release(),
  arch: arch(),
  processors: availableParallelism(),
  freeBytes: freemem,
}

/** What waits keeps no process alive, so its end is the moment to be rid of it. A process that is ended otherwise leaves as much as one with open sandboxes does. */
function whenNothingIsLeftToDo(act: () => Promise<void>): () => void {
  const listener = (): void => {
    // What is closed may keep nothing alive either.
    const alive = setInterval(() => undefined, 1000)
    act()
      .catch(() => undefined)
      .finally(() => clearInterval(alive))
  }
  process.on('beforeExit', listener)
  return () => process.off('beforeExit', listener)
}

function readVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  return (manifest as { readonly version: string }).version
}

/** What engines left that were killed goes while the first cell is made. What is in the way of that is told by `glovebox gc`. */
function sweepBeside(settings: GivenPlaces): NonNullable<EngineOptions['sweep']> {
  let sweeping: Promise<void> | undefined
  return {
    begin: () =>
      void (sweeping ??=
        process.platform === 'linux' && hasTracesOfDead(placesWith(settings)) ? sweepLeftovers(settings).catch(() => undefined) : Promise.resolve()),
    settled: () => sweeping ?? Promise.resolve(),
  }
}

/** Clears away what engines of this user left that were killed. */
export async function sweepLeftovers(settings: GivenPlaces = {}): Promise<void> {
  const { sweepMachine } = await import('./recovery.js')
  await sweepMachine(undefined, placesWith(settings))
}

export interface SocketServer {
  /** How many are open. */
  readonly connections: number
  close(): Promise<void>
}

/** The platform behind a socket that its user alone can open. */
export async function serveSocket(platform: Platform, socket: string): Promise<SocketServer> {
  const { createOwnServer } = await import('./server/own-server.js')
  const server = createOwnServer(platform, readVersion())
  await server.listen({ socket })
  return server
}

/** Whose something is, and platforms behind servers. */
export { currentOwner, isAlive, ownerName, parseOwner } from './sys/owner.js'
export { connectPlatform, remotePlatform } from './connect.js'

/** Whoever keeps sandboxes that outlast a command. */
export { checkDaemonPlace as isDaemonThere, daemonIdentity, daemonPlace, makeDaemonFolder, type DaemonPlace } from './sys/daemon-place.js'
export { askToLeave, isDaemonListening, leaveSignal, readDaemonRecord, removeDaemonFiles, withDaemonLock, writeDaemonRecord } from './sys/daemon-record.js'
export { type DaemonNews, newsDescriptor, startDaemon } from './sys/daemon-start.js'

/** Files that take their place when they are whole, and where what was typed in sessions is kept. */
export { draftIn, sweepDrafts } from './sys/draft.js'
export { keepNote } from './sys/notes.js'
export { makeTempFolder } from './sys/temp-folder.js'
export { historyPlace } from './sys/places.js'

/** What commands wrote over folders of this machine, and those folders as they travel into sandboxes and out of them. */
export { createChangeStore } from './sys/changes-store.js'
export { localFiles } from './sys/host-folder.js'

/** Who signs receipts on this machine. */
export { findReceiptKey, loadReceiptKey } from './sys/receipt-key.js'

/** That of a command: behind the server that the environment names, or of this process. What it made goes with it. */
export function commandPlatform(): Platform {
  return remotePlatform({ closesOwn: true }) ?? createPlatform()
}

/** One for the whole process, made when it is first asked for. It holds nothing that keeps the process alive and listens to no signal of it. */
const shared: { platform?: Platform } = {}

export function defaultPlatform(): Platform {
  shared.platform ??= remotePlatform() ?? createPlatform()
  return shared.platform
}
