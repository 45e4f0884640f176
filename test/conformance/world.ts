import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { connectWarden } from '../../src/channel/index.js'
import type { Subject } from '../../src/conformance/index.js'
import type { Driver, Probe } from '../../src/contract/driver.js'
import type { Platform } from '../../src/contract/platform.js'
import { engineOptions } from '../../src/compose.js'
import { createBwrapDriver } from '../../src/drivers/bwrap/driver.js'
import { createOciDriver } from '../../src/drivers/oci/driver.js'
import { createGvisorDriver } from '../../src/drivers/oci/gvisor-driver.js'
import { createDockerDriver } from '../../src/drivers/docker/driver.js'
import { createDockerSandboxDriver } from '../../src/drivers/docker/sandbox-driver.js'
import { createFakeDriver } from '../../src/drivers/fake/driver.js'
import { Engine } from '../../src/engine/engine.js'
import type { EngineAddress } from '../../src/sys/docker/address.js'
import { cachePlace, statePlace } from '../../src/sys/places.js'
import { createSeccompCompiler } from '../../src/sys/seccomp.js'
import { createHostTemplates } from '../../src/templates/host.js'
import { isOfATest } from '../mounts.js'
import { type Served, serve } from '../server/plain-house.js'
import { createHostView, type PlantedHostView } from '../../src/verify/host-view.js'
import { createPlatformSubject } from '../../src/verify/platform-subject.js'
import { createDriverSubject } from './subjects/driver-subject.js'

export type DriverName = 'fake' | 'bwrap' | 'oci:crun' | 'oci:runc' | 'oci:runsc' | 'docker' | 'docker:runsc'

/** How a subject is made other than it should be. */
export interface Twist {
  readonly driver?: (driver: Driver) => Driver
  readonly platform?: (platform: Platform) => Platform
  readonly connect?: typeof connectWarden
  readonly filter?: () => Promise<Uint8Array>
}

/** The host as the subjects of one test file see it: canaries planted, a folder for temporary files of their own, real parts to build from. */
export interface World extends AsyncDisposable {
  readonly host: PlantedHostView
  readonly temporary: string
  driver(name: DriverName): Driver
  driverSubject(name: DriverName, twist?: Twist): Promise<Subject>
  engineSubject(name: DriverName, twist?: Twist): Promise<Subject>
  /** The same behind a server, by a client of it. */
  clientSubject(name: DriverName): Promise<Subject>
}

export interface WorldOptions {
  /** Where the engine of the docker driver listens; told by the environment unless given. */
  readonly docker?: EngineAddress
}

export async function createWorld(options: WorldOptions = {}): Promise<World> {
  const before = process.env.TMPDIR
  const canaryHome = tmpdir()
  const temporary = mkdtempSync(join(canaryHome, 'gbx-world-'))
  const store = join(temporary, 'snapshots')
  // Folders of the store itself are there before anyone looks what is left.
  for (const name of ['drafts', 'names', 'objects']) mkdirSync(join(store, name), { recursive: true, mode: 0o700 })
  const host = await createHostView({ ownFolders: [temporary], sharedFolders: [statePlace()], isOthers: isOfATest })
  process.env.TMPDIR = temporary
  const templates = createHostTemplates()
  const compiler = createSeccompCompiler({ cacheDir: join(cachePlace(), 'seccomp') })
  const filter = () => compiler.compileDefault()
  const platforms: Platform[] = []
  const servers: Served[] = []
  const made: Readonly<Record<DriverName, () => Driver>> = {
    fake: () => createFakeDriver(),
    bwrap: () => createBwrapDriver(),
    'oci:crun': () => createOciDriver('crun'),
    'oci:runc': () => createOciDriver('runc'),
    'oci:runsc': () => createGvisorDriver(),
    docker: () => createDockerDriver(options.docker ? { address: options.docker } : {}),
    'docker:runsc': () => createDockerSandboxDriver(options.docker ? { address: options.docker } : {}),
  }
  const driver = (name: DriverName): Driver => made[name]()
  return {
    host,
    temporary,
    driver,
    driverSubject: async (name, twist = {}) => {
      const twisted = twist.driver?.(driver(name)) ?? driver(name)
      const connecting = twist.connect && { connect: twist.connect }
      return createDriverSubject({ driver: twisted, host, root: await templates.resolve('host'), filter: twist.filter ?? filter, ...connecting })
    },
    engineSubject: async (name, twist = {}) => {
      const twisted = twist.driver?.(driver(name)) ?? driver(name)
      const engine = new Engine({
        ...engineOptions({ drivers: [twisted], snapshotDir: store }),
        templates,
        filter: twist.filter ?? filter,
      })
      platforms.push(engine)
      const platform = twist.platform?.(engine) ?? engine
      return createPlatformSubject({ platform, probe: await probeOf(platform, name), host })
    },
    clientSubject: async (name) => {
      const engine = new Engine({ ...engineOptions({ drivers: [driver(name)], snapshotDir: store }), templates, filter })
      const served = await serve(engine, join(temporary, `${servers.length}.sock`))
      servers.push(served)
      platforms.push(engine)
      return createPlatformSubject({ platform: served.client, probe: await probeOf(served.client, name), host, depth: 'client' })
    },
    [Symbol.asyncDispose]: async () => {
      for (const server of servers) await server[Symbol.asyncDispose]()
      for (const platform of platforms) await platform[Symbol.asyncDispose]()
      if (before === undefined) delete process.env.TMPDIR
      else process.env.TMPDIR = before
      await host[Symbol.asyncDispose]()
      rmSync(temporary, { recursive: true })
    },
  }
}

async function probeOf(platform: Platform, name: DriverName): Promise<Probe> {
  const probe = (await platform.probe()).find(({ driver }) => driver === name)
  if (!probe) throw new Error(`the platform has no driver ${name}`)
  return probe
}
