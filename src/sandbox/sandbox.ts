import { SandboxError } from '../contract/errors.js'
import type { CallOptions, Platform, SandboxFilter, SandboxInfo } from '../contract/platform.js'
import type { Command, RunRequest } from '../contract/run.js'
import type { SpecInput } from '../contract/spec.js'
import { chunksOf, type InputSource } from './input.js'
import { Process } from './process.js'
import { Run } from './run.js'

export interface PlatformOptions extends CallOptions {
  /** Where the sandbox lives; the default platform of this process when not given. */
  readonly platform?: Platform
}

export type CreateOptions = SpecInput & PlatformOptions

export interface SpawnOptions extends CallOptions, Pick<RunRequest, 'cwd' | 'env' | 'user' | 'timeout'> {
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

  static async create({ platform, signal, ...spec }: CreateOptions = {}): Promise<Sandbox> {
    const place = platform ?? this.defaultPlatform()
    return new this(place, await place.create(spec, callOptions(signal)))
  }

  /** A handle on a sandbox that exists. */
  static async connect(id: string, { platform, signal }: PlatformOptions = {}): Promise<Sandbox> {
    const place = platform ?? this.defaultPlatform()
    return new this(place, await place.info(id, callOptions(signal)))
  }

  static list(filter?: SandboxFilter, { platform, signal }: PlatformOptions = {}): AsyncIterable<SandboxInfo> {
    return (platform ?? this.defaultPlatform()).list(filter, callOptions(signal))
  }

  /** Closes all that match, without a filter all there are, and tells how many. */
  static async closeAll(filter?: SandboxFilter, { platform }: Pick<PlatformOptions, 'platform'> = {}): Promise<number> {
    return (platform ?? this.defaultPlatform()).closeAll(filter)
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
    const { signal, stdin, ...rest } = options
    const source = stdin === undefined ? undefined : chunksOf(stdin)
    const program = await this.#platform.start(this.id, { ...rest, command, stdin: true, background: true }, callOptions(signal))
    return new Process(program, source)
  }

  async info(options: CallOptions = {}): Promise<SandboxInfo> {
    return this.#platform.info(this.id, options)
  }

  /** Ends everything in it; resolves when nothing is left. Closing twice is quiet. */
  async close(): Promise<void> {
    await this.#platform.close(this.id)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}

function callOptions(signal: AbortSignal | undefined): CallOptions {
  return signal === undefined ? {} : { signal }
}
