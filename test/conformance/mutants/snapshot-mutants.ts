import type { Platform } from '../../../src/contract/platform.js'
import type { PlatformLife } from '../../../src/contract/lifetimes.js'
import type { PlatformSnapshots } from '../../../src/contract/snapshots.js'
import type { Mutant } from './table.js'
import { lyingCell, lyingEngine } from './twists.js'

/** An engine that lies about snapshots and nothing else. */
function lyingSnapshots(lie: (platform: Platform) => Partial<PlatformSnapshots>): (platform: Platform) => Platform {
  return (platform) => {
    const { snapshots } = platform
    const honest: PlatformSnapshots = {
      take: (id, options) => snapshots.take(id, options),
      list: (options) => snapshots.list(options),
      remove: (snapshot, options) => snapshots.remove(snapshot, options),
      diff: (id, options) => snapshots.diff(id, options),
      export: (id, options) => snapshots.export(id, options),
      fork: (id, count, options) => snapshots.fork(id, count, options),
    }
    return { ...lyingEngine({})(platform), snapshots: { ...honest, ...lie(platform) } }
  }
}

export const snapshotMutants: readonly Mutant[] = [
  {
    name: 'keeps the memory that it was told not to',
    driver: 'fake',
    depth: 'engine',
    twist: {
      platform: (platform) => {
        const { life } = platform
        const honest: PlatformLife = {
          pause: (id) => life.pause(id),
          resume: (id, options) => life.resume(id, options),
          extend: (id, duration, options) => life.extend(id, duration, options),
          setLifetime: (id, duration, options) => life.setLifetime(id, duration, options),
          events: (id, options) => life.events(id, options),
        }
        return { ...lyingEngine({})(platform), life: honest }
      },
    },
    among: 'pause/',
    caughtBy: ['pause/without-memory'],
  },
  {
    name: 'begins every sandbox with nothing',
    driver: 'fake',
    depth: 'engine',
    twist: { platform: lyingEngine({ create: (platform, { from: _, ...spec }, options) => platform.create(spec, options) }) },
    among: 'snapshots/',
    caughtBy: ['snapshots/begin-again', 'snapshots/still', 'snapshots/unknown'],
  },
  {
    name: 'says that programs stand still, and lets them go on',
    driver: 'fake',
    depth: 'engine',
    twist: { driver: lyingCell({ pause: () => Promise.resolve() }) },
    among: 'snapshots/',
    caughtBy: ['snapshots/still'],
  },
  {
    name: 'hands out a sandbox as its own fork',
    driver: 'fake',
    depth: 'engine',
    twist: {
      platform: lyingSnapshots((platform) => ({
        fork: async (id, count) => {
          const info = await platform.info(id)
          return Array.from({ length: count }, () => info)
        },
      })),
    },
    among: 'snapshots/',
    caughtBy: ['snapshots/forks-apart'],
  },
  {
    name: 'says nothing of what was removed',
    driver: 'fake',
    depth: 'engine',
    twist: {
      platform: lyingSnapshots(({ snapshots }) => ({
        diff: async (id, options) => (await snapshots.diff(id, options)).filter(({ type }) => type !== 'removed'),
      })),
    },
    among: 'snapshots/',
    caughtBy: ['snapshots/difference'],
  },
]
