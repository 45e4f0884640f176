import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { NetworkApproval, NetworkFacts, NetworkRecord } from '../../src/contract/network.js'
import type { Fresh } from '../../src/contract/pools.js'
import { Sandbox, SandboxPool } from '../../src/sandbox/index.js'
import { httpServer, httpsServer, type OtherSide } from '../egress/front-servers.js'
import { type NetworkGround, openGround } from './network-ground.js'

let ground: NetworkGround
let http: OtherSide
let tls: OtherSide
let withoutLiners: string | undefined

beforeAll(async () => {
  ground = await openGround()
  http = await httpServer()
  tls = await httpsServer({ authority: ground.authority, host: 'tls.example.com' })
  const liners = (await ground.platform.probe())[0]?.features.liners
  withoutLiners = liners?.available ? undefined : (liners?.why ?? 'there is no driver')
})
afterAll(async () => {
  await ground[Symbol.asyncDispose]()
  await http[Symbol.asyncDispose]()
  await tls[Symbol.asyncDispose]()
})
beforeEach(({ skip }) => {
  if (ground.without !== undefined) skip(ground.without)
})

const shop = (): { allow: string[] } => ({ allow: [`shop.example.com:${http.port}`, `tls.example.com:${tls.port}`] })
const urlOf = (host: string, path = '/'): string => `http://${host}.example.com:${http.port}${path}`
const ask = (host: string, path = '/'): string[] => ['curl', '-sS', '-o', '/dev/stdout', urlOf(host, path)]

async function all(log: AsyncIterable<NetworkRecord>): Promise<NetworkRecord[]> {
  const records: NetworkRecord[] = []
  for await (const record of log) records.push(record)
  return records
}

const ways: { readonly name: string; readonly options: { readonly fresh?: Fresh; readonly pool?: boolean } }[] = [
  { name: 'in a liner', options: { fresh: 'liner' } },
  { name: 'in a cell that waited', options: { fresh: 'cell' } },
  { name: 'in a cell that is created', options: { pool: false } },
]

describe.each(ways)('a one-shot $name', ({ options }) => {
  beforeEach(({ skip }) => {
    if (options.fresh === 'liner' && withoutLiners !== undefined) skip(withoutLiners)
  })
  const once = (command: string[], more: { onRequest?: (facts: NetworkFacts) => NetworkApproval; sandbox?: { network: { allow: string[] } } } = {}) =>
    Sandbox.run(command, { platform: ground.platform, sandbox: { network: shop() }, ...options, ...more })

  test('has a log and a summary of its own, under an id of its own', async () => {
    const ids = new Set<string>()
    for (const path of ['/a', '/b', '/c', '/d']) {
      const run = once(['sh', '-c', `curl -sS ${urlOf('shop', path)}; curl -sS ${urlOf('other', path)}`])
      const [records, result] = await Promise.all([all(run.network.log()), run])
      expect(result.stdout).toContain(`seen GET ${path} 0`)
      expect(records.map(({ host, verdict, path: asked }) => [host, verdict, asked])).toEqual([
        ['shop.example.com', 'allowed', path],
        ['other.example.com', 'denied', path],
      ])
      expect(new Set(records.map(({ sandbox }) => sandbox)).size).toBe(1)
      ids.add(records[0]?.sandbox ?? '')
      expect(result.network?.byVerdict).toEqual({ allowed: 1, denied: 1, failed: 0 })
      expect(await run.network.summary()).toEqual(result.network)
    }
    expect(ids.size).toBe(4)
  })

  test('is approved of once, for itself or not at all, and what it was allowed ends with it', async () => {
    const asked: string[] = []
    const judge = (answer: NetworkApproval) => (facts: NetworkFacts) => {
      asked.push(`${facts.host} ${answer}`)
      return answer
    }
    const twice = ['sh', '-c', `curl -sS ${urlOf('side')}; curl -sS ${urlOf('side')}`]
    expect((await once(twice, { onRequest: judge('sandbox') })).stdout).toBe('seen GET / 0seen GET / 0')
    expect(asked.splice(0)).toEqual(['side.example.com sandbox'])
    expect((await once(twice, { onRequest: judge('once') })).stdout).toBe('seen GET / 0seen GET / 0')
    expect(asked.splice(0)).toEqual(['side.example.com once', 'side.example.com once'])
    const denied = await once(twice, { onRequest: judge('deny') })
    expect(denied.stdout).toMatch(/denied.*denied/s)
    expect(denied.network?.byVerdict).toEqual({ allowed: 0, denied: 2, failed: 0 })
    expect(asked.splice(0)).toEqual(['side.example.com deny', 'side.example.com deny'])
    expect((await once(twice)).stdout).toMatch(/denied.*denied/s)
    expect(asked).toEqual([])
  })

  test('that only tunnels is written down as it ended', async () => {
    for (const _ of Array.from({ length: 8 })) {
      const result = await once(['curl', '-sS', `https://tls.example.com:${tls.port}/t`])
      expect(result.stderr).toBe('')
      expect(result.network?.latest).toMatchObject([{ host: 'tls.example.com' }])
      // It ended with its program, whether that said goodbye or not; we did not cut it off.
      expect(result.network?.latest[0]?.reason).not.toContain('sandbox was closed')
    }
  })

  test('that leaves a connection behind has it ended and written down', async () => {
    const keep = `import socket, os; s = socket.create_connection(('127.0.0.1', 3128)); s.sendall(b'CONNECT tls.example.com:${tls.port} HTTP/1.1\\r\\nHost: tls.example.com:${tls.port}\\r\\n\\r\\n'); print(s.recv(99)[:12].decode(), flush=True); os._exit(0)`
    const result = await once(['python3', '-c', keep])
    expect(result.stderr).toBe('')
    expect(result.stdout).toBe('HTTP/1.1 200\n')
    expect(result.network?.connections).toBe(1)
  })

  test('without a network says so', async () => {
    const run = Sandbox.run(['true'], { platform: ground.platform, ...options })
    expect((await run).network).toBeUndefined()
    await expect(run.network.summary()).rejects.toMatchObject({ code: 'conflict' })
    await expect(all(run.network.log())).rejects.toMatchObject({ code: 'conflict' })
  })
})

test('an iterated one-shot tells it with its exit', async () => {
  const events: unknown[] = []
  for await (const event of Sandbox.run(ask('shop'), { platform: ground.platform, sandbox: { network: shop() } })) events.push(event)
  expect(events.at(-1)).toMatchObject({ type: 'exit', exitCode: 0, network: { byVerdict: { allowed: 1, denied: 0, failed: 0 } } })
})

test.each(['cell', 'liner'] as const)('runs of a pool of %ss each have their own judge, log and summary', async (fresh) => {
  if (fresh === 'liner' && withoutLiners !== undefined) return
  await using pool = await SandboxPool.create({ platform: ground.platform, network: shop(), size: 1, max: 2, fresh })
  const asked: string[] = []
  const run = pool.run(ask('side'), { onRequest: ({ sandbox, host }) => (asked.push(`${sandbox} ${host}`), 'sandbox') })
  const [records, { stdout, network }] = await Promise.all([all(run.network.log()), run])
  expect(stdout).toBe('seen GET / 0')
  expect(network?.byVerdict.allowed).toBe(1)
  expect(asked).toEqual([`${records[0]?.sandbox} side.example.com`])
  const next = await pool.run(ask('side'))
  expect(next.stdout).toContain('denied')
  expect(next.network).toMatchObject({ connections: 1, byVerdict: { denied: 1 } })
})

test('a sandbox of a pool is asked about by whoever has it', async () => {
  await using pool = await SandboxPool.create({ platform: ground.platform, network: { allow: [] }, size: 1 })
  await using sandbox = await pool.acquire({ onRequest: ({ host }) => (host === 'side.example.com' ? 'once' : 'deny') })
  expect((await sandbox.run(ask('side'))).stdout).toBe('seen GET / 0')
  expect((await sandbox.run(ask('other'))).stdout).toContain('denied')
  expect((await sandbox.network.summary()).byVerdict).toEqual({ allowed: 1, denied: 1, failed: 0 })
  await using other = await pool.acquire()
  expect((await other.run(ask('side'))).stdout).toContain('denied')
  await expect(pool.acquire({ onRequest: 'yes' as never })).rejects.toMatchObject({ code: 'invalid', message: 'onRequest: expected a function, got a string' })
})

test('programs that know no proxy are asked about too, in a liner that was made for those who are not', async ({ skip }) => {
  if (ground.withoutDirect !== undefined) skip(ground.withoutDirect)
  if (withoutLiners !== undefined) skip(withoutLiners)
  const lined = (onRequest?: () => NetworkApproval) =>
    Sandbox.run(['curl', '-sS', '--noproxy', '*', '-m', '5', 'http://side.example.com/'], {
      platform: ground.platform,
      fresh: 'liner',
      sandbox: { network: { allow: [] } },
      ...(onRequest && { onRequest }),
    })
  for (const _ of [1, 2, 3]) {
    expect((await lined()).network?.byHost['side.example.com']?.denied).toBeGreaterThan(0)
    let asked = 0
    const { network } = await lined(() => (asked++, 'deny'))
    expect({ asked, denied: network?.byHost['side.example.com']?.denied }).toEqual({ asked: 1, denied: 1 })
  }
})

test('code in a sandbox of its own has the same', async () => {
  const source = `import urllib.request\nprint(urllib.request.urlopen('${urlOf('side')}').read().decode())`
  for (const _ of [1, 2, 3]) {
    const run = Sandbox.code(source, { platform: ground.platform, sandbox: { network: shop() }, onRequest: () => 'once' })
    const [records, execution] = await Promise.all([all(run.network.log()), run])
    expect(execution.stdout).toBe('seen GET / 0\n')
    expect(records).toMatchObject([{ host: 'side.example.com', verdict: 'allowed', rule: 'approval' }])
    expect((await run.network.summary()).byVerdict).toEqual({ allowed: 1, denied: 0, failed: 0 })
  }
  await using pool = await SandboxPool.create({ platform: ground.platform, network: shop(), size: 1, language: 'python' })
  const pooled = pool.code(source, { onRequest: () => 'once' })
  expect((await pooled).stdout).toBe('seen GET / 0\n')
  expect((await pooled.network.summary()).connections).toBe(1)
})

test('what is no judge is refused by name', async () => {
  const wrong = { platform: ground.platform, onRequest: 'all' as never }
  await expect(Sandbox.run(['true'], wrong)).rejects.toMatchObject({ code: 'invalid', message: 'onRequest: expected a function, got a string' })
  await expect(Sandbox.code('1', wrong)).rejects.toMatchObject({ code: 'invalid', message: 'onRequest: expected a function, got a string' })
})
