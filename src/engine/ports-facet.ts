import { checkCallOptions } from '../contract/call-options.js'
import type { CallOptions } from '../contract/platform.js'
import { type Forward, type ForwardOptions, type PlatformPorts, type PortConnection, portSchema, portWaitSchema } from '../contract/ports.js'
import { parseWith } from '../policy/refusal.js'
import type { FindSandbox } from './life-facet.js'

/** The ports of sandboxes, as the platform's doors see them. */
export class PortsFacet implements PlatformPorts {
  readonly #find: FindSandbox

  constructor(find: FindSandbox) {
    this.#find = find
  }

  async forward(id: string, port: number, options: ForwardOptions = {}): Promise<Forward> {
    const { signal, port: hostPort, waitFor } = checkCallOptions(options, ['signal', 'port', 'waitFor'])
    signal?.throwIfAborted()
    const target = parseWith(portSchema, port, 'port')
    const from = hostPort === undefined ? undefined : parseWith(portSchema, hostPort, 'options.port')
    const timeoutMs = parseWith(portWaitSchema, waitFor, 'waitFor')
    const { ports } = await this.#find(id)
    if (timeoutMs > 0) await ports.waitFor(target, { timeoutMs, signal })
    const forward = await ports.forward(target, from)
    if (signal?.aborted) await forward.close()
    signal?.throwIfAborted()
    return forward
  }

  async waitFor(id: string, port: number, options: CallOptions & { readonly timeout?: number | string } = {}): Promise<void> {
    const { signal, timeout } = checkCallOptions(options, ['signal', 'timeout'])
    signal?.throwIfAborted()
    const target = parseWith(portSchema, port, 'port')
    const timeoutMs = parseWith(portWaitSchema, timeout, 'timeout')
    const { ports } = await this.#find(id)
    await ports.waitFor(target, { timeoutMs, signal })
  }

  async connect(id: string, port: number, options: CallOptions = {}): Promise<PortConnection> {
    const { signal } = checkCallOptions(options)
    signal?.throwIfAborted()
    const target = parseWith(portSchema, port, 'port')
    const { ports } = await this.#find(id)
    return ports.connect(target, signal)
  }
}
