import { callOptionsRefusal, checkCallOptions } from '../contract/call-options.js'
import { SandboxError } from '../contract/errors.js'
import { kindOf } from '../contract/plain-object.js'
import type { LimitsInput } from '../contract/limits.js'
import type { CallOptions, Platform, SandboxFilter, SandboxInfo, SandboxUsage } from '../contract/platform.js'
import type { Receipt } from '../contract/receipt.js'
import { type Command, onOutputLimit as waysAtLimit, type RunRequest } from '../contract/run.js'
import type { SpecInput } from '../contract/spec.js'
import { chunksOf, type InputSource } from './input.js'
import { Process } from './process.js'
import { Run } from './run.js'

export interface PlatformOptions extends CallOptions {
  /** Where the sandbox lives; the default platform of this process when not given. */
  readonly platform?: Platform
}

export type CreateOptions = SpecInput & PlatformOptions

export interface SpawnOptions extends CallOptions, Pick<RunRequest, 'cwd' | 'env' | 'user' | 'timeout' | 'limits'> {
  /** What the program reads; when not given, nothing for a run, and what is written to its `stdin` for a process. */
  readonly stdin?: InputSource
}

export interface RunOptions extends SpawnOptions {
  /** What a captured run may print, stdout and stderr together; may lower the sandbox's `limits.output`. */
  readonly output?: string | number
  /** `kill` (the default) ends the run with outcome `output-limit`; `truncate` lets it go on and drops the rest. */
  readonly onOutputLimit?: 'kill' | 'truncate'
}

/** What users hold: one sandbox on some platform. */
export class Sandbox implements AsyncDisposable {
  readonly id: string
  readonly driver: string
  readonly #platform: Platform

  protected constructor(platform: Platform, info: SandboxInfo) {
    this.#platform = platform
    this.id = info.id
    this.driver = info.driver
  }

  static async create(options: CreateOptions = {}): Promise<Sandbox> {
    const refusal = callOptionsRefusal(options, 'spec')
    if (refusal) throw refusal
    const { platform, signal, ...spec } = options
    const place = checkPlatform(platform) ?? this.defaultPlatform()
    return new this(place, await place.create(spec, callOptions(signal)))
  }

  /** A handle on a sandbox that exists. */
  static async connect(id: string, options: PlatformOptions = {}): Promise<Sandbox> {
    const place = platformOf(options) ?? this.defaultPlatform()
    return new this(place, await place.info(id, callOptions(options.signal)))
  }

  static list(filter?: SandboxFilter, options: PlatformOptions = {}): AsyncIterable<SandboxInfo> {
    return (platformOf(options) ?? this.defaultPlatform()).list(filter, callOptions(options.signal))
  }

  /** Closes all that match, without a filter all there are, and tells how many. */
  static async closeAll(filter?: SandboxFilter, options: Pick<PlatformOptions, 'platform'> = {}): Promise<number> {
    return (platformOf(options) ?? this.defaultPlatform()).closeAll(filter)
  }

  /** The room that knows of drivers overrides this; here none is known. */
  protected static defaultPlatform(): Platform {
    throw new SandboxError('invalid', 'platform: must be given here')
  }

  /**
   * Runs a command: a string in the cell's shell, an array as it is. Starts at once. Await it for the result, which is one whatever the program's
   * exit code, or iterate it for the output as it comes.
   */
  run(command: Command, options: RunOptions = {}): Run {
    const refusal = runOptionsRefusal(options)
    if (refusal) return new Run({ driver: this.driver, stdin: undefined, start: () => Promise.reject(refusal) })
    const { signal, stdin, output, onOutputLimit, ...rest } = options
    const kept = { ...(output !== undefined && { limit: output }), ...(onOutputLimit !== undefined && { onLimit: onOutputLimit }) }
    return new Run({
      driver: this.driver,
      stdin,
      start: ({ captured }) =>
        this.#platform.start(this.id, { ...rest, command, stdin: stdin !== undefined, ...(captured && { output: kept }) }, callOptions(signal)),
    })
  }

  /** Starts a program that is kept; `limits.time` is for runs, so it is bounded by its own `timeout` and the sandbox's lifetime. */
  async spawn(command: Command, options: SpawnOptions = {}): Promise<Process> {
    const refusal = callOptionsRefusal(options)
    if (refusal) throw refusal
    const { signal, stdin, ...rest } = options
    const source = stdin === undefined ? undefined : chunksOf(stdin)
    const program = await this.#platform.start(this.id, { ...rest, command, stdin: true, background: true }, callOptions(signal))
    return new Process(program, source)
  }

  async info(options: CallOptions = {}): Promise<SandboxInfo> {
    return this.#platform.info(this.id, checkCallOptions(options))
  }

  /** Changes limits while it runs: all that are given, or none when one of them is refused. Runs that have started keep what they alone are held to. */
  async limit(limits: LimitsInput, options: CallOptions = {}): Promise<SandboxInfo> {
    return this.#platform.limit(this.id, limits, checkCallOptions(options))
  }

  /** What it used so far, all its runs together. */
  async usage(options: CallOptions = {}): Promise<SandboxUsage> {
    return this.#platform.usage(this.id, checkCallOptions(options))
  }

  /** The signed record of what is enforced, read from the kernel now, and of what was run. */
  async receipt(options: CallOptions = {}): Promise<Receipt> {
    return this.#platform.receipt(this.id, checkCallOptions(options))
  }

  /** Ends everything in it; resolves when nothing is left. Closing twice is quiet. */
  async close(): Promise<void> {
    await this.#platform.close(this.id)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}

const platformMethods = ['create', 'info', 'list', 'start', 'limit', 'usage', 'receipt', 'close', 'closeAll'] as const

/** Undefined when none was given; what is no platform is refused. */
function platformOf(options: PlatformOptions): Platform | undefined {
  return checkPlatform(checkCallOptions(options, ['signal', 'platform']).platform)
}

function checkPlatform(platform: Platform | undefined): Platform | undefined {
  if (platform === undefined || isPlatform(platform)) return platform
  throw new SandboxError('invalid', `platform: expected a platform, such as createPlatform() makes, got ${kindOf(platform)}`)
}

function isPlatform(value: Partial<Platform> | null): boolean {
  return typeof value === 'object' && value !== null && platformMethods.every((name) => typeof value[name] === 'function')
}

/** The rest is judged by the platform, which knows the sandbox's limits; this one it knows under another name. */
function runOptionsRefusal(options: RunOptions): SandboxError | undefined {
  const refusal = callOptionsRefusal(options)
  if (refusal) return refusal
  const { onOutputLimit } = options
  if (onOutputLimit === undefined || waysAtLimit.includes(onOutputLimit)) return undefined
  return new SandboxError('invalid', `onOutputLimit: expected one of ${waysAtLimit.map((way) => `'${way}'`).join(', ')}`)
}

function callOptions(signal: AbortSignal | undefined): CallOptions {
  return signal === undefined ? {} : { signal }
}
