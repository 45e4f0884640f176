import { connectWarden, type StartRequest, type WardenExit, type WardenProcess } from '../../../src/channel/index.js'
import type { Cell, Driver } from '../../../src/contract/driver.js'
import type { Platform, PlatformProcess } from '../../../src/contract/platform.js'
import type { Ending, OutputEvent, RunRequest } from '../../../src/contract/run.js'
import type { SpecInput } from '../../../src/contract/spec.js'

/** What a lying warden does to each program; the rest is the real one's. */
export interface WardenLie {
  readonly request?: (request: StartRequest) => StartRequest
  readonly output?: (event: OutputEvent) => OutputEvent
  readonly input?: (bytes: Uint8Array) => Uint8Array
  readonly exit?: (exit: WardenExit) => WardenExit
  readonly kill?: (process: WardenProcess) => Promise<void>
}

export function lyingWarden(lie: WardenLie): typeof connectWarden {
  return async (channel, options) => {
    const warden = await connectWarden(channel, options)
    return {
      ended: warden.ended,
      close: () => warden.close(),
      connect: (port) => warden.connect(port),
      prepare: () => Promise.resolve(undefined),
      hold: () => warden.hold(),
      onConnection: (take) => warden.onConnection(take),
      onQuery: (answer) => warden.onQuery(answer),
      listen: (ports) => warden.listen(ports),
      start: async (request) => {
        const result = await warden.start(lie.request?.(request) ?? request)
        // A worker is no program: what it is told and answers is none of these lies.
        return result.started && request.worker === undefined ? { started: true, process: lyingProcess(result.process, lie) } : result
      },
    }
  }
}

function lyingProcess(process: WardenProcess, lie: WardenLie): WardenProcess {
  return {
    pid: process.pid,
    output: mapped(process.output, lie.output),
    aside: process.aside,
    write: (bytes) => process.write(lie.input?.(bytes) ?? bytes),
    endInput: () => process.endInput(),
    signal: (number) => process.signal(number),
    resize: (size) => process.resize(size),
    kill: () => lie.kill?.(process) ?? process.kill(),
    discardOutput: () => process.discardOutput(),
    ref: () => process.ref(),
    unref: () => process.unref(),
    exited: process.exited.then((exit) => lie.exit?.(exit) ?? exit),
  }
}

async function* mapped(
  output: AsyncIterable<OutputEvent>,
  change: ((event: OutputEvent) => OutputEvent) | undefined,
): AsyncGenerator<OutputEvent, undefined, undefined> {
  for await (const event of output) yield change?.(event) ?? event
  return undefined
}

/** A driver that does something else when a cell is closed, or paused. */
export function lyingClose(close: (cell: Cell) => Promise<void>): (driver: Driver) => Driver {
  return lyingCell({ close })
}

export function lyingCell(lie: { readonly close?: (cell: Cell) => Promise<void>; readonly pause?: (cell: Cell) => Promise<void> }): (driver: Driver) => Driver {
  return (driver) => ({
    name: driver.name,
    tier: driver.tier,
    probe: () => driver.probe(),
    open: async (spec, signal) => {
      const cell = await driver.open(spec, signal)
      return {
        channel: cell.channel,
        users: cell.users,
        workdir: cell.workdir,
        layers: cell.layers,
        diagnosis: () => cell.diagnosis(),
        expects: cell.expects,
        beginRun: (limits) => cell.beginRun(limits),
        limit: (limits) => cell.limit(limits),
        posture: (subject) => cell.posture(subject),
        usage: () => cell.usage(),
        worked: () => cell.worked(),
        pause: (besides) => lie.pause?.(cell) ?? cell.pause(besides),
        resume: () => cell.resume(),
        close: () => lie.close?.(cell) ?? cell.close(),
      }
    },
  })
}

/** What a lying engine does; the rest is the real one's. */
export interface EngineLie {
  readonly create?: (platform: Platform, ...call: Parameters<Platform['create']>) => ReturnType<Platform['create']>
  readonly request?: (request: RunRequest) => RunRequest
  readonly ending?: (ending: Ending, asked: RunRequest) => Ending
  readonly close?: (platform: Platform, id: string) => Promise<void>
  readonly acquire?: (platform: Platform, ...call: Parameters<Platform['pools']['acquire']>) => ReturnType<Platform['pools']['acquire']>
}

export function lyingEngine(lie: EngineLie): (platform: Platform) => Platform {
  return (platform) => ({
    ...facetsOf(platform),
    ...(lie.acquire && { pools: lyingPools(platform, lie.acquire) }),
    create: (spec: SpecInput, options) => lie.create?.(platform, spec, options) ?? platform.create(spec, options),
    info: (id, options) => platform.info(id, options),
    list: (filter, options) => platform.list(filter, options),
    start: async (id, request, options) => {
      const program = await platform.start(id, lie.request?.(request) ?? request, options)
      return lie.ending ? withEnding(program, (ending) => lie.ending?.(ending, request) ?? ending) : program
    },
    limit: (id, limits, options) => platform.limit(id, limits, options),
    usage: (id, options) => platform.usage(id, options),
    receipt: (id, options) => platform.receipt(id, options),
    close: (id) => lie.close?.(platform, id) ?? platform.close(id),
    closeAll: (filter) => platform.closeAll(filter),
    probe: (options) => platform.probe(options),
    [Symbol.asyncDispose]: () => platform[Symbol.asyncDispose](),
  })
}

function withEnding(program: PlatformProcess, change: (ending: Ending) => Ending): PlatformProcess {
  const ended = program.ended.then(change)
  ended.catch(() => undefined)
  return {
    pid: program.pid,
    output: program.output,
    write: (bytes) => program.write(bytes),
    endInput: () => program.endInput(),
    signal: (name) => program.signal(name),
    resize: (size) => program.resize(size),
    kill: (reason) => program.kill(reason),
    ref: () => program.ref(),
    unref: () => program.unref(),
    ended,
  }
}

function lyingPools(platform: Platform, acquire: NonNullable<EngineLie['acquire']>): Platform['pools'] {
  const { pools } = platform
  return {
    create: (spec, settings, options) => pools.create(spec, settings, options),
    status: (pool, options) => pools.status(pool, options),
    acquire: (pool, claim, options) => acquire(platform, pool, claim, options),
    close: (pool) => pools.close(pool),
    take: (spec, options) => pools.take(spec, options),
    release: (sandbox) => pools.release(sandbox),
    run: (place, request, options) => pools.run(place, request, options),
  }
}

/** What few lies are about. */
function facetsOf({
  life,
  pools,
  ports,
  files,
  processes,
  snapshots,
  changes,
  code,
  network,
  events,
}: Platform): Pick<Platform, 'life' | 'pools' | 'ports' | 'files' | 'processes' | 'snapshots' | 'changes' | 'code' | 'network' | 'events'> {
  return { life, pools, ports, files, processes, snapshots, changes, code, network, events }
}
