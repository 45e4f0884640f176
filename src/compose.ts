/** The one place that knows every room: puts drivers, templates and the engine together, and owns the default platform. */
import { join } from 'node:path'
import type { Driver } from './contract/driver.js'
import type { Platform } from './contract/platform.js'
import { createBwrapDriver } from './drivers/bwrap/driver.js'
import { createFakeDriver } from './drivers/fake/driver.js'
import { Engine, type EngineBounds } from './engine/engine.js'
import { Sandbox as AnySandbox } from './sandbox/index.js'
import { cachePlace } from './sys/places.js'
import { createSeccompCompiler, type SeccompCompiler } from './sys/seccomp.js'
import { createHostTemplates } from './templates/host.js'

export interface PlatformSettings {
  /** The drivers to choose from; all that there are when not given. `fake`, which isolates nothing, is used only for a spec that names it and accepts tier `none`. */
  readonly drivers?: readonly Driver[]
  /** Where what can be built again is kept, instead of the usual place. */
  readonly cacheDir?: string
  readonly bounds?: Partial<EngineBounds>
}

/** A platform on this machine. Nothing is touched before it is used; whoever creates it disposes of it. */
export function createPlatform(settings: PlatformSettings = {}): Platform {
  const { cacheDir, bounds } = settings
  let compiler: SeccompCompiler | undefined
  return new Engine({
    drivers: settings.drivers ?? builtInDrivers(),
    templates: createHostTemplates(cacheDir === undefined ? {} : { cache: join(cacheDir, 'templates') }),
    filter: async () => {
      compiler ??= createSeccompCompiler({ cacheDir: cacheDir ?? cachePlace() })
      return compiler.compileDefault()
    },
    ...(bounds && { bounds }),
  })
}

/** Each builds its cells with what only Linux has. */
function builtInDrivers(): readonly Driver[] {
  return process.platform === 'linux' ? [createBwrapDriver(), createFakeDriver()] : []
}

/** One for the whole process, made when it is first asked for. It holds nothing that keeps the process alive and listens to no signal of it. */
const shared: { platform?: Platform } = {}

function defaultPlatform(): Platform {
  shared.platform ??= createPlatform()
  return shared.platform
}

/** A sandbox on the default platform, unless another is given. */
export class Sandbox extends AnySandbox {
  protected static override defaultPlatform(): Platform {
    return defaultPlatform()
  }
}
