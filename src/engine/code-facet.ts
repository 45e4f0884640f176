import { checkCallOptions, unlessAborted } from '../contract/call-options.js'
import type { CodeRequest, ContextInfo, ContextRequest, Language, PlatformCode, PlatformExecution } from '../contract/code.js'
import type { CallOptions } from '../contract/platform.js'
import { SandboxCode } from './code-contexts.js'
import { Runtimes, type RuntimeSource } from './code-runtimes.js'
import type { LiveSandbox } from './live-sandbox.js'

/** Code in sandboxes, found by their ids. */
export class CodeFacet implements PlatformCode {
  readonly #find: (id: string) => Promise<LiveSandbox>
  readonly #runtimes: Runtimes
  /** For as long as there is the sandbox. */
  readonly #codes = new WeakMap<LiveSandbox, SandboxCode>()

  constructor(find: (id: string) => Promise<LiveSandbox>, source: () => RuntimeSource) {
    this.#find = find
    this.#runtimes = new Runtimes(source)
  }

  /** For the engine itself: the interpreter of a sandbox that nobody has yet. */
  async begin(sandbox: LiveSandbox, language: Language): ReturnType<SandboxCode['begin']> {
    return sandbox.asked(() => this.#codeOf(sandbox).begin(language))
  }

  async languages(id: string, options: CallOptions = {}): ReturnType<PlatformCode['languages']> {
    return this.#ask(id, options, (code) => code.languages())
  }

  async execute(id: string, request: CodeRequest, options: CallOptions = {}): Promise<PlatformExecution> {
    const { signal } = options
    return this.#ask(id, options, (code) => code.execute(request, signal))
  }

  async createContext(id: string, request: ContextRequest = {}, options: CallOptions = {}): Promise<ContextInfo> {
    const { signal } = options
    return this.#ask(id, options, (code) => code.create(request, signal))
  }

  async listContexts(id: string, options: CallOptions = {}): Promise<readonly ContextInfo[]> {
    return this.#ask(id, options, (code) => Promise.resolve(code.list()))
  }

  async restartContext(id: string, context: string, options: CallOptions = {}): Promise<ContextInfo> {
    return this.#ask(id, options, (code) => code.restart(context))
  }

  async removeContext(id: string, context: string, options: CallOptions = {}): Promise<boolean> {
    return this.#ask(id, options, (code) => code.remove(context))
  }

  async #ask<T>(id: string, options: CallOptions, ask: (code: SandboxCode) => Promise<T>): Promise<T> {
    const { signal } = checkCallOptions(options)
    signal?.throwIfAborted()
    const sandbox = await this.#find(id)
    return unlessAborted(
      sandbox.asked(() => ask(this.#codeOf(sandbox))),
      signal,
    )
  }

  #codeOf(sandbox: LiveSandbox): SandboxCode {
    const known = this.#codes.get(sandbox) ?? new SandboxCode(sandbox, this.#runtimes)
    this.#codes.set(sandbox, known)
    return known
  }
}
