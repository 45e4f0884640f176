import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { Sandbox } from '../../src/sandbox/index.js'
import { httpServer, httpsServer, type OtherSide } from '../egress/front-servers.js'
import { type NetworkGround, openGround } from './network-ground.js'

let ground: NetworkGround
let http: OtherSide
let https: OtherSide

beforeAll(async () => {
  ground = await openGround()
  http = await httpServer()
  https = await httpsServer({ authority: ground.authority, host: 'shop.example.com' })
})
afterAll(async () => {
  await ground[Symbol.asyncDispose]()
  await http[Symbol.asyncDispose]()
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
