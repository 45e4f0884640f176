import { setTimeout as sleep } from 'node:timers/promises'
import type { WardenConnection } from '../channel/index.js'
import { unlessAborted } from '../contract/call-options.js'
import { SandboxError } from '../contract/errors.js'
import { linkSignals } from '../contract/linked-signals.js'
import type { Forward, LoopbackListener, LoopbackOrder, PortConnection } from '../contract/ports.js'
import { durationInUnits } from '../contract/quantities.js'
import { PortForward } from './forward.js'

export interface PortsOrder {
  readonly id: string
  /** Listens on the host's loopback, and nowhere else. */
  listen(order: LoopbackOrder): Promise<LoopbackListener>
  /** To a port of the cell's loopback. */
  connect(port: number): Promise<WardenConnection>
  /** Whether something listens on it in the cell. */
  listens(port: number, signal: AbortSignal | undefined): Promise<boolean>
  /** Rejects when the sandbox is over, or paused. */
  checkOpen(): Promise<void>
  onTraffic(): void
}

const mostForwards = 64
const mostConnections = 256
/** Of all forwards of a sandbox together. */
const mostAtOnce = 512

/** The ports of one sandbox that can be reached from its host. */
export class SandboxPorts {
  readonly #order: PortsOrder
  readonly #forwards = new Set<PortForward>()
  readonly #over = new AbortController()
  #connections = 0

  constructor(order: PortsOrder) {
    this.#order = order
  }

  async forward(target: number, port: number | undefined): Promise<Forward> {
    await this.#order.checkOpen()
    if (this.#forwards.size >= mostForwards)
      throw new SandboxError('busy', `sandbox ${this.#order.id} has ${mostForwards} forwards; no more are allowed at once`)
    const forward = new PortForward({
      target,
      connect: (to, signal) => this.#connect(to, signal),
      onTraffic: () => this.#order.onTraffic(),
      onClosed: () => this.#forwards.delete(forward),
    })
    this.#forwards.add(forward)
    try {
      forward.listener = await this.#order.listen({ port, mostConnections, onConnection: (connection) => forward.carry(connection) })
    } catch (error) {
      this.#forwards.delete(forward)
      throw error
    }
    if (this.#over.signal.aborted) await forward.close()
    await this.#order.checkOpen()
    return forward
  }

  /** Resolves when something listens on the port. */
  async waitFor(port: number, { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal | undefined }): Promise<void> {
    const deadline = performance.now() + timeoutMs
    using until = linkSignals(this.#over.signal, signal)
    for (let waitMs = 10; ; waitMs = Math.min(waitMs * 1.5, 250)) {
      await this.#order.checkOpen()
      signal?.throwIfAborted()
      if (await unlessAborted(this.#order.listens(port, signal), signal)) return
      const restMs = deadline - performance.now()
      if (restMs <= 0)
        throw new SandboxError('not-found', `port: nothing listens on ${port} in sandbox ${this.#order.id} after ${durationInUnits(timeoutMs, Math.round)}`)
      // What ended the wait is told by the next look.
      await sleep(Math.min(waitMs, restMs), undefined, { signal: until.signal }).catch(() => undefined)
    }
  }

  /** One connection that is the caller's own. */
  async connect(port: number, signal: AbortSignal | undefined): Promise<PortConnection> {
    using until = linkSignals(this.#over.signal, signal)
    try {
      const connection = await this.#connect(port, until.signal)
      this.#order.onTraffic()
      return connection
    } catch (error) {
      signal?.throwIfAborted()
      // A sandbox that is over meanwhile says why.
      await this.#order.checkOpen()
      throw error
    }
  }

  /** Every listener and connection; nothing can be forwarded after this. */
  async close(): Promise<void> {
    this.#over.abort()
    await Promise.all([...this.#forwards].map((forward) => forward.close()))
  }

  async #connect(port: number, signal: AbortSignal): Promise<WardenConnection> {
    if (this.#connections >= mostAtOnce) throw new SandboxError('busy', `sandbox ${this.#order.id} has ${mostAtOnce} connections; no more are allowed at once`)
    const connecting = this.#connectCounted(port)
    return unlessAborted(connecting, signal).catch((error: unknown) => {
      // One that comes too late is nobody's.
      void connecting.then((connection) => connection.destroy()).catch(() => undefined)
      throw error
    })
  }

  async #connectCounted(port: number): Promise<WardenConnection> {
    this.#connections += 1
    try {
      await this.#order.checkOpen()
      const connection = await this.#order.connect(port)
      void connection.closed.catch(() => undefined).then(() => (this.#connections -= 1))
      return connection
    } catch (error) {
      this.#connections -= 1
      throw error
    }
  }
}
