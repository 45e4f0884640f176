import { checkCallOptions } from '../contract/call-options.js'
import { keepsMemorySchema, type PauseOptions, type PlatformLife, type SandboxEvent } from '../contract/lifetimes.js'
import type { CallOptions, SandboxInfo } from '../contract/platform.js'
import { parseWith } from '../policy/refusal.js'
import type { LiveSandbox } from './live-sandbox.js'

export type FindSandbox = (id: string) => Promise<LiveSandbox>

/** How sandboxes live, as the platform's doors see it. */
export class LifeFacet implements PlatformLife {
  readonly #find: FindSandbox

  constructor(find: FindSandbox) {
    this.#find = find
  }

  async pause(id: string, options: PauseOptions = {}): Promise<SandboxInfo> {
    const { signal, memory } = checkCallOptions(options, ['signal', 'memory'])
    signal?.throwIfAborted()
    const keepsMemory = parseWith(keepsMemorySchema, memory, 'memory')
    const sandbox = await this.#find(id)
    await sandbox.asked(() => sandbox.life.pause({ keeps: keepsMemory ? 'memory' : 'files' }))
    return sandbox.info
  }

  async resume(id: string, options: CallOptions = {}): Promise<SandboxInfo> {
    checkCallOptions(options).signal?.throwIfAborted()
    const sandbox = await this.#find(id)
    await sandbox.asked(() => sandbox.life.resume())
    return sandbox.info
  }

  async extend(id: string, duration: number | string, options: CallOptions = {}): Promise<SandboxInfo> {
    checkCallOptions(options).signal?.throwIfAborted()
    const sandbox = await this.#find(id)
    sandbox.life.extend(duration)
    return sandbox.info
  }

  async setLifetime(id: string, duration: number | string, options: CallOptions = {}): Promise<SandboxInfo> {
    checkCallOptions(options).signal?.throwIfAborted()
    const sandbox = await this.#find(id)
    sandbox.life.setLifetime(duration)
    return sandbox.info
  }

  events(id: string, options: CallOptions = {}): AsyncIterable<SandboxEvent> {
    const { signal } = checkCallOptions(options)
    // Sought at once, so that nothing is missed between the call and the first time that it is read.
    const found = this.#find(id).then((sandbox) => sandbox.life.events.listen(signal))
    found.catch(() => undefined)
    return {
      async *[Symbol.asyncIterator]() {
        signal?.throwIfAborted()
        yield* await found
      },
    }
  }
}
