import { checkCallOptions } from '../contract/call-options.js'
import { SandboxError } from '../contract/errors.js'
import type { CallOptions } from '../contract/platform.js'
import type { Forward, ForwardOptions, LoopbackConnection, LoopbackListener, PlatformPorts, PortConnection, PortUrlOptions } from '../contract/ports.js'
import type { Wire } from './wire.js'

const mostConnections = 256

export class ClientPorts implements PlatformPorts {
  readonly #wire: Wire

  constructor(wire: Wire) {
    this.#wire = wire
  }

  async forward(id: string, port: number, options: ForwardOptions = {}): Promise<Forward> {
    const { signal, port: hostPort, waitFor } = checkCallOptions(options, ['signal', 'port', 'waitFor'])
    const listen = this.#wire.transport.listen?.bind(this.#wire.transport)
    if (!listen) throw new SandboxError('unsupported', 'ports.forward: nothing can listen here; an address of the server leads there', { hint: 'ports.url' })
    checkPort(port, 'port')
    if (hostPort !== undefined) checkPort(hostPort, 'options.port')
    await this.waitFor(id, port, { ...(signal && { signal }), ...(waitFor !== undefined && { timeout: waitFor }) })
    const forward = new RemoteForward({ target: port, connect: () => this.connect(id, port) })
    await forward.listen((onConnection) => listen({ port: hostPort, mostConnections, onConnection }))
    void this.#closeWith(id, forward)
    if (signal?.aborted) await forward.close()
    signal?.throwIfAborted()
    return forward
  }

  async waitFor(id: string, port: number, options: CallOptions & { readonly timeout?: number | string } = {}): Promise<void> {
    const { signal, timeout } = checkCallOptions(options, ['signal', 'timeout'])
    checkPort(port, 'port')
    if (timeout === 0) await this.#wire.call('sandboxes.get', { params: { id }, signal })
    else await this.#wire.call('ports.wait', { params: { id, port: String(port) }, body: { timeout }, what: 'timeout', signal })
  }

  async connect(id: string, port: number, options: CallOptions = {}): Promise<PortConnection> {
    const { signal } = checkCallOptions(options)
    checkPort(port, 'port')
    return this.#wire.tunnel('ports.tunnel', { params: { id, port: String(port) }, signal })
  }

  async url(id: string, port: number, options: PortUrlOptions = {}): Promise<string> {
    const { signal, expires } = checkCallOptions(options, ['signal', 'expires'])
    return (await this.#wire.call('urls.sign', { params: { id }, body: { port, expires }, signal })).url
  }

  async #closeWith(id: string, forward: RemoteForward): Promise<void> {
    const over = new AbortController()
    void forward.closed.then(() => over.abort())
    try {
      const stream = await this.#wire.stream('sandboxes.events', { params: { id } })
      stream.unref()
      over.signal.addEventListener('abort', () => void stream.leave(), { once: true })
      if (over.signal.aborted) await stream.leave()
      for await (const event of stream.all<{ readonly type: string }>()) if (event.type === 'closed') break
    } catch {
      // A sandbox that cannot be asked about any more has nothing to forward to.
    } finally {
      await forward.close()
    }
  }
}

/** Before anything is waited for. */
function checkPort(port: unknown, field: string): void {
  if (Number.isInteger(port) && (port as number) >= 1 && (port as number) <= 65_535) return
  throw new SandboxError('invalid', `${field}: expected a whole number from 1 to 65535`)
}

interface ForwardOrder {
  readonly target: number
  connect(): Promise<PortConnection>
}

type Listen = (onConnection: (connection: LoopbackConnection) => void) => Promise<LoopbackListener>

class RemoteForward implements Forward {
  readonly host = '127.0.0.1'
  readonly target: number
  readonly closed: Promise<void>
  readonly #order: ForwardOrder
  readonly #inner = new Set<PortConnection>()
  readonly #carried = new Set<Promise<void>>()
  #listener: LoopbackListener | undefined
  #closing: Promise<void> | undefined
  #onClosed!: () => void

  constructor(order: ForwardOrder) {
    this.#order = order
    this.target = order.target
    this.closed = new Promise((resolve) => {
      this.#onClosed = resolve
    })
  }

  get port(): number {
    return this.#listener?.port ?? 0
  }

  get url(): string {
    return `http://${this.host}:${this.port}`
  }

  async listen(listen: Listen): Promise<void> {
    this.#listener = await listen((outer) => {
      const carried = this.#carry(outer)
      this.#carried.add(carried)
      void carried.then(() => this.#carried.delete(carried))
    })
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #close(): Promise<void> {
    this.#onClosed()
    await this.#listener?.close()
    for (const inner of this.#inner) void inner.destroy().catch(() => undefined)
    await Promise.all(this.#carried)
  }

  async #carry(outer: LoopbackConnection): Promise<void> {
    let inner: PortConnection | undefined
    try {
      inner = await this.#order.connect()
      this.#inner.add(inner)
      if (this.#closing) throw new SandboxError('closed', 'the forward was closed')
      await Promise.all([pump(outer.input, inner), pump(inner.output, outer)])
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

async function pump(source: AsyncIterable<Uint8Array>, sink: Pick<LoopbackConnection, 'write' | 'end'>): Promise<void> {
  for await (const bytes of source) await sink.write(bytes)
  await sink.end()
}
