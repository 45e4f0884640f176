/** OpenTelemetry, loaded only where spans are asked for: none of its packages is needed by anyone else. */
import type * as Api from '@opentelemetry/api'
import type * as Exporters from '@opentelemetry/exporter-trace-otlp-http'
import type * as Resources from '@opentelemetry/resources'
import type * as Sdk from '@opentelemetry/sdk-trace-node'
import { SandboxError } from '../contract/errors.js'
import { Spans } from './spans.js'

/** In the versions that go together. */
const packages = ['@opentelemetry/api@1.9', '@opentelemetry/sdk-trace-node@2', '@opentelemetry/exporter-trace-otlp-http@0.223', '@opentelemetry/resources@2']

export interface TracingOptions {
  /** Where spans are sent, as OTLP over HTTP: `http://127.0.0.1:4318`. */
  readonly endpoint: string
  readonly service?: string
  /** Loads a package; that of Node unless given. */
  readonly load?: (name: string) => Promise<unknown>
}

export interface Tracing extends AsyncDisposable {
  readonly spans: Spans
  /** What is done belongs to the trace that a request names in its headers (`traceparent`), if it does. */
  within<Result>(headers: Readonly<Record<string, unknown>>, act: () => Result): Result
  /** Resolves when all spans that have ended were sent. */
  flush(): Promise<void>
}

/** Throws SandboxError('unsupported') naming the package that is not installed. */
export async function openTracing({ endpoint, service = 'glovebox', load = loadPackage }: TracingOptions): Promise<Tracing> {
  const api = (await found('@opentelemetry/api', load)) as typeof Api
  const sdk = (await found('@opentelemetry/sdk-trace-node', load)) as typeof Sdk
  const { OTLPTraceExporter } = (await found('@opentelemetry/exporter-trace-otlp-http', load)) as typeof Exporters
  const { resourceFromAttributes } = (await found('@opentelemetry/resources', load)) as typeof Resources
  const provider = new sdk.NodeTracerProvider({
    resource: resourceFromAttributes({ 'service.name': service }),
    spanProcessors: [new sdk.BatchSpanProcessor(new OTLPTraceExporter({ url: tracesUrl(endpoint) }))],
  })
  provider.register()
  return {
    spans: new Spans({ ...api, trace: { getTracer: (name) => provider.getTracer(name), setSpan: (context, span) => api.trace.setSpan(context, span) } }),
    within: (headers, act) => api.context.with(extracted(api, headers), act),
    flush: () => provider.forceFlush(),
    [Symbol.asyncDispose]: async () => {
      await provider.shutdown()
      api.trace.disable()
      api.context.disable()
      api.propagation.disable()
    },
  }
}

type Carrier = Readonly<Record<string, unknown>>

const getter: Parameters<Api.TextMapPropagator<Carrier>['extract']>[2] = {
  keys: (carrier) => Object.keys(carrier),
  get: (carrier, key) => {
    const value = carrier[key]
    return typeof value === 'string' ? value : undefined
  },
}

function extracted(api: typeof Api, headers: Carrier): Api.Context {
  return api.propagation.extract(api.ROOT_CONTEXT, headers, getter)
}

function tracesUrl(endpoint: string): string {
  const path = '/v1/traces'
  return endpoint.endsWith(path) ? endpoint : `${endpoint.replace(/\/+$/, '')}${path}`
}

/** By a name that no bundler follows. */
function loadPackage(name: string): Promise<unknown> {
  return import(name)
}

async function found(name: string, load: (name: string) => Promise<unknown>): Promise<unknown> {
  try {
    return await load(name)
  } catch (cause) {
    throw new SandboxError('unsupported', `spans are asked for, and ${name} cannot be loaded`, { hint: `npm install ${packages.join(' ')}`, cause })
  }
}
