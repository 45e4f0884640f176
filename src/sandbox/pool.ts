import { callOptionsRefusal, checkCallOptions } from '../contract/call-options.js'
import { SandboxError } from '../contract/errors.js'
import { kindOf } from '../contract/plain-object.js'
import type { CallOptions, Platform } from '../contract/platform.js'
import type { CreationOptions } from '../contract/platform-network.js'
import type { Claim, PoolInfo, PoolInput, PoolStatus } from '../contract/pools.js'
import type { Command } from '../contract/run.js'
import type { SpecInput } from '../contract/spec.js'
import { codeInPool, type OneShotCodeRun, type PoolCodeOptions } from './code-starts.js'
import { callOptions, checkPlatform } from './platform-check.js'
import { type OneShotRun, type PoolRunOptions, runInPool } from './pool-runs.js'
import { type PlatformOptions, Sandbox } from './sandbox.js'

/** What its sandboxes are like, and how many are kept. */
export type PoolOptions = Omit<SpecInput, 'name' | 'from' | 'mounts' | 'seccomp'> & PoolInput & PlatformOptions

/** Who the sandbox is for. */
export interface AcquireOptions extends CreationOptions, Claim {}

const settingNames = ['size', 'max', 'queue', 'recycleAfter', 'recycleAfterRuns', 'idleAfter', 'fresh', 'imports', 'language'] as const

/** Sandboxes that are kept ready for whoever asks. One that was used is closed, and never handed to anyone again. */
export class SandboxPool implements AsyncDisposable {
  readonly #platform: Platform
  readonly #info: PoolInfo
  readonly #handed = new WeakSet<Sandbox>()

  protected constructor(platform: Platform, info: PoolInfo) {
    this.#platform = platform
    this.#info = info
  }

  /** Resolves when the first sandbox is there; the others follow while nobody waits. */
  static async create(options: PoolOptions = {}): Promise<SandboxPool> {
    const refusal = callOptionsRefusal(options, 'pool')
    if (refusal) throw refusal
    const { platform, signal, ...rest } = options
    const place = checkPlatform(platform) ?? this.defaultPlatform()
    const [settings, spec] = apart(rest)
    return new this(place, await place.pools.create(spec, settings, callOptions(signal)))
  }

  /** The room that knows of drivers overrides this; here none is known. */
  protected static defaultPlatform(): Platform {
    throw new SandboxError('invalid', 'platform: must be given here')
  }

  /** The class that users know. */
  protected static sandboxes(): typeof Sandbox {
    return Sandbox
  }

  get id(): string {
    return this.#info.id
  }

  /** So many are kept ready. */
  get size(): number {
    return this.#info.size
  }

  /** So many are there at most. */
  get max(): number {
    return this.#info.max
  }

  /** A sandbox that nobody has used. Its id, its lifetime and what it is called begin now. Waits when there are as many as there may be; 'busy' when too many wait. */
  async acquire(options: AcquireOptions = {}): Promise<Sandbox> {
    const { signal, onRequest, ...claim } = checkCallOptions(options, ['signal', 'onRequest', 'name', 'agent', 'metadata'])
    const { id } = await this.#platform.pools.acquire(this.id, claim, { ...callOptions(signal), ...(onRequest !== undefined && { onRequest }) })
    const Own = this.constructor as typeof SandboxPool
    const sandbox = await Own.sandboxes().connect(id, { platform: this.#platform })
    this.#handed.add(sandbox)
    return sandbox
  }

  /** Closes it, as its own `close()` does: another is made in its place. */
  async release(sandbox: Sandbox): Promise<void> {
    if (!(sandbox instanceof Sandbox)) throw new SandboxError('invalid', `sandbox: expected one of this pool, got ${kindOf(sandbox)}`)
    if (!this.#handed.has(sandbox)) throw new SandboxError('invalid', `sandbox: ${sandbox.id} is not of this pool`)
    await sandbox.close()
  }

  /** Runs a command in a sandbox of its own. As `sandbox.run()`; nobody waits until the sandbox is closed. */
  run(command: Command, options: PoolRunOptions = {}): OneShotRun {
    return runInPool(command, options, { platform: this.#platform, id: this.id })
  }

  /** Runs code in a sandbox of its own. */
  code(source: string, options: PoolCodeOptions = {}): OneShotCodeRun {
    return codeInPool(source, options, { platform: this.#platform, id: this.id })
  }

  async status(options: CallOptions = {}): Promise<PoolStatus> {
    return this.#platform.pools.status(this.id, checkCallOptions(options))
  }

  /** Ends everything in it, what is in use too; resolves when nothing is left. Closing twice is quiet. */
  async close(): Promise<void> {
    await this.#platform.pools.close(this.id)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}

function apart(options: Omit<PoolOptions, 'platform' | 'signal'>): readonly [PoolInput, SpecInput] {
  const isSetting = ([name]: readonly [string, unknown]): boolean => (settingNames as readonly string[]).includes(name)
  const entries = Object.entries(options)
  return [Object.fromEntries(entries.filter(isSetting)), Object.fromEntries(entries.filter((each) => !isSetting(each)))]
}
