// Spans as a collector gets them: OTLP over HTTP, sent to a server of this test.
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createPlatform } from '../../src/compose.js'
import type { Platform } from '../../src/contract/platform.js'
import { createFakeDriver } from '../../src/drivers/fake/driver.js'
import { createEventBus } from '../../src/watch/event-bus.js'
import { openTracing, type Tracing } from '../../src/watch/tracing.js'
import { tracingEndpoint } from '../../src/watch/tracing-endpoint.js'
import { watchedPlatform } from '../../src/watch/watched-platform.js'
import { collect, rejectionOf } from '../engine/collect.js'

interface SentSpan {
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly status?: { readonly code?: number; readonly message?: string }
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[]
}

const spec = { driver: 'fake', minTier: 'none' } as const
const sent: SentSpan[] = []
const services = new Set<unknown>()
let collector: Server
let tracing: Tracing
let platform: Platform
let endpoint: string

beforeAll(async () => {
  collector = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => {
      const body = JSON.parse(Buffer.concat(parts).toString()) as {
        resourceSpans: { resource: { attributes: SentSpan['attributes'] }; scopeSpans: { spans: SentSpan[] }[] }[]
      }
      for (const { resource, scopeSpans } of body.resourceSpans) {
        services.add(resource.attributes.find(({ key }) => key === 'service.name')?.value.stringValue)
        sent.push(...scopeSpans.flatMap(({ spans }) => spans))
      }
      expect(request.url).toBe('/v1/traces')
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
    })
  })
  await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve))
  endpoint = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`
  tracing = await openTracing({ endpoint })
  platform = watchedPlatform(createPlatform({ drivers: [createFakeDriver()] }), { spans: tracing.spans })
})

afterAll(async () => {
  await platform[Symbol.asyncDispose]()
  await tracing[Symbol.asyncDispose]()
  await new Promise((resolve) => collector.close(resolve))
})

const attributesOf = ({ attributes }: SentSpan): Record<string, unknown> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))
const spansOf = (traceId: string): SentSpan[] => sent.filter((span) => span.traceId === traceId)

test('what a request asks for belongs to the trace that it names', async () => {
  const traceId = '0af7651916cd43dd8448eb211c80319c'
  const headers = { traceparent: `00-${traceId}-b7ad6b7169203331-01` }
  const id = await tracing.within(headers, async () => {
    const info = await platform.create(spec)
    await collect(await platform.start(info.id, { command: ['sh', '-c', 'echo SECRET-WORDS; exit 4'], env: { TOKEN: 'SECRET-VALUE' } }))
    return info.id
  })
  await tracing.flush()
  const spans = spansOf(traceId)
  expect(spans.map(({ name, parentSpanId }) => [name, parentSpanId])).toEqual([
    ['glovebox.create', 'b7ad6b7169203331'],
    ['glovebox.run', 'b7ad6b7169203331'],
  ])
  expect(spans.map(attributesOf)).toMatchObject([
    { 'glovebox.sandbox': id, 'glovebox.driver': 'fake', 'glovebox.pool': 'none' },
    { 'glovebox.sandbox': id, 'glovebox.outcome': 'exited', 'process.exit.code': 4 },
  ])
  expect(JSON.stringify(spans)).not.toContain('SECRET')
  expect([...services]).toEqual(['glovebox'])
  await platform.close(id)
})

test('what fails is a span that says so by its code', async () => {
  const traceId = '1af7651916cd43dd8448eb211c80319c'
  await tracing.within({ traceparent: `00-${traceId}-b7ad6b7169203331-01` }, () => rejectionOf(platform.create({ ...spec, template: 'no such SECRET-NAME' })))
  await tracing.flush()
  expect(spansOf(traceId)).toMatchObject([{ name: 'glovebox.create', status: { code: 2 } }])
  expect(JSON.stringify(spansOf(traceId))).not.toContain('SECRET')
})

test('a connection out of a sandbox is a span of what ran there last, at the time when it was', async () => {
  const traceId = '2af7651916cd43dd8448eb211c80319c'
  const bus = createEventBus()
  const following = tracing.spans.follow(bus)
  await tracing.within({ traceparent: `00-${traceId}-b7ad6b7169203331-01` }, async () => {
    const { id } = await platform.create(spec)
    await collect(await platform.start(id, { command: ['true'] }))
    const attempt = { sandbox: id, host: 'h.example.com', port: 443, door: 'proxy', scheme: 'https', method: 'GET', path: '/SECRET' } as const
    const counts = { time: '2026-01-02T03:04:05.000Z', durationMs: 250, bytesUp: 10, bytesDown: 20, rule: '', reason: 'no rule allows it' }
    bus.tell({ type: 'denied', sandbox: id, reason: 'no', attempt: { ...attempt, ...counts, verdict: 'denied' } })
  })
  bus.close()
  await following
  await tracing.flush()
  const [, run, egress] = spansOf(traceId)
  expect(egress).toMatchObject({ name: 'glovebox.egress', parentSpanId: run?.spanId, status: { code: 2, message: 'denied' } })
  expect(BigInt(egress?.endTimeUnixNano ?? 0) - BigInt(egress?.startTimeUnixNano ?? 0)).toBe(250_000_000n)
  expect(JSON.stringify(egress)).not.toContain('SECRET')
})

test('nothing is traced unless an endpoint is named, and a package that is missing is named with the command that brings it', async () => {
  expect(tracingEndpoint({})).toBeUndefined()
  expect(tracingEndpoint({ OTEL_EXPORTER_OTLP_ENDPOINT: '' })).toBeUndefined()
  expect(tracingEndpoint({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://a' }, 'http://b')).toBe('http://b')
  const load = (name: string): Promise<unknown> => (name.includes('exporter') ? Promise.reject(new Error('not there')) : import(name))
  await expect(openTracing({ endpoint, load })).rejects.toMatchObject({
    code: 'unsupported',
    message: 'spans are asked for, and @opentelemetry/exporter-trace-otlp-http cannot be loaded',
    hint: expect.stringContaining('npm install @opentelemetry/api@') as string,
  })
})
