/**
 * Connections to the host's loopback that are carried into a cell.
 *
 * Each direction is a pump of its own, which reads no further before the other side took what it read: so neither side is held in memory, and the
 * end of one direction leaves the other open. What breaks off on one side breaks off on the other.
 */
import type { WardenConnection } from '../channel/index.js'
import { SandboxError } from '../contract/errors.js'
import type { Forward, LoopbackConnection, LoopbackListener } from '../contract/ports.js'

export interface ForwardOrder {
  /** In the cell. */
  readonly target: number
  /** Rejects when nothing listens there, nothing can be reached, or the signal aborts. */
  connect(port: number, signal: AbortSignal): Promise<WardenConnection>
  /** Bytes went through. */
  readonly onTraffic: () => void
  onClosed(): void
}

export class PortForward implements Forward {
  readonly host = '127.0.0.1'
  readonly target: number
  readonly #order: ForwardOrder
  readonly #carried = new Set<Promise<void>>()
  readonly #inner = new Set<WardenConnection>()
  #listener: LoopbackListener | undefined
  readonly #connecting = new Set<AbortController>()
  #closing: Promise<void> | undefined

  constructor(order: ForwardOrder) {
    this.#order = order
    this.target = order.target
  }

  /** Handed in once, before anyone gets this. */
  set listener(listener: LoopbackListener) {
    this.#listener = listener
  }

  get port(): number {
    return this.#listener?.port ?? 0
  }

  get url(): string {
    return `http://${this.host}:${this.port}`
  }

  carry(outer: LoopbackConnection): void {
    const carried = this.#carry(outer)
    this.#carried.add(carried)
    void carried.then(() => this.#carried.delete(carried))
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #close(): Promise<void> {
    this.#order.onClosed()
    for (const controller of this.#connecting) controller.abort()
    await this.#listener?.close()
    for (const inner of this.#inner) void inner.destroy().catch(() => undefined)
    await Promise.all(this.#carried)
  }

  async #connect(): Promise<WardenConnection> {
    const controller = new AbortController()
    this.#connecting.add(controller)
    try {
      return await this.#order.connect(this.target, controller.signal)
    } finally {
      this.#connecting.delete(controller)
    }
  }

  async #carry(outer: LoopbackConnection): Promise<void> {
    let inner: WardenConnection | undefined
    try {
      inner = await this.#connect()
      this.#inner.add(inner)
      if (this.#closing) throw new SandboxError('closed', 'the forward was closed')
      const { onTraffic } = this.#order
      await Promise.all([pump(outer.input, inner, onTraffic), pump(inner.output, outer, onTraffic)])
      await Promise.all([inner.closed, outer.closed])
    } catch {
      // After an end in order this would take away what the other side has not read yet.
      outer.destroy()
      await inner?.destroy().catch(() => undefined)
    } finally {
      if (inner) this.#inner.delete(inner)
    }
  }
}

type Sink = Pick<LoopbackConnection, 'write' | 'end'>

async function pump(source: AsyncIterable<Uint8Array>, sink: Sink, onTraffic: () => void): Promise<void> {
  for await (const bytes of source) {
    onTraffic()
    await sink.write(bytes)
  }
  await sink.end()
}
