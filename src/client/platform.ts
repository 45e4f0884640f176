/** A platform on another machine, or in another process: everything is asked of its server. */
import { checkCallOptions } from '../contract/call-options.js'
import type { PlatformChanges, Written } from '../contract/changes.js'
import type { Probe } from '../contract/driver.js'
import { plainObjectRefusal } from '../contract/plain-object.js'
import type { LimitsInput } from '../contract/limits.js'
import type { CreationOptions } from '../contract/platform-network.js'
import type { CallOptions, Platform, PlatformProcess, SandboxFilter, SandboxInfo, SandboxUsage } from '../contract/platform.js'
import type { Receipt } from '../contract/receipt.js'
import type { RunRequest } from '../contract/run.js'
import type { Change, ForkOptions, PlatformSnapshots, SinceOptions, SnapshotInfo, TakeOptions } from '../contract/snapshots.js'
import type { SpecInput } from '../contract/spec.js'
import { ClientCode } from './code.js'
import type { EventStream } from './event-stream.js'
import { ClientFiles, withPathBytes } from './files.js'
import { ClientEvents, ClientLife, ClientNetwork } from './life.js'
import { allPages, eachOfPages } from './pages.js'
import { checkCreation, ClientPools, entrusted } from './pools.js'
import { ClientPorts } from './ports.js'
import { ClientProcesses, startProgram } from './processes.js'
import type { QueryValue, Wire } from './wire.js'

export class ClientPlatform implements Platform {
  readonly changes: PlatformChanges
  readonly code: ClientCode
  readonly events: ClientEvents
  readonly files: ClientFiles
  readonly snapshots: PlatformSnapshots
  readonly life: ClientLife
  readonly network: ClientNetwork
  readonly pools: ClientPools
  readonly ports: ClientPorts
  readonly processes: ClientProcesses
  readonly #wire: Wire
  /** What is closed with it. */
  readonly #own: Map<string, EventStream> | undefined

  constructor(wire: Wire, { closesOwn }: { readonly closesOwn: boolean }) {
    this.#wire = wire
    this.#own = closesOwn ? new Map() : undefined
    this.changes = changesOf(wire)
    this.code = new ClientCode(wire)
    this.events = new ClientEvents(wire)
    this.files = new ClientFiles(wire)
    this.snapshots = snapshotsOf(wire)
    this.life = new ClientLife(wire)
    this.network = new ClientNetwork(wire)
    this.pools = new ClientPools(wire)
    this.ports = new ClientPorts(wire)
    this.processes = new ClientProcesses(wire)
  }

  async create(spec: SpecInput, options: CreationOptions = {}): Promise<SandboxInfo> {
    const { signal, onRequest } = checkCreation(options)
    const query = { ...(onRequest && { approvals: true }), ...(this.#own && { hold: true }) }
    const made = await this.#wire.call('sandboxes.create', { params: {}, query, body: spec, what: 'spec', signal })
    if (this.#own) this.#own.set(made.id, await this.#hold(made.id))
    return entrusted(this.#wire, made, onRequest)
  }

  /** Also when this process is killed: the server closes what nobody holds any more. */
  async #hold(id: string): Promise<EventStream> {
    const stream = await this.#wire.stream('sandboxes.events', { params: { id }, query: { hold: true } })
    stream.unref()
    return stream
  }

  async info(id: string, options: CallOptions = {}): Promise<SandboxInfo> {
    const { signal } = checkCallOptions(options)
    return (await this.#wire.call('sandboxes.get', { params: { id }, signal })) as unknown as SandboxInfo
  }

  list(filter?: SandboxFilter, options: CallOptions = {}): AsyncIterable<SandboxInfo> {
    const { signal } = checkCallOptions(options)
    const wanted = filterQuery(filter)
    return eachOfPages<SandboxInfo>((page) => this.#wire.call('sandboxes.list', { params: {}, query: { ...wanted, ...page }, signal }))
  }

  async start(id: string, request: RunRequest, options: CallOptions = {}): Promise<PlatformProcess> {
    const { signal } = checkCallOptions(options)
    return startProgram(this.#wire, id, { request, signal })
  }

  async limit(id: string, limits: LimitsInput, options: CallOptions = {}): Promise<SandboxInfo> {
    const { signal } = checkCallOptions(options)
    return (await this.#wire.call('sandboxes.limit', { params: { id }, body: limits, what: 'limits', signal })) as unknown as SandboxInfo
  }

  async usage(id: string, options: CallOptions = {}): Promise<SandboxUsage> {
    const { signal } = checkCallOptions(options)
    return this.#wire.call('sandboxes.usage', { params: { id }, signal })
  }

  async receipt(id: string, options: CallOptions = {}): Promise<Receipt> {
    const { signal } = checkCallOptions(options)
    return this.#wire.call('sandboxes.receipt', { params: { id }, signal })
  }

  async close(id: string): Promise<void> {
    await this.#wire.call('sandboxes.close', { params: { id } })
    const stream = this.#own?.get(id)
    this.#own?.delete(id)
    await stream?.leave()
  }

  async closeAll(filter?: SandboxFilter): Promise<number> {
    const wanted = filterQuery(filter)
    const query = Object.keys(wanted).length === 0 ? { all: true } : wanted
    return (await this.#wire.call('sandboxes.closeAll', { params: {}, query })).closed
  }

  async probe(options: CallOptions = {}): Promise<readonly Probe[]> {
    const { signal } = checkCallOptions(options)
    return (await this.#wire.call('house.probe', { params: {}, signal })).items as unknown as readonly Probe[]
  }

  /** Leaves the server: what is there stays there, but for what it was said to close. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.allSettled([...(this.#own?.keys() ?? [])].map((id) => this.close(id)))
    await this.#wire.transport.close()
  }
}

/** What is no filter is the server's to refuse, by its name. */
function filterQuery(filter: SandboxFilter = {}): Record<string, QueryValue> {
  const refusal = plainObjectRefusal(filter, 'filter')
  if (refusal) throw refusal
  const { metadata, ...rest } = filter
  if (metadata === undefined) return rest
  const wrong = plainObjectRefusal(metadata, 'metadata')
  if (wrong) throw wrong
  return { ...rest, metadata: Object.entries(metadata).map(([key, value]) => `${encodeURIComponent(key)}=${value}`) }
}

function changesOf(wire: Wire): PlatformChanges {
  return {
    written: async (id, target, options = {}) => {
      const { signal } = checkCallOptions(options)
      return allPages<Written>((page) => wire.call('sandboxes.changes', { params: { id }, query: { target, ...page }, signal }))
    },
  }
}

function snapshotsOf(wire: Wire): PlatformSnapshots {
  return {
    take: async (id, options: TakeOptions = {}) => {
      const { signal, name } = checkCallOptions(options, ['signal', 'name'])
      return (await wire.call('snapshots.take', { params: { id }, body: { name }, signal })) as SnapshotInfo
    },
    list: async (options = {}) => {
      const { signal } = checkCallOptions(options)
      return allPages<SnapshotInfo>((query) => wire.call('snapshots.list', { params: {}, query, signal }))
    },
    remove: async (snapshot, options = {}) => {
      const { signal } = checkCallOptions(options)
      return (await wire.call('snapshots.remove', { params: { snapshot }, signal })).removed
    },
    diff: async (id, options: SinceOptions = {}) => {
      const { signal, since } = checkCallOptions(options, ['signal', 'since'])
      const changes = await allPages<Change & { readonly pathBase64?: string }>((page) =>
        wire.call('snapshots.diff', { params: { id }, query: { since, ...page }, signal }),
      )
      return changes.map((change) => withPathBytes(change))
    },
    export: async (id, options: SinceOptions = {}) => {
      const { signal, since } = checkCallOptions(options, ['signal', 'since'])
      return (await wire.bytes('snapshots.export', { params: { id }, query: { since }, signal })).bytes
    },
    fork: async (id, count, options: ForkOptions = {}) => {
      const { signal, name, metadata } = checkCallOptions(options, ['signal', 'name', 'metadata'])
      const { items } = await wire.call('snapshots.fork', { params: { id }, body: { count, name, metadata }, signal })
      return items as unknown as readonly SandboxInfo[]
    },
  }
}
