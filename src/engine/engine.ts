import { randomInt } from 'node:crypto'
import type { Driver, Probe, TemplateRoot } from '../contract/driver.js'
import { checkCallOptions } from '../contract/call-options.js'
import { SandboxError } from '../contract/errors.js'
import type { LimitsInput } from '../contract/limits.js'
import type { CallOptions, Platform, PlatformProcess, SandboxFilter, SandboxInfo, SandboxUsage } from '../contract/platform.js'
import type { Receipt } from '../contract/receipt.js'
import type { RunRequest } from '../contract/run.js'
import type { SpecInput } from '../contract/spec.js'
import { candidates, chooseDriver } from '../policy/choose.js'
import { matchesFilter, parseFilter, parseId, parseSpec } from '../policy/spec.js'
import { storageRefusal } from '../policy/storage.js'
import { Creation } from './creation.js'
import { Deadline } from './deadline.js'
import { LiveSandbox } from './live-sandbox.js'
import { openCell } from './open-cell.js'
import { Probes } from './probes.js'

export interface EngineBounds {
  /** Sandboxes at once, those being created included. */
  readonly maxSandboxes: number
  /** Programs at once in one sandbox. The warden takes no more than 1,024. */
  readonly maxRuns: number
  /** A cell that takes longer to open, or a warden that takes longer to start or kill a program, is given up. */
  readonly answerMs: number
}

export interface EngineOptions {
  readonly drivers: readonly Driver[]
  readonly templates: { resolve(name: string): Promise<TemplateRoot> }
  /** The compiled seccomp filter for guests; asked for when a driver that filters opens its first cell. */
  readonly filter: () => Promise<Uint8Array>
  readonly bounds?: Partial<EngineBounds>
}

const defaultBounds: EngineBounds = { maxSandboxes: 1000, maxRuns: 256, answerMs: 20_000 }

const idAlphabet = 'abcdefghijklmnopqrstuvwxyz0123456789'
const idLength = 20
const mostRemembered = 1000

/** The platform on this machine: owns every sandbox it creates until nothing of it is left. */
export class Engine implements Platform {
  readonly #options: EngineOptions
  readonly #bounds: EngineBounds
  readonly #probes = new Probes()
  readonly #creations = new Set<Creation>()
  readonly #sandboxes = new Map<string, LiveSandbox>()
  /** Why the latest ones are gone, so that a late call is told more than that there is nothing. */
  readonly #gone = new Map<string, SandboxError>()
  #filter: Promise<Uint8Array> | undefined
  #isDisposed = false

  constructor(options: EngineOptions) {
    this.#options = options
    this.#bounds = { ...defaultBounds, ...options.bounds }
  }

  async create(input: SpecInput, options: CallOptions = {}): Promise<SandboxInfo> {
    const { signal } = checkCallOptions(options)
    signal?.throwIfAborted()
    if (this.#isDisposed) throw new SandboxError('closed', 'this platform was closed')
    const spec = parseSpec(input)
    const count = this.#creations.size + this.#sandboxes.size
    if (count >= this.#bounds.maxSandboxes) throw new SandboxError('busy', `there are ${count} sandboxes; no more are allowed at once`)
    const creation = new Creation(spec, signal)
    this.#creations.add(creation)
    try {
      return (await this.#make(creation)).info
    } finally {
      this.#creations.delete(creation)
      creation.finish()
    }
  }

  async info(id: string, options: CallOptions = {}): Promise<SandboxInfo> {
    checkCallOptions(options).signal?.throwIfAborted()
    return (await this.#find(id)).info
  }

  // eslint-disable-next-line @typescript-eslint/require-await -- an async generator is the shortest way to an async iterator
  async *list(filter?: SandboxFilter, options: CallOptions = {}): AsyncGenerator<SandboxInfo, void, undefined> {
    const { signal } = checkCallOptions(options)
    const wanted = parseFilter(filter)
    for (const sandbox of [...this.#sandboxes.values()]) {
      signal?.throwIfAborted()
      if (!sandbox.over && matchesFilter(sandbox.info, wanted)) yield sandbox.info
    }
  }

  async start(id: string, request: RunRequest, options: CallOptions = {}): Promise<PlatformProcess> {
    const { signal } = checkCallOptions(options)
    signal?.throwIfAborted()
    const sandbox = await this.#find(id)
    return sandbox.start(request, signal)
  }

  async limit(id: string, _limits: LimitsInput): Promise<SandboxInfo> {
    await this.#find(id)
    throw new SandboxError('unsupported', 'limits cannot be changed yet')
  }

  async usage(id: string): Promise<SandboxUsage> {
    await this.#find(id)
    throw new SandboxError('unsupported', 'usage cannot be told yet')
  }

  async receipt(id: string): Promise<Receipt> {
    await this.#find(id)
    throw new SandboxError('unsupported', 'there are no receipts yet')
  }

  async close(id: string): Promise<void> {
    await this.#sandboxes.get(parseId(id))?.close()
  }

  /** Also calls off what is being created, so that nothing that matches appears afterwards. */
  async closeAll(filter?: SandboxFilter): Promise<number> {
    const wanted = parseFilter(filter)
    const creations = [...this.#creations].filter((creation) => matchesFilter(creation, wanted))
    const sandboxes = [...this.#sandboxes.values()].filter((sandbox) => matchesFilter(sandbox.info, wanted))
    const running = sandboxes.filter((sandbox) => !sandbox.over)
    await settleAll([...creations.map((creation) => creation.callOff()), ...sandboxes.map((sandbox) => sandbox.close())])
    return running.length
  }

  async probe(options: CallOptions = {}): Promise<readonly Probe[]> {
    const { signal } = checkCallOptions(options)
    signal?.throwIfAborted()
    const probes = await this.#probes.fresh(this.#options.drivers)
    signal?.throwIfAborted()
    return probes
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isDisposed = true
    await this.closeAll()
  }

  async #make(creation: Creation): Promise<LiveSandbox> {
    const { spec, signal } = creation
    const drivers = candidates(spec, this.#options.drivers)
    const choice = chooseDriver(spec, await this.#probes.known(drivers))
    const driver = drivers.find((each) => each.name === choice.probe.driver)
    if (!driver) throw new SandboxError('internal', `driver ${choice.probe.driver} answers under another name`)
    const [root, filter] = await Promise.all([
      this.#options.templates.resolve(spec.template),
      choice.probe.filtersSyscalls ? this.#compiledFilter() : undefined,
    ]).catch((error: unknown) => {
      throw storageRefusal(error)
    })
    signal.throwIfAborted()

    const id = this.#newId()
    const limited = { ...spec, limits: choice.limits }
    const open = await this.#withPatience(creation, openCell({ driver, spec: { id, root, limits: choice.limits, rootMode: spec.root, mounts: [], commands: undefined }, filter, signal }))
    const sandbox = new LiveSandbox({
      id,
      spec: limited,
      probe: choice.probe,
      root,
      unenforced: choice.unenforced,
      open,
      bounds: this.#bounds,
      onGone: (why) => this.#forget(id, why),
    })
    this.#sandboxes.set(id, sandbox)
    if (signal.aborted) {
      await sandbox.close()
      throw signal.reason
    }
    return sandbox
  }

  async #withPatience<T>(creation: Creation, opening: Promise<T>): Promise<T> {
    const { answerMs } = this.#bounds
    const patience = new Deadline(answerMs, () => creation.abort(new SandboxError('broken', `a cell did not open within ${answerMs} ms`)))
    try {
      return await opening
    } finally {
      patience.cancel()
    }
  }

  async #find(id: string): Promise<LiveSandbox> {
    const sandbox = this.#sandboxes.get(parseId(id))
    if (sandbox && !sandbox.over) return sandbox
    throw (await sandbox?.over) ?? this.#gone.get(id) ?? new SandboxError('not-found', `there is no sandbox ${id} here`)
  }

  #forget(id: string, why: SandboxError): void {
    this.#sandboxes.delete(id)
    this.#gone.set(id, why)
    for (const oldest of this.#gone.keys()) {
      if (this.#gone.size <= mostRemembered) break
      this.#gone.delete(oldest)
    }
  }

  /** Kept once it is there; asked for again when it could not be had. */
  #compiledFilter(): Promise<Uint8Array> {
    this.#filter ??= this.#options.filter().catch((error: unknown) => {
      this.#filter = undefined
      throw error
    })
    return this.#filter
  }

  #newId(): string {
    const id = Array.from({ length: idLength }, () => idAlphabet[randomInt(idAlphabet.length)]).join('')
    return this.#sandboxes.has(id) || this.#gone.has(id) ? this.#newId() : id
  }
}

/** Waits for all, then throws the first error: one sandbox that cannot be closed keeps no other from it. */
async function settleAll(pending: readonly Promise<unknown>[]): Promise<void> {
  const failed = (await Promise.allSettled(pending)).find((result) => result.status === 'rejected')
  if (failed) throw failed.reason
}
