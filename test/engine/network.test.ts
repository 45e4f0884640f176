import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { Sandbox } from '../../src/sandbox/index.js'
import { httpServer, httpsServer, type OtherSide } from '../egress/front-servers.js'
import { type NetworkGround, openGround } from './network-ground.js'

let ground: NetworkGround
let http: OtherSide
let https: OtherSide
/** Never answers. */
let slow: OtherSide
let ended = 0

beforeAll(async () => {
  ground = await openGround()
  http = await httpServer()
  slow = await httpServer({ answer: ({ socket }) => void socket.once('close', () => (ended += 1)) })
  https = await httpsServer({ authority: ground.authority, host: 'shop.example.com' })
})
afterAll(async () => {
  await ground[Symbol.asyncDispose]()
  await http[Symbol.asyncDispose]()
  await slow[Symbol.asyncDispose]()
  await https[Symbol.asyncDispose]()
})
beforeEach(({ skip }) => {
  if (ground.without !== undefined) skip(ground.without)
})

const shop = (): string => `shop.example.com:${https.port}`

test('what is allowed is reached, what is not is refused in words, and the server knows nothing of it', async () => {
  await using sandbox = await Sandbox.create({ platform: ground.platform, network: { allow: [shop()] } })
  const allowed = await sandbox.run(['curl', '-sS', `https://${shop()}/a?b=1`])
  expect(allowed).toMatchObject({ outcome: { kind: 'exited', code: 0 }, stdout: 'seen GET /a?b=1 0' })
  const before = http.seen.length
  const refused = await sandbox.run(['curl', '-sS', '-i', `http://shop.example.com:${http.port}/secret`])
  expect(refused.stdout).toContain('403')
  expect(refused.stdout).toContain(`shop.example.com:${http.port}`)
  expect(http.seen.length).toBe(before)
})

test('without a network nothing is set, nothing listens, and none can be had later', async () => {
  await using sandbox = await Sandbox.create({ platform: ground.platform })
  const seen = await sandbox.run('env | grep -ic proxy; cat /proc/net/tcp /proc/net/tcp6 /proc/net/udp | grep -vc local_address')
  expect(seen.stdout).toBe('0\n0\n')
  const never = { code: 'conflict', message: `sandbox ${sandbox.id} was created without a network, and never gets one` }
  await expect(sandbox.network.update({ allow: ['*'] })).rejects.toMatchObject(never)
  await expect(sandbox.network.summary()).rejects.toMatchObject(never)
  await expect(sandbox.network.log()[Symbol.asyncIterator]().next()).rejects.toMatchObject(never)
})

test('rules that are replaced hold from then on, and what they would not allow ends', async () => {
  await using sandbox = await Sandbox.create({ platform: ground.platform, network: { allow: [] } })
  const ask = async (): Promise<string> =>
    (await sandbox.run(['curl', '-sS', '-o', '/dev/null', '-w', '%{http_code}', `http://shop.example.com:${http.port}/`])).stdout
  expect(await ask()).toBe('403')
  const info = await sandbox.network.update({ allow: [`shop.example.com:${http.port}`] })
  expect(info.spec.network).toMatchObject({ allow: [`shop.example.com:${http.port}`] })
  expect(await ask()).toBe('200')
  await sandbox.network.update({ allow: [`*.example.com:${http.port}`, `*.example.com:${slow.port}`] })
  const held = sandbox.run(['curl', '-sS', '--max-time', '50', `http://slow.example.com:${slow.port}/held`])
  await expect.poll(() => slow.seen.map(({ url }) => url)).toContain('/held')
  await sandbox.network.update({ allow: [`*.example.com:${http.port}`], block: ['shop.example.com'] })
  expect(await ask()).toBe('403')
  expect((await held).outcome).not.toMatchObject({ code: 28 })
  await expect(sandbox.network.update({ allow: ['http://x'] })).rejects.toMatchObject({
    code: 'invalid',
    message: expect.stringContaining('network.allow[0]') as string,
  })
  await expect(sandbox.network.update(false as never)).rejects.toMatchObject({ code: 'invalid' })
  expect(await ask()).toBe('403')
})

test('each attempt is written down, summed up, and told as an event when it was denied', async () => {
  await using sandbox = await Sandbox.create({ platform: ground.platform, network: { allow: [`shop.example.com:${http.port}`] } })
  const denied = new Promise((resolve) => sandbox.on('denied', resolve))
  const records = sandbox.network.log()[Symbol.asyncIterator]()
  await sandbox.run(['curl', '-sS', `http://shop.example.com:${http.port}/path?secret=1`])
  await sandbox.run(['curl', '-sS', `http://other.example.com:${http.port}/`])
  const facts = { sandbox: sandbox.id, port: http.port, door: 'proxy', scheme: 'http', method: 'GET' }
  expect(await records.next()).toMatchObject({
    value: { ...facts, host: 'shop.example.com', path: '/path', status: 200, verdict: 'allowed', address: '127.0.0.1' },
  })
  expect(await records.next()).toMatchObject({ value: { ...facts, host: 'other.example.com', verdict: 'denied' } })
  expect(await denied).toMatchObject({ type: 'denied', attempt: { host: 'other.example.com' }, reason: expect.stringContaining('other.example.com') as string })
  const summary = await sandbox.network.summary()
  expect(summary).toMatchObject({ connections: 2, byVerdict: { allowed: 1, denied: 1, failed: 0 }, byMethod: { GET: 2 } })
  expect(summary.latest.map(({ host }) => host)).toEqual(['shop.example.com', 'other.example.com'])
  await sandbox.close()
  expect(await records.next()).toEqual({ done: true, value: undefined })
})

test('whoever created it approves once, for the sandbox, or not at all', async () => {
  const asked: string[] = []
  const answers: Readonly<Record<string, unknown>> = {
    'once.example.com': 'once',
    'always.example.com': 'sandbox',
    'never.example.com': 'deny',
    'odd.example.com': true,
  }
  await using sandbox = await Sandbox.create({
    platform: ground.platform,
    network: { allow: [] },
    onRequest: ({ host }) => {
      asked.push(host)
      if (host === 'thrown.example.com') throw new Error('no')
      return answers[host] as 'once'
    },
  })
  const ask = async (host: string): Promise<string> =>
    (await sandbox.run(['curl', '-sS', '-o', '/dev/null', '-w', '%{http_code}', `http://${host}.example.com:${http.port}/`])).stdout
  const hosts = ['once', 'once', 'always', 'always', 'never', 'odd', 'thrown']
  const statuses: string[] = []
  for (const host of hosts) statuses.push(await ask(host))
  expect(statuses).toEqual(['200', '200', '200', '200', '403', '403', '403'])
  expect(asked).toEqual(['once', 'once', 'always', 'never', 'odd', 'thrown'].map((host) => `${host}.example.com`))
})

test.for([{ memory: true }, { memory: false }])('goes on after a pause with %o, and in a fork', async ({ memory }, { skip }) => {
  const pause = (await ground.platform.probe())[0]?.features.pause
  if (memory && pause?.available === false) skip(pause.why)
  await using sandbox = await Sandbox.create({ platform: ground.platform, network: { allow: [`shop.example.com:${http.port}`] } })
  const ask = async (from: Sandbox): Promise<string> => (await from.run(['curl', '-sS', `http://shop.example.com:${http.port}/`])).stdout
  expect(await ask(sandbox)).toBe('seen GET / 0')
  await sandbox.pause({ memory })
  await sandbox.resume()
  expect(await ask(sandbox)).toBe('seen GET / 0')
  expect((await sandbox.network.summary()).byVerdict.allowed).toBe(2)
  const [fork] = await sandbox.fork()
  await using other = fork as Sandbox
  expect(await ask(other)).toBe('seen GET / 0')
  expect((await other.network.summary()).byVerdict.allowed).toBe(1)
})

test('a receipt says what was allowed, and is signed', async () => {
  await using sandbox = await Sandbox.create({ platform: ground.platform, network: { allow: [shop()] } })
  await sandbox.run('true')
  const receipt = await sandbox.receipt()
  const network = receipt.controls.find(({ control }) => control === 'network')
  expect(network).toMatchObject({ stated: 'spec', requested: { allow: [shop()] }, enforced: { allow: [shop()] } })
})

test('closing ends what is open at once', async () => {
  const sandbox = await Sandbox.create({ platform: ground.platform, network: { allow: [`slow.example.com:${slow.port}`] } })
  const before = ended
  const running = await sandbox.spawn(['curl', '-sS', `http://slow.example.com:${slow.port}/closing`])
  await expect.poll(() => slow.seen.map(({ url }) => url)).toContain('/closing')
  await sandbox.close()
  await running.wait().catch(() => undefined)
  await expect.poll(() => ended).toBe(before + 1)
  await expect(sandbox.network.summary()).rejects.toMatchObject({ code: 'closed' })
})

test('programs that know of no proxy are taken in where that is possible', async ({ skip }) => {
  if (ground.withoutDirect !== undefined) skip(ground.withoutDirect)
  await using sandbox = await Sandbox.create({ platform: ground.platform, network: { allow: [shop()] } })
  const direct = await sandbox.run(['curl', '-sS', '--noproxy', '*', `https://${shop()}/direct`])
  expect(direct.stdout + direct.stderr).toBe('seen GET /direct 0')
  const before = https.seen.length
  const other = await sandbox.run(['curl', '-sS', '--noproxy', '*', '-k', '--max-time', '10', `https://other.example.com:${https.port}/`])
  expect(other.outcome).not.toEqual({ kind: 'exited', code: 0 })
  expect(https.seen.length).toBe(before)
})

test('rules that are replaced while it is paused without its memory hold when it is resumed', async () => {
  await using sandbox = await Sandbox.create({ platform: ground.platform, network: { allow: [] } })
  await sandbox.pause({ memory: false })
  await sandbox.network.update({ allow: [`shop.example.com:${http.port}`] })
  await sandbox.resume()
  const proxied = await sandbox.run(['curl', '-sS', `http://shop.example.com:${http.port}/`])
  expect(proxied.stdout).toBe('seen GET / 0')
  if (ground.withoutDirect !== undefined) return
  const direct = await sandbox.run(['curl', '-sS', '--noproxy', '*', `http://shop.example.com:${http.port}/direct`])
  expect(direct.stdout + direct.stderr).toBe('seen GET /direct 0')
})

test('a door of the way out is no server to wait for, and a server that had the port before is', async ({ skip }) => {
  if (ground.withoutDirect !== undefined) skip(ground.withoutDirect)
  await using sandbox = await Sandbox.create({ platform: ground.platform, network: { allow: ['shop.example.com:9099'] } })
  for (const port of [9099, 53, 3128]) await expect(sandbox.waitForPort(port, { timeout: 100 })).rejects.toMatchObject({ code: 'not-found' })
  await expect(sandbox.url(9099, { waitFor: 100 })).rejects.toMatchObject({ code: 'not-found' })
  await sandbox.spawn(['python3', '-m', 'http.server', '9101'])
  await sandbox.waitForPort(9101)
  await sandbox.network.update({ allow: ['shop.example.com:9099', 'shop.example.com:9101'] })
  await sandbox.waitForPort(9101, { timeout: 100 })
})
