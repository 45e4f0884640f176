import { callOptionsRefusal, checkCallOptions } from '../contract/call-options.js'
import { SandboxError } from '../contract/errors.js'
import { kindOf } from '../contract/plain-object.js'
import type { PauseOptions } from '../contract/lifetimes.js'
import type { LimitsInput } from '../contract/limits.js'
import type { CallOptions, Platform, SandboxFilter, SandboxInfo, SandboxUsage } from '../contract/platform.js'
import type { CreationOptions } from '../contract/platform-network.js'
import type { Forward, ForwardOptions } from '../contract/ports.js'
import type { AttachOptions, ProcessInfo, ProcessName } from '../contract/processes.js'
import type { Receipt } from '../contract/receipt.js'
import type { Command, RunRequest, TerminalSize } from '../contract/run.js'
import type { Change, ForkOptions, SinceOptions, SnapshotInfo, TakeOptions } from '../contract/snapshots.js'
import type { SpecInput } from '../contract/spec.js'
import type { LocalFiles } from '../contract/transfer.js'
import type { CodeRun } from './code.js'
import { Contexts } from './code-contexts.js'
import type { CodeOptions } from './code-options.js'
import { codeOnce, type OneShotCodeRun, type OneShotOptions, runInSandbox } from './code-starts.js'
import { EventListeners, type SandboxEventOf, type SandboxEventType } from './events.js'
import { SandboxFiles } from './files.js'
import { chunksOf, type InputSource } from './input.js'
import { type InstallOptions, installPackages } from './install.js'
import { SandboxNetwork } from './network.js'
import { runOptionsRefusal, runRequest, spawnFields, terminalFields, withOwnNames } from './own-options.js'
import { callOptions, checkPlatform, platformOf } from './platform-check.js'
import { type OneShotRun, runOnce, type RunOnceOptions } from './pool-runs.js'
import { Previews } from './ports.js'
import { Process } from './process.js'
import { Run, type RunOrder } from './run.js'
import { ShellCommand, shellCommand, type ShellWord } from './shell-template.js'
import { SandboxSnapshots, type SnapshotShelf } from './snapshots.js'
import { Terminal } from './terminal.js'

export interface PlatformOptions extends CallOptions {
  /** Where the sandbox lives; the default platform of this process when not given. */
  readonly platform?: Platform
}

export interface ConnectOptions extends PlatformOptions {
  /** Resumes it when it is paused. */
  readonly resume?: boolean
}

export type CreateOptions = SpecInput & PlatformOptions & CreationOptions

interface ProgramOptions extends CallOptions, Pick<RunRequest, 'cwd' | 'env' | 'user' | 'timeout' | 'limits'> {
  /** What the program reads; when not given, nothing for a run, and what is written to its `stdin` for a process. */
  readonly stdin?: InputSource
}

/** `signal` is for the start: once the process is there, it is ended by `kill()`. */
export interface SpawnOptions extends ProgramOptions, Pick<RunRequest, 'tag'> {}

/** 80 by 24 unless given. */
export interface TerminalOptions extends Omit<SpawnOptions, 'stdin'>, Partial<TerminalSize> {
  /** A shell when not given: bash, or where there is none sh. */
  readonly command?: Command
}

export interface RunOptions extends ProgramOptions {
  /** What a captured run may print, stdout and stderr together; may lower the sandbox's `limits.output`. */
  readonly output?: string | number
  /** `kill` (the default) ends the run with outcome `output-limit`; `truncate` lets it go on and drops the rest. */
  readonly onOutputLimit?: 'kill' | 'truncate'
}

/** What users hold: one sandbox on some platform. */
export class Sandbox implements AsyncDisposable {
  readonly id: string
  readonly driver: string
  readonly files: SandboxFiles
  readonly network: SandboxNetwork
  /** The interpreters in it that keep their memory from one execution to the next. */
  readonly contexts: Contexts
  readonly #platform: Platform
  readonly #listeners: EventListeners
  readonly #previews: Previews
  readonly #snapshots: SandboxSnapshots

  protected constructor(platform: Platform, info: SandboxInfo) {
    this.#platform = platform
    this.id = info.id
    this.#listeners = new EventListeners((signal) => platform.life.events(info.id, { signal }))
    this.#previews = new Previews((port, options) => this.forward(port, options))
    this.#snapshots = new SandboxSnapshots(platform, info.id)
    this.driver = info.driver
    this.network = new SandboxNetwork(platform.network, info.id)
    this.contexts = new Contexts(platform.code, info.id)
    this.files = new SandboxFiles({ files: platform.files.of(info.id), local: new.target.localFiles() })
  }

  static async create(options: CreateOptions = {}): Promise<Sandbox> {
    const refusal = callOptionsRefusal(options, 'spec')
    if (refusal) throw refusal
    const { platform, signal, onRequest, ...spec } = options
    const place = checkPlatform(platform) ?? this.defaultPlatform()
    return new this(place, await place.create(spec, { ...callOptions(signal), ...(onRequest !== undefined && { onRequest }) }))
  }

  /** A handle on a sandbox that exists. */
  static async connect(id: string, options: ConnectOptions = {}): Promise<Sandbox> {
    const { platform, resume, signal } = checkCallOptions(options, ['signal', 'platform', 'resume'])
    if (resume !== undefined && typeof resume !== 'boolean') throw new SandboxError('invalid', `resume: expected true or false, got ${kindOf(resume)}`)
    const place = checkPlatform(platform) ?? this.defaultPlatform()
    return new this(place, await (resume ? place.life.resume(id, callOptions(signal)) : place.info(id, callOptions(signal))))
  }

  static list(filter?: SandboxFilter, options: PlatformOptions = {}): AsyncIterable<SandboxInfo> {
    return (platformOf(options) ?? this.defaultPlatform()).list(filter, callOptions(options.signal))
  }

  /** Closes all that match, without a filter all there are, and tells how many. */
  static async closeAll(filter?: SandboxFilter, options: Pick<PlatformOptions, 'platform'> = {}): Promise<number> {
    return (platformOf(options) ?? this.defaultPlatform()).closeAll(filter)
  }

  /** Runs a command in a sandbox of its own, of which nothing is left for anyone else; such are kept ready once they are asked for again and again. */
  static run(command: Command, options: RunOnceOptions = {}): OneShotRun {
    return runOnce(command, options, () => this.defaultPlatform())
  }

  /** The same with code. */
  static code(source: string, options: OneShotOptions = {}): OneShotCodeRun {
    return codeOnce(source, options, () => this.defaultPlatform())
  }

  /** Every snapshot there is, and a way to be rid of it. */
  static snapshots(options: Pick<PlatformOptions, 'platform'> = {}): SnapshotShelf {
    return (platformOf(options) ?? this.defaultPlatform()).snapshots
  }

  /** The same of this machine's own files. */
  protected static localFiles(): LocalFiles | undefined {
    return undefined
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
    const driver = (): string => this.driver
    if (refusal) return new Run({ driver, stdin: undefined, start: () => Promise.reject(refusal) })
    const { signal, stdin } = options
    const start: RunOrder['start'] = (mode) => this.#platform.start(this.id, runRequest(command, options, mode), callOptions(signal))
    return new Run({ driver, stdin, start: (mode) => withOwnNames(() => start(mode), { 'output.limit': 'output' }) })
  }

  /**
   * Runs code in a context, which keeps its variables, imports and functions for the next. Starts at once, or when those asked for before it in the same context are
   * over. Await it for the execution, which is one also when the code fails, or iterate it for output and results as they come.
   */
  code(source: string, options: CodeOptions = {}): CodeRun {
    return runInSandbox(source, options, { platform: this.#platform, id: this.id, files: this.files })
  }

  /** Starts a program that is kept; `limits.time` is for runs, so it is bounded by its own `timeout` and the sandbox's lifetime. */
  async spawn(command: Command, options: SpawnOptions = {}): Promise<Process> {
    const { signal, stdin, ...rest } = checkCallOptions(options, spawnFields)
    const source = stdin === undefined ? undefined : chunksOf(stdin)
    const program = await this.#platform.start(this.id, { ...rest, command, stdin: true, background: true }, callOptions(signal))
    return new Process(program, { command, source })
  }

  /** A program in a terminal of its own, kept as a process is. */
  async terminal(options: TerminalOptions = {}): Promise<Terminal> {
    const { signal, cols = 80, rows = 24, command = anyShell, ...rest } = checkCallOptions(options, terminalFields)
    const request = { ...rest, command, stdin: true, background: true, terminal: { cols, rows } }
    return new Terminal(
      await withOwnNames(() => this.#platform.start(this.id, request, callOptions(signal)), { 'terminal.cols': 'cols', 'terminal.rows': 'rows' }),
    )
  }

  /** Another view of a process that is kept, by its pid or tag: of what it prints from now on, or with `replay` of all that is still held. */
  async attach(process: ProcessName, options: AttachOptions = {}): Promise<Process> {
    return new Process(await this.#platform.processes.attach(this.id, process, checkCallOptions(options, ['signal', 'replay', 'follow'])))
  }

  /** The processes that are kept, and the latest of them that have ended. */
  async processes(options: CallOptions = {}): Promise<readonly ProcessInfo[]> {
    return this.#platform.processes.list(this.id, checkCallOptions(options))
  }

  /**
   * A command of the cell's shell, each value in it one word whatever it holds: `await sandbox.$\`ls ${folder}\``. An array is a word for each of its
   * items. Rejects with CommandError unless it exits with 0.
   */
  $(template: TemplateStringsArray, ...values: readonly ShellWord[]): ShellCommand {
    return new ShellCommand(
      () => shellCommand(template, values),
      (command, options) => this.run(command, options),
    )
  }

  /** Packages of Python or npm, by its own network: what that does not allow is refused, and the error says what to allow. */
  async install(packages: readonly string[], options: InstallOptions = {}): Promise<void> {
    await installPackages(this, packages, options)
  }

  /** Its programs stand still and so do its times, until `resume()`. With `memory: false` they end, and only its files and variables are kept. */
  async pause(options: PauseOptions = {}): Promise<SandboxInfo> {
    return this.#platform.life.pause(this.id, checkCallOptions(options, ['signal', 'memory']))
  }

  /** Quiet when it runs. */
  async resume(options: CallOptions = {}): Promise<SandboxInfo> {
    return this.#platform.life.resume(this.id, checkCallOptions(options))
  }

  /** It lives at least so long from now; never shortens. */
  async extend(duration: number | string, options: CallOptions = {}): Promise<SandboxInfo> {
    return this.#platform.life.extend(this.id, duration, checkCallOptions(options))
  }

  /** It lives so long from now, longer or shorter than before. */
  async setLifetime(duration: number | string, options: CallOptions = {}): Promise<SandboxInfo> {
    return this.#platform.life.setLifetime(this.id, duration, checkCallOptions(options))
  }

  /** Told from now on of what happens to it, until what this returns is called. What a listener throws is its own affair. Throws when it is known to be closed. */
  on<Type extends SandboxEventType>(type: Type, listener: (event: SandboxEventOf<Type>) => unknown): () => void {
    return this.#listeners.on(type, listener)
  }

  /** A listener on this machine's loopback that leads to a port in the sandbox; waits until something listens there. Closed with the sandbox. */
  async forward(port: number, options: ForwardOptions = {}): Promise<Forward> {
    return this.#platform.ports.forward(this.id, port, checkCallOptions(options, ['signal', 'port', 'waitFor']))
  }

  /** Where a port of it can be reached: forwarded once, then the same again. */
  async url(port: number, options: Omit<ForwardOptions, 'port'> = {}): Promise<string> {
    return this.#previews.url(port, checkCallOptions(options, ['signal', 'waitFor']))
  }

  /** Resolves when something listens on a port in it; rejects with `not-found` when nothing does within `timeout`, 30 s unless given. */
  async waitForPort(port: number, options: CallOptions & { readonly timeout?: number | string } = {}): Promise<void> {
    await this.#platform.ports.waitFor(this.id, port, checkCallOptions(options, ['signal', 'timeout']))
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

  /** Keeps everything that it has written so far, for `Sandbox.create({ from })`. */
  async snapshot(options: TakeOptions = {}): Promise<SnapshotInfo> {
    return this.#snapshots.take(options)
  }

  /** As many new sandboxes that begin with its files as they are now; its programs are not copied, and it stays as it is. All or none. */
  async fork(count = 1, options: ForkOptions = {}): Promise<Sandbox[]> {
    const Own = this.constructor as typeof Sandbox
    return (await this.#snapshots.fork(count, options)).map((info) => new Own(this.#platform, info))
  }

  /** What was added, changed and removed, by content: since a snapshot, or since the template. */
  async diff(options: SinceOptions = {}): Promise<readonly Change[]> {
    return this.#snapshots.diff(options)
  }

  /** The same changes as a tar archive; what was removed is there as `.wh.NAME`. */
  async export(options: SinceOptions = {}): Promise<AsyncIterable<Uint8Array>> {
    return this.#snapshots.export(options)
  }

  /** Ends everything in it; resolves when nothing is left. Closing twice is quiet. */
  async close(): Promise<void> {
    await this.#platform.close(this.id)
    this.#listeners.end(new SandboxError('closed', `sandbox ${this.id} was closed`))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}

const anyShell = 'exec "$(command -v bash || command -v sh)"'
