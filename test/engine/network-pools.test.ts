import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { Sandbox, SandboxPool } from '../../src/sandbox/index.js'
import { httpServer, type OtherSide } from '../egress/front-servers.js'
import { type NetworkGround, openGround } from './network-ground.js'

let ground: NetworkGround
let http: OtherSide

beforeAll(async () => {
  ground = await openGround()
  http = await httpServer()
})
afterAll(async () => {
  await ground[Symbol.asyncDispose]()
  await http[Symbol.asyncDispose]()
})
beforeEach(({ skip }) => {
  if (ground.without !== undefined) skip(ground.without)
})

const shop = (): { allow: string[] } => ({ allow: [`shop.example.com:${http.port}`] })
const ask = (host: string, path = '/'): string[] => ['curl', '-sS', '-o', '/dev/stdout', `http://${host}.example.com:${http.port}${path}`]

test('a sandbox of a pool has the network of its kind, and a log of its own', async () => {
  await using pool = await SandboxPool.create({ platform: ground.platform, network: shop(), size: 2 })
  await using first = await pool.acquire()
  await using second = await pool.acquire()
  expect((await first.run(ask('shop'))).stdout).toBe('seen GET / 0')
  expect((await second.run(ask('other'))).stdout).toContain('denied')
  expect((await first.network.summary()).byVerdict).toEqual({ allowed: 1, denied: 0, failed: 0 })
  expect((await second.network.summary()).latest).toMatchObject([{ sandbox: second.id, host: 'other.example.com', verdict: 'denied' }])
})

test('one-shots of one network are not given cells of another', async () => {
  const run = async (network: { allow: string[] } | false, host: string): Promise<string> => {
    const { stdout, stderr } = await Sandbox.run(ask(host), { platform: ground.platform, sandbox: { network } })
    return stdout + stderr
  }
  for (const _ of [1, 2, 3, 4]) {
    expect(await run(shop(), 'shop')).toBe('seen GET / 0')
    expect(await run({ allow: [] }, 'shop')).toContain('denied')
    expect(await run(false, 'shop')).toMatch(/Could not resolve|Couldn't connect|resolve/)
  }
})

test('runs in liners reach what their network allows, and nothing of one is left for the next', async ({ skip }) => {
  const [probe] = await ground.platform.probe()
  const liners = probe?.features.liners
  if (liners?.available === false) skip(liners.why)
  const lined = (command: string[]) => Sandbox.run(command, { platform: ground.platform, fresh: 'liner', sandbox: { network: shop() } })
  for (const path of ['/first', '/second', '/third']) {
    expect((await lined(ask('shop', path))).stdout).toBe(`seen GET ${path} 0`)
    expect((await lined(ask('other', path))).stdout).toContain('denied')
  }
  expect(http.seen.some(({ headers }) => String(headers.host).startsWith('other'))).toBe(false)
  if (ground.withoutDirect !== undefined) return
  expect((await lined(['curl', '-sS', '--noproxy', '*', `http://shop.example.com:${http.port}/direct`])).stdout).toBe('seen GET /direct 0')
})

test('what has credentials is never made ahead', async () => {
  const network = { ...shop(), credentials: [{ host: 'shop.example.com', header: 'authorization', value: 'token' }] }
  await expect(SandboxPool.create({ platform: ground.platform, network, size: 1 })).rejects.toMatchObject({
    code: 'invalid',
    message: expect.stringContaining('network.credentials: belong to one sandbox') as string,
  })
})
