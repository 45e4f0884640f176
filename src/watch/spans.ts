/**
 * Spans around what is created and run, and of each connection that left a sandbox. They carry ids, drivers and outcomes; never a command, code, a variable, or what
 * follows the host in an address. The interface is that of @opentelemetry/api and is handed in: nothing here needs it to be installed.
 */
import type { Attributes, Context, Span, SpanKind, SpanStatusCode, Tracer } from '@opentelemetry/api'
import { SandboxError } from '../contract/errors.js'
import type { PlatformEvents } from '../contract/events.js'
import type { NetworkRecord } from '../contract/network.js'
import type { SandboxInfo } from '../contract/platform.js'

/** What is used of @opentelemetry/api. */
export interface TracingInterface {
  readonly trace: { getTracer(name: string): Tracer; setSpan(context: Context, span: Span): Context }
  readonly context: { active(): Context }
  readonly ROOT_CONTEXT: Context
}

/** As the specification numbers them. */
// eslint-disable-next-line @typescript-eslint/no-unsafe-enum-assignment -- the enum itself is in a package that need not be there
const errorStatus: SpanStatusCode.ERROR = 2
// eslint-disable-next-line @typescript-eslint/no-unsafe-enum-assignment -- the enum itself is in a package that need not be there
const clientKind: SpanKind.CLIENT = 2

/** Those of which something ran last. */
const mostSandboxes = 4096

export class Spans {
  readonly #api: TracingInterface
  readonly #tracer: Tracer
  /** What connections out of a sandbox belong to: what ran in it last. */
  readonly #latest = new Map<string, Span>()

  constructor(api: TracingInterface) {
    this.#api = api
    this.#tracer = api.trace.getTracer('glovebox')
  }

  /** Within whatever is going on. */
  begin(name: string, attributes: Attributes): WatchedSpan {
    return new WatchedSpan(this.#tracer.startSpan(name, { attributes }, this.#api.context.active()), (sandbox, span) => this.#remember(sandbox, span))
  }

  /** Each connection becomes a span when it is over, until the platform is or the signal aborts. */
  async follow(events: PlatformEvents, signal?: AbortSignal): Promise<void> {
    try {
      for await (const event of events.listen({ types: ['denied', 'connected', 'closed'], ...(signal && { signal }) })) {
        if (event.type === 'closed') this.#latest.delete(event.sandbox)
        else if (event.type === 'denied' || event.type === 'connected') this.#connection(event.attempt)
      }
    } catch (error) {
      if (!signal?.aborted) throw error
    }
  }

  #connection(record: NetworkRecord): void {
    const { sandbox, host, port, scheme, verdict, method, status, bytesUp, bytesDown, durationMs, time } = record
    const parent = this.#latest.get(sandbox)
    const context = parent ? this.#api.trace.setSpan(this.#api.ROOT_CONTEXT, parent) : this.#api.ROOT_CONTEXT
    const begin = Date.parse(time)
    const attributes = {
      'glovebox.sandbox': sandbox,
      'glovebox.verdict': verdict,
      'glovebox.bytes.up': bytesUp,
      'glovebox.bytes.down': bytesDown,
      'server.address': host,
      'server.port': port,
      'network.protocol.name': scheme,
      ...(method !== undefined && { 'http.request.method': method }),
      ...(status !== undefined && { 'http.response.status_code': status }),
    }
    const span = this.#tracer.startSpan('glovebox.egress', { kind: clientKind, startTime: begin, attributes }, context)
    if (verdict !== 'allowed') span.setStatus({ code: errorStatus, message: verdict })
    span.end(begin + durationMs)
  }

  #remember(sandbox: string, span: Span): void {
    this.#latest.delete(sandbox)
    this.#latest.set(sandbox, span)
    for (const oldest of this.#latest.keys()) {
      if (this.#latest.size <= mostSandboxes) break
      this.#latest.delete(oldest)
    }
  }
}

export class WatchedSpan {
  readonly #span: Span
  readonly #remember: (sandbox: string, span: Span) => void

  constructor(span: Span, remember: (sandbox: string, span: Span) => void) {
    this.#span = span
    this.#remember = remember
  }

  /** What it made. */
  of({ id, driver, tier, pool, spec }: SandboxInfo): void {
    this.#span.setAttributes({
      'glovebox.sandbox': id,
      'glovebox.driver': driver,
      'glovebox.tier': tier,
      'glovebox.pool': pool ?? 'none',
      'glovebox.template': spec.template,
    })
  }

  /** What goes out of this sandbox from now on belongs to it. */
  in(sandbox: string): void {
    this.#remember(sandbox, this.#span)
  }

  end(attributes: Attributes = {}): void {
    this.#span.setAttributes(attributes).end()
  }

  fail(error: unknown): void {
    const code = error instanceof SandboxError ? error.code : 'other'
    this.#span.setAttribute('error.type', code).setStatus({ code: errorStatus, message: code }).end()
  }
}
