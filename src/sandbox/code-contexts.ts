import { checkCallOptions } from '../contract/call-options.js'
import type { ContextInfo, ContextRequest, PlatformCode } from '../contract/code.js'
import type { CallOptions } from '../contract/platform.js'
import { idOf } from './code-options.js'

export type ContextOptions = ContextRequest & CallOptions

/** The contexts of one sandbox. */
export class Contexts {
  readonly #code: PlatformCode
  readonly #id: string

  constructor(code: PlatformCode, id: string) {
    this.#code = code
    this.#id = id
  }

  /** An interpreter of its own, with its own memory and working folder. Resolves when it is there. */
  async create(options: ContextOptions = {}): Promise<ContextInfo> {
    const { signal, ...request } = checkCallOptions(options, ['signal', 'language', 'cwd', 'env', 'name'])
    return this.#code.createContext(this.#id, request, signal === undefined ? {} : { signal })
  }

  async list(options: CallOptions = {}): Promise<readonly ContextInfo[]> {
    return this.#code.listContexts(this.#id, checkCallOptions(options))
  }

  /** A new interpreter without the old one's memory; what runs and waits in it ends as `crashed`. */
  async restart(context: string | Pick<ContextInfo, 'id'>, options: CallOptions = {}): Promise<ContextInfo> {
    return this.#code.restartContext(this.#id, idOf(context), checkCallOptions(options))
  }

  /** False when there was none. */
  async remove(context: string | Pick<ContextInfo, 'id'>, options: CallOptions = {}): Promise<boolean> {
    return this.#code.removeContext(this.#id, idOf(context), checkCallOptions(options))
  }

  /** Which languages there are in it, each with its version, or why not. */
  async languages(options: CallOptions = {}): ReturnType<PlatformCode['languages']> {
    return this.#code.languages(this.#id, checkCallOptions(options))
  }
}
