import { checkCallOptions } from '../contract/call-options.js'
import { SandboxError } from '../contract/errors.js'
import { kindOf } from '../contract/plain-object.js'
import type { NetworkFacts, NetworkRecord, NetworkSummary } from '../contract/network.js'
import type { CreationOptions, RequestJudge } from '../contract/platform-network.js'
import type { CallOptions, PlatformProcess, SandboxInfo } from '../contract/platform.js'
import type { Claim, OneShot, OneShotCall, OneShotPlace, OneShotRunCall, PlatformPools, PoolInfo, PoolInput, PoolStatus, Released } from '../contract/pools.js'
import type { Receipt } from '../contract/receipt.js'
import type { RunRequest } from '../contract/run.js'
import type { SpecInput } from '../contract/spec.js'
import type { EventStream, StreamEvent } from './event-stream.js'
import { answerAsks, approvalOf } from './life.js'
import { OutputQueue } from './output-queue.js'
import { followRun } from './processes.js'
import { type ProgramDoor, RemoteProgram } from './program.js'
import { Records } from './records.js'
import type { Wire } from './wire.js'

export class ClientPools implements PlatformPools {
  readonly #wire: Wire

  constructor(wire: Wire) {
    this.#wire = wire
  }

  async create(spec: SpecInput, settings: PoolInput = {}, options: CallOptions = {}): Promise<PoolInfo> {
    const { signal } = checkCallOptions(options)
    return (await this.#wire.call('pools.create', { params: {}, body: { spec, settings }, what: 'pool', signal })) as unknown as PoolInfo
  }

  async status(pool: string, options: CallOptions = {}): Promise<PoolStatus> {
    const { signal } = checkCallOptions(options)
    return (await this.#wire.call('pools.status', { params: { pool }, signal })) as PoolStatus
  }

  async acquire(pool: string, claim: Claim = {}, options: CreationOptions = {}): Promise<SandboxInfo> {
    const { signal, onRequest } = checkCreation(options)
    const query = onRequest ? { approvals: true } : {}
    return entrusted(this.#wire, await this.#wire.call('pools.acquire', { params: { pool }, query, body: claim, what: 'claim', signal }), onRequest)
  }

  async close(pool: string): Promise<void> {
    await this.#wire.call('pools.close', { params: { pool } })
  }

  async take(spec: SpecInput, options: OneShotCall = {}): Promise<SandboxInfo> {
    const { signal, onRequest, fresh, pool, language } = checkCreation(options, ['fresh', 'pool', 'language', 'receipt'])
    const body = { spec, fresh, ready: pool, language, ...(onRequest && { approvals: true }) }
    return entrusted(this.#wire, await this.#wire.call('pools.take', { params: {}, body, what: 'spec', signal }), onRequest)
  }

  async release(sandbox: string): Promise<Released> {
    return (await this.#wire.call('sandboxes.release', { params: { id: sandbox } })) as Released
  }

  async run(place: OneShotPlace, request: RunRequest, options: OneShotRunCall = {}): Promise<OneShot> {
    const { signal, onRequest, fresh, pool, receipt, after } = checkCreation(options, ['fresh', 'pool', 'language', 'receipt', 'after'])
    await after
    const where = 'pool' in place ? { pool: place.pool } : { sandbox: place.spec }
    // What may be asked for after its end is kept for that; otherwise one answer tells everything.
    const how = {
      fresh,
      ready: pool,
      ...(receipt === true && { receipt }),
      ...(receipt === undefined && { keep: true }),
      ...(onRequest && { approvals: true }),
    }
    const stream = await this.#wire.stream('runs.start', { params: {}, body: { ...request, ...where, ...how }, what: 'run', signal })
    return RemoteShot.begin(stream, { wire: this.#wire, onRequest, isKept: receipt === undefined })
  }
}

/** Only what is no option is refused here; what each must be is the platform's to say. */
export function checkCreation<Options extends CreationOptions>(options: Options, more: readonly (keyof Options)[] = []): Options {
  const { onRequest } = checkCallOptions(options, ['signal', 'onRequest', ...more])
  if (onRequest !== undefined && typeof onRequest !== 'function') throw new SandboxError('invalid', `onRequest: expected a function, got ${kindOf(onRequest)}`)
  return options
}

/** What is asked about it from now on is answered here. */
export function entrusted(wire: Wire, info: unknown, judge: RequestJudge | undefined): SandboxInfo {
  const sandbox = info as SandboxInfo
  if (judge) void answerAsks(wire, sandbox.id, judge).catch(() => undefined)
  return sandbox
}

interface Begun {
  readonly run: string
  readonly pid: number
  readonly sandbox: SandboxInfo
  readonly hasNetwork: boolean
}

interface Shooting {
  readonly wire: Wire
  readonly onRequest: RequestJudge | undefined
  readonly isKept: boolean
}

interface Last {
  readonly receipt?: Receipt
  readonly network?: NetworkSummary
}

class RemoteShot implements OneShot {
  readonly sandbox: SandboxInfo
  readonly program: PlatformProcess
  readonly network?: NonNullable<OneShot['network']>
  readonly #stream: EventStream
  readonly #shooting: Shooting
  readonly #params: { readonly run: string }
  readonly #records = new Records<NetworkRecord>()
  /** What came with its end. */
  #last: Last | undefined
  #released: Promise<Released> | undefined

  static async begin(stream: EventStream, shooting: Shooting): Promise<RemoteShot> {
    const begun = await stream.next()
    if (begun?.type !== 'begun') throw new SandboxError('broken', 'the server does not say what it began')
    return new RemoteShot(stream, begun as unknown as Begun, shooting)
  }

  private constructor(stream: EventStream, { run, pid, sandbox, hasNetwork }: Begun, shooting: Shooting) {
    this.#stream = stream
    this.#shooting = shooting
    this.#params = { run }
    this.sandbox = sandbox
    if (hasNetwork) this.network = { log: this.#records, summary: () => this.#summary() }
    const output = new OutputQueue()
    const ended = followRun(stream, output, (event) => this.#tell(event)).then((event) => {
      this.#last = event as Last
      if (!shooting.isKept) this.#records.end()
      return event.ending
    })
    ended.catch(() => this.#records.end())
    this.program = new RemoteProgram({ pid, door: this.#door(), output, ended, stream })
  }

  async receipt(options: CallOptions = {}): Promise<Receipt> {
    const { signal } = checkCallOptions(options)
    if (this.#last?.receipt) return this.#last.receipt
    if (this.#last && !this.#shooting.isKept) throw new SandboxError('conflict', 'its receipt was said not to be asked for')
    return await this.#shooting.wire.call('runs.receipt', { params: this.#params, signal })
  }

  release(): Promise<Released> {
    this.#released ??= this.#release().finally(() => this.#records.end())
    return this.#released
  }

  async #release(): Promise<Released> {
    if (this.#last && !this.#shooting.isKept) return this.#last.network ? { network: this.#last.network } : {}
    try {
      return (await this.#shooting.wire.call('runs.release', { params: this.#params })) as Released
    } catch (error) {
      // One that its server released by itself.
      if (error instanceof SandboxError && error.code === 'not-found') return {}
      throw error
    } finally {
      await this.#stream.leave()
    }
  }

  async #summary(): Promise<NetworkSummary> {
    if (this.#last?.network) return this.#last.network
    return (await this.#shooting.wire.call('runs.summary', { params: this.#params })) as NetworkSummary
  }

  #tell(event: StreamEvent): void {
    if (event.type === 'record') this.#records.push((event as unknown as { readonly record: NetworkRecord }).record)
    if (event.type === 'ask') this.#answer(event as unknown as { readonly ask: string; readonly facts: NetworkFacts })
  }

  #answer({ ask, facts }: { readonly ask: string; readonly facts: NetworkFacts }): void {
    const { wire, onRequest } = this.#shooting
    if (!onRequest) return
    void approvalOf(onRequest, facts)
      .then((approval) => wire.call('runs.approve', { params: { ...this.#params, ask }, body: { approval } }))
      .catch(() => undefined)
  }

  #door(): ProgramDoor {
    const { wire } = this.#shooting
    const params = this.#params
    return {
      stdin: (bytes, { end }) => wire.call('runs.stdin', { params, pieces: bytes, query: end ? { end } : {} }),
      signal: (signal) => wire.call('runs.signal', { params, body: { signal } }),
      resize: (size) => wire.call('runs.resize', { params, body: size, what: 'size' }),
      kill: (reason) => wire.call('runs.kill', { params, body: { reason } }),
    }
  }
}
