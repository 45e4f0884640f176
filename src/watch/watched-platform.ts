import type { PlatformCode } from '../contract/code.js'
import type { Platform } from '../contract/platform.js'
import type { PlatformPools } from '../contract/pools.js'
import type { PlatformSnapshots } from '../contract/snapshots.js'
import type { Meters } from './meters.js'
import { Observer } from './observer.js'
import type { Spans } from './spans.js'
import { watchedCalls } from './watched-calls.js'

export interface Watching {
  /** Not given: nothing is counted. */
  readonly meters?: Meters | undefined
  /** Not given: nothing is traced. */
  readonly spans?: Spans | undefined
}

/**
 * The same platform, of which calls are counted, timed and traced. What it hands out is what it was handed: programs, streams and files are untouched, and no byte
 * of them is seen here.
 */
export function watchedPlatform(platform: Platform, watching: Watching): Platform {
  const observer = new Observer(watching)
  const onFailure = (call: string, error: unknown): void => observer.failed(call, error)
  const noted = <Value>(call: string, pending: Promise<Value>): Promise<Value> =>
    pending.catch((error: unknown) => {
      onFailure(call, error)
      throw error
    })
  const { changes, files, life, network, ports, processes, events } = platform
  return {
    events,
    changes: watchedCalls(changes, 'changes', onFailure),
    files: { of: (id) => watchedCalls(files.of(id), 'files', onFailure) },
    life: watchedCalls(life, 'life', onFailure),
    network: watchedCalls(network, 'network', onFailure),
    ports: watchedCalls(ports, 'ports', onFailure),
    processes: watchedCalls(processes, 'processes', onFailure),
    code: watchedCalls(watchedCode(platform.code, observer), 'code', onFailure),
    pools: watchedCalls(watchedPools(platform.pools, observer), 'pools', onFailure),
    snapshots: watchedCalls(watchedSnapshots(platform.snapshots, observer), 'snapshots', onFailure),
    create: (spec, options) =>
      noted(
        'create',
        observer.create(
          'create',
          () => platform.create(spec, options),
          (info) => [info],
        ),
      ),
    info: (id, options) => noted('info', platform.info(id, options)),
    list: (filter, options) => platform.list(filter, options),
    start: (id, request, options) =>
      noted(
        'start',
        observer.start(request.background ? 'process' : 'run', id, () => platform.start(id, request, options)),
      ),
    limit: (id, limits, options) => noted('limit', platform.limit(id, limits, options)),
    usage: (id, options) => noted('usage', platform.usage(id, options)),
    receipt: (id, options) => noted('receipt', platform.receipt(id, options)),
    close: (id) => noted('close', platform.close(id)),
    closeAll: (filter) => noted('closeAll', platform.closeAll(filter)),
    probe: (options) => noted('probe', platform.probe(options)),
    [Symbol.asyncDispose]: () => platform[Symbol.asyncDispose](),
  }
}

function watchedPools(pools: PlatformPools, observer: Observer): PlatformPools {
  return overlaid(pools, {
    acquire: (pool, claim, options) =>
      observer.create(
        'acquire',
        () => pools.acquire(pool, claim, options),
        (info) => [info],
      ),
    take: (spec, options) =>
      observer.create(
        'take',
        () => pools.take(spec, options),
        (info) => [info],
      ),
    run: (place, request, options) => observer.oneShot(() => pools.run(place, request, options)),
  })
}

function watchedCode(code: PlatformCode, observer: Observer): PlatformCode {
  return overlaid(code, { execute: (id, request, options) => observer.execute(id, () => code.execute(id, request, options)) })
}

function watchedSnapshots(snapshots: PlatformSnapshots, observer: Observer): PlatformSnapshots {
  return overlaid(snapshots, {
    fork: (id, count, options) =>
      observer.create(
        'fork',
        () => snapshots.fork(id, count, options),
        (infos) => infos,
      ),
  })
}

/** Some calls of a facet instead of its own. */
function overlaid<Facet extends object>(facet: Facet, own: Partial<Facet>): Facet {
  return new Proxy(facet, {
    get: (target, key) => {
      if (Object.hasOwn(own, key)) return Reflect.get(own, key) as unknown
      const value: unknown = Reflect.get(target, key, target)
      return typeof value === 'function' ? (...args: readonly unknown[]): unknown => Reflect.apply(value, target, args) : value
    },
  })
}
