/** What tenants are held to, and what is told of them, with real cells behind the real program. */
import { writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createClient } from '../../src/client/index.js'
import { createPlatform } from '../../src/index.js'
import { nodeTransport } from '../../src/sys/http-transport.js'
import { httpServer, type OtherSide } from '../egress/front-servers.js'
import type { Answer } from './own-server.js'
import { serverFolder, type ServerFolder, startServer, type StartedServer } from './started-server.js'

const probing = createPlatform()
const [probe] = await probing.probe()
await probing[Symbol.asyncDispose]()
const network = probe?.features.network
const withoutNetwork = network?.available ? undefined : (network?.why ?? 'there is no driver')

const tenants = [
  { id: 'few', quotas: { sandboxes: 3 } },
  { id: 'rare', quotas: { createsPerMinute: 4 } },
  { id: 'small', quotas: { memory: '192m' } },
  { id: 'thrifty', quotas: { egressPerDay: 200_000 } },
  { id: 'greedy', quotas: { egressPerDay: '1m' } },
  { id: 'odd' },
] as const

/** By the way out, as programs have it that know of proxies. */
const fetching = `
import os, sys, urllib.request as u
proxy = os.environ.get('http_proxy') or os.environ.get('HTTP_PROXY')
opener = u.build_opener(u.ProxyHandler({'http': proxy}))
for url in sys.argv[1:]:
    try: print(len(opener.open(url, timeout=10).read()), flush=True)
    except Exception as error: print('refused', flush=True)
`

/** Several connections at once, each of which would send without end. */
const uploading = `
import os, select, socket, sys, threading
from urllib.parse import urlsplit
proxy = urlsplit(os.environ.get('http_proxy') or os.environ.get('HTTP_PROXY'))
def upload():
    s = socket.create_connection((proxy.hostname, proxy.port))
    try:
        s.sendall(('POST http://%s/ HTTP/1.1\\r\\nhost: %s\\r\\ncontent-length: 10000000000\\r\\n\\r\\n' % (sys.argv[1], sys.argv[1])).encode())
        while not select.select([s], [s], [])[0]: s.send(bytes(65536))
    except OSError: pass
threads = [threading.Thread(target=upload) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
print('cut off', flush=True)
`

describe('a tenant in real cells', () => {
  let folder: ServerFolder
  let server: StartedServer
  let outside: OtherSide
  beforeAll(async () => {
    outside = await httpServer({ answer: (_, response) => response.end('x'.repeat(100_000)) })
    folder = await serverFolder(tenants)
    const policy = join(folder.folder, 'policy.json')
    writeFileSync(policy, JSON.stringify({ ceiling: { network: { private: ['127.0.0.0/8'] } } }), { mode: 0o600 })
    server = await startServer(folder, { flags: ['--policy', policy] })
  })
  afterAll(async () => {
    await server.stop()
    await outside[Symbol.asyncDispose]()
    folder[Symbol.dispose]()
  })

  const as = (tenant: string, path: string, asking: Parameters<StartedServer['ask']>[1] = {}): Promise<Answer> =>
    server.ask(path, { key: folder.keys[tenant], ...asking })
  const create = (tenant: string, spec: object = {}): Promise<Answer> => as(tenant, '/v1/sandboxes', { body: spec })
  const used = async (tenant: string): Promise<Record<string, { used: number }>> => (await as(tenant, '/v1/usage')).json() as never
  const run = async (tenant: string, id: string, command: readonly string[]): Promise<Record<string, unknown>> =>
    (await as(tenant, `/v1/sandboxes/${id}/processes`, { body: { command } })).json()

  test('gets as many sandboxes as its quota has, however many ask at once, and the refused are told which and how much', async () => {
    const race = async (): Promise<readonly [number, number]> => {
      const answers = await Promise.all(Array.from({ length: 12 }, (_, index) => (index % 3 === 0 ? as('few', '/v1/takes', { body: {} }) : create('few'))))
      const refused = answers.filter(({ status }) => status === 429).map((answer) => answer.json())
      for (const { code, details, hint } of refused)
        expect([code, details, hint]).toEqual([
          'quota',
          { quota: 'sandboxes', used: 3, limit: 3, asked: 1 },
          expect.stringContaining('glovebox tenants set few'),
        ])
      return [answers.length - refused.length, refused.length]
    }
    for (let n = 0; n < 3; n += 1) {
      expect(await race()).toEqual([3, 9])
      expect((await used('few')).sandboxes?.used).toBe(3)
      await as('few', '/v1/sandboxes?all=true', { method: 'DELETE' })
      await expect.poll(async () => (await used('few')).sandboxes?.used).toBe(0)
    }
  })

  test('that makes too many in a minute is told when to try again', async () => {
    const answers = await Promise.all(Array.from({ length: 10 }, () => as('rare', '/v1/runs', { body: { command: ['true'] } })))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(4)
    for (const answer of answers.filter(({ status }) => status !== 200)) {
      expect([answer.status, answer.json().details]).toMatchObject([429, { quota: 'createsPerMinute', limit: 4 }])
      expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0)
      // Counted in slices of time, of which the last one may be begun.
      expect(Number(answer.headers['retry-after'])).toBeLessThanOrEqual(61)
    }
  })

  test('has no more memory than its quota, by sandboxes or by raising limits, all at once', async ({ skip }) => {
    const spec = { limits: { memory: '64m' } }
    const tried = (await create('odd', spec)).json()
    if (tried.code === 'unsupported') skip(String(tried.message))
    const [first, second] = [(await create('small', spec)).json().id, (await create('small', spec)).json().id]
    const raise = (id: unknown): Promise<Answer> => as('small', `/v1/sandboxes/${String(id)}/limits`, { method: 'PATCH', body: { memory: '128m' } })
    const answers = await Promise.all([raise(first), raise(second), create('small', spec)])
    expect(answers.filter(({ status }) => status < 300)).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(2)
    expect((await used('small')).memory?.used).toBe(192 * 2 ** 20)
    await as('small', '/v1/sandboxes?all=true', { method: 'DELETE' })
  })

  test('that has spent the bytes of its day reaches nothing any more, and is told until when', async ({ skip }) => {
    if (withoutNetwork !== undefined) skip(withoutNetwork)
    const spec = { network: { allow: [`127.0.0.1:${outside.port}`] } }
    const made = await create('thrifty', spec)
    expect([made.status, made.text]).toEqual([201, expect.any(String)])
    const id = String(made.json().id)
    const url = `http://127.0.0.1:${outside.port}/`
    const fetch = async (): Promise<unknown> => (await run('thrifty', id, ['/usr/bin/python3', '-c', fetching, url])).stdout
    expect(await fetch()).toBe('100000\n')
    // With what stands around it the second is a little more than is left.
    expect([await fetch(), await fetch()]).toEqual(['refused\n', 'refused\n'])
    expect((await used('thrifty')).egressPerDay?.used).toBe(200_000)
    const answer = await create('thrifty', spec)
    expect([answer.status, answer.json().details]).toMatchObject([429, { quota: 'egressPerDay', limit: 200_000 }])
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0)
    expect((await create('thrifty')).status).toBe(201)
    const { items } = (await server.ask(`/v1/audit?tenant=thrifty&act=quota.spend`)).json() as { items: unknown[] }
    expect(items).toMatchObject([{ actor: 'system', details: { quota: 'egressPerDay' } }])
  })

  test('is cut off in the midst of what it sends, by several sandboxes and connections at once, at the last byte of its day', async ({ skip }) => {
    if (withoutNetwork !== undefined) skip(withoutNetwork)
    let arrived = 0
    const sink = createServer((socket) => void socket.on('error', () => undefined).on('data', (piece) => (arrived += piece.length)))
    await new Promise<void>((resolve) => sink.listen(0, '127.0.0.1', resolve))
    const place = `127.0.0.1:${(sink.address() as AddressInfo).port}`
    const command = ['/usr/bin/python3', '-c', uploading, place]
    const spec = { network: { allow: [place] } }
    const ids = await Promise.all([0, 1].map(async () => String((await create('greedy', spec)).json().id)))
    const ended = await Promise.all([
      ...ids.map((id) => run('greedy', id, command)),
      as('greedy', '/v1/runs', { body: { command, sandbox: spec } }).then((answer) => answer.json()),
    ])
    expect(ended.map(({ stdout }) => stdout)).toEqual(['cut off\n', 'cut off\n', 'cut off\n'])
    expect((await used('greedy')).egressPerDay?.used).toBe(2 ** 20)
    expect(arrived).toBeLessThanOrEqual(2 ** 20)
    expect(arrived).toBeGreaterThan(2 ** 19)
    sink.close()
  })

  test('whose sandboxes do what looks wrong is told so, kind by kind and with the reason', async ({ skip }) => {
    const anomalies = async (): Promise<string[]> =>
      ((await server.ask('/v1/audit?tenant=odd&act=anomaly')).json().items as { details: { kind: string } }[]).map(({ details }) => details.kind).sort()
    const id = String((await create('odd')).json().id)
    const flood = { command: ['head', '-c', String(65 * 2 ** 20), '/dev/zero'], background: true }
    expect((await as('odd', `/v1/sandboxes/${id}/processes`, { body: flood })).status).toBeLessThan(300)
    await expect.poll(anomalies).toEqual(['output-flood'])
    for (let n = 0; n < 6; n += 1) await as('odd', `/v1/sandboxes/${id}/processes`, { body: { command: ['sleep', '10'], timeout: '50ms' } })
    await expect.poll(anomalies).toEqual(['limit-hits', 'output-flood'])
    if (withoutNetwork !== undefined) skip(withoutNetwork)
    const far = String((await create('odd', { network: { allow: ['allowed.example.com'] } })).json().id)
    const urls = Array.from({ length: 35 }, (_, index) => `http://host-${index}.example.com/`)
    await run('odd', far, ['/usr/bin/python3', '-c', fetching, ...urls])
    await expect.poll(anomalies).toEqual(['denied-burst', 'host-scan', 'limit-hits', 'output-flood'])
    const reason = expect.stringContaining('denied within 10 s') as string
    expect(await toldOf('denied-burst', folder)).toMatchObject({ type: 'anomaly', tenant: 'odd', sandbox: far, reason })
  })
})

/** The same is on the stream of the tenant, from its beginning. */
async function toldOf(kind: string, { socket, keys }: ServerFolder): Promise<unknown> {
  await using client = createClient({ key: keys.odd ?? '', transport: nodeTransport({ place: { socket } }) })
  for await (const event of client.events.listen({ after: 'oldest', types: ['anomaly'], tenant: 'odd', signal: AbortSignal.timeout(20_000) }))
    if (event.type === 'anomaly' && event.kind === kind) return event
  return undefined
}
