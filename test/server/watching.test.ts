// Figures, events and lines of the log, as those get them who ask a server for them.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createPlatform } from '../../src/compose.js'
import type { PlatformEvent } from '../../src/contract/events.js'
import { createFakeDriver } from '../../src/drivers/fake/driver.js'
import { createHouseWatch, type HouseWatch } from '../../src/watch/house-watch.js'
import { createLogger } from '../../src/watch/logger.js'
import { serve, type Served } from './plain-house.js'

const spec = { driver: 'fake', minTier: 'none' } as const
const authorization = 'Bearer gbx_a-key-of-a-test'
let folder: string
let lines: string[]
let watch: HouseWatch
let served: Served

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'glovebox-watching-'))
  lines = []
  const target = { write: (line: string) => lines.push(line) > 0, once: () => undefined }
  watch = createHouseWatch({ openDescriptors: () => 3, logger: createLogger({ target, redact: (text) => text }) })
  const platform = watch.platform(createPlatform({ drivers: [createFakeDriver()] }))
  watch.follow(platform.events)
  const hooks = { metrics: (accept: string | undefined) => watch.metrics(accept), log: (line: Parameters<HouseWatch['answered']>[0]) => watch.answered(line) }
  served = await serve(platform, join(folder, 's.sock'), hooks)
})

afterEach(async () => {
  await served[Symbol.asyncDispose]()
  await watch[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

/** The answer until `isEnough`, which is when it is left. */
function ask(
  path: string,
  headers: Record<string, string>,
  isEnough: (text: string) => boolean = () => false,
): Promise<{ type: string | undefined; text: string }> {
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath: served.socket, path, headers: { host: 'localhost', authorization, ...headers } }, (response) => {
      let text = ''
      const done = (): void => resolve({ type: response.headers['content-type'], text })
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part
        if (!isEnough(text)) return
        done()
        asked.destroy()
      })
      response.on('end', done)
    })
    asked.on('error', reject)
    asked.end()
  })
}

test('figures are read in the form that is preferred, and count what was done', async () => {
  const { id } = await served.client.create(spec)
  await served.client.close(id)
  const plain = await ask('/v1/metrics', {})
  expect(plain.type).toBe('text/plain; version=0.0.4; charset=utf-8')
  expect(plain.text).toContain('glovebox_create_duration_seconds_count{call="create",driver="fake",pool="none"} 1')
  expect(plain.text).toMatch(/glovebox_http_requests_total\{method="POST",route="sandboxes.create",status="20\d"\} 1/)
  const open = await ask('/v1/metrics', { accept: 'application/openmetrics-text' })
  expect(open.type).toMatch(/^application\/openmetrics-text/)
  expect(open.text.endsWith('# EOF\n')).toBe(true)
})

test('events are told as they happen, and a reader of Server-Sent Events goes on where it was', async () => {
  const first = ask('/v1/events?types=created,closed', { accept: 'text/event-stream' }, (text) => text.split('\n\n').length > 2)
  await expect.poll(() => watch.metrics().text).toContain('process_open_fds 3')
  await new Promise((resolve) => setTimeout(resolve, 50))
  const { id } = await served.client.create(spec)
  await served.client.close(id)
  const told = (await first).text.split('\n\n').filter((part) => part.startsWith('id: '))
  expect(told.map((part) => /^event: (.*)$/m.exec(part)?.[1])).toEqual(['created', 'closed'])
  const [, cursor = ''] = /^id: (.*)$/m.exec(told[0] ?? '') ?? []
  const again = await ask('/v1/events?types=created,closed', { accept: 'text/event-stream', 'last-event-id': cursor }, (text) => text.includes('event: closed'))
  expect(again.text).not.toContain('event: created')
  expect(again.text).toContain(`"sandbox":"${id}"`)
})

test('the client listens to them as to any platform’s', async () => {
  const events = served.client.events.listen({ types: ['created'], after: 'oldest' })[Symbol.asyncIterator]()
  const { id } = await served.client.create(spec)
  const { value } = (await events.next()) as { value: PlatformEvent }
  expect(value).toMatchObject({ type: 'created', sandbox: id, driver: 'fake' })
  await events.return?.()
  const wrong = served.client.events.listen({ after: 'nonsense' })[Symbol.asyncIterator]()
  await expect(wrong.next()).rejects.toMatchObject({ code: 'invalid', message: 'after: is no cursor of an event' })
})

test('the log has one line a request, by route and without what was asked for', async () => {
  const { id } = await served.client.create({ ...spec, env: { TOKEN: 'SECRET' }, metadata: { k: 'SECRET' } })
  await served.client.close(id)
  await expect.poll(() => lines.length).toBeGreaterThanOrEqual(2)
  const told = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
  expect(told[0]).toMatchObject({ level: 'info', route: 'sandboxes.create', method: 'POST', tenant: 'default', request: expect.any(String) as string })
  expect(lines.join('')).not.toMatch(/SECRET|gbx_a-key/)
})

/** `name{label,label}` as the page has them in a table of the section. */
function describedFigures(): Map<string, readonly string[]> {
  const page = readFileSync(new URL('../../docs/server.md', import.meta.url), 'utf8')
  const section = page.slice(page.indexOf('## Figures'), page.indexOf('## When it stops'))
  const named = [...section.matchAll(/`((?:glovebox|process|nodejs)_[a-z_]+)(?:\{([a-z,]+)\})?`/g)]
  return new Map(named.map(([, name = '', labels]) => [name, labels?.split(',') ?? []]))
}

test('every figure that is given is described by its name and labels, and every one that is described is given', async () => {
  const { id } = await served.client.create(spec)
  await (await served.client.start(id, { command: ['true'] })).ended
  await served.client.close(id)
  const { text } = await ask('/v1/metrics', {})
  const described = describedFigures()
  const given = [...text.matchAll(/^# TYPE (\S+) \S+$/gm)].map(([, name = '']) => name)
  expect([...described.keys()].sort()).toEqual(given.sort())
  const samples = [...text.matchAll(/^([a-z_]+?)(?:_bucket|_sum|_count)?(?:\{(.*)\})? \S+$/gm)].filter(([, name = '']) => described.has(name))
  expect(samples.length).toBeGreaterThan(10)
  for (const [, name = '', labels = ''] of samples) {
    const own = [...labels.matchAll(/([a-z_]+)="/g)].map(([, label = '']) => label).filter((label) => label !== 'le')
    expect([name, own.sort()]).toEqual([name, [...(described.get(name) ?? [])].sort()])
  }
})
