import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type OwnServer, ownServer, plain } from './own-server.js'

describe('what callers over HTTP may ask of the machine', () => {
  let own: OwnServer
  let key: string
  beforeAll(async () => {
    own = await ownServer()
    key = await own.key('red')
  })
  afterAll(() => own[Symbol.asyncDispose]())

  const mount = { mounts: [{ source: '/etc', target: '/mnt/etc' }] }
  const forbidden: readonly (readonly [string, object])[] = [
    ['mounts', mount],
    ['seccomp', { seccomp: { defaultAction: 'SCMP_ACT_ALLOW' } }],
    ['seccomp', { seccomp: '/etc/passwd' }],
    ['network.credentials[0].file', { network: { allow: ['a.example'], credentials: [{ host: 'a.example', header: 'x', file: '/etc/shadow' }] } }],
    ['network.credentials[0].env', { network: { allow: ['a.example'], credentials: [{ host: 'a.example', header: 'x', env: 'PATH' }] } }],
    ['seccomp', { policy: { defaults: { seccomp: '/etc/passwd' } } }],
    ['network.credentials[0].env', { policy: { defaults: { network: { credentials: [{ host: 'a.example', header: 'x', env: 'PATH' }] } } } }],
    ['minTier', { minTier: 'none', driver: 'other' }],
  ]

  test.each(forbidden)('S-17 %s is refused by every way to a sandbox', async (field, spec) => {
    const ways: readonly (readonly [string, object])[] = [
      ['/v1/sandboxes', { ...plain, ...spec }],
      ['/v1/runs', { command: ['true'], sandbox: { ...plain, ...spec } }],
      ['/v1/pools', { spec: { ...plain, ...spec } }],
      ['/v1/takes', { spec: { ...plain, ...spec } }],
    ]
    for (const [path, body] of ways) {
      const answer = await own.ask(path, { key, body })
      expect([answer.status, answer.json().code, String(answer.json().message).split(':')[0]]).toEqual([403, 'forbidden', field])
    }
  })

  test('S-17 without the operator’s word there is no sandbox without walls', async () => {
    await using strict = await ownServer({ allowed: { mounts: false, seccomp: false, drivers: [] } })
    const answer = await strict.ask('/v1/sandboxes', { key: await strict.key('red'), body: plain })
    expect([answer.status, answer.json().code]).toEqual([403, 'forbidden'])
  })

  test.each([
    ['privileged', { privileged: true }],
    ['devices', { devices: ['/dev/sda'] }],
    ['capabilities', { capabilities: ['SYS_ADMIN'] }],
    ['network', { network: 'host' }],
    ['template', { template: '--privileged' }],
    ['template', { template: '/:/host' }],
    ['name', { name: 'a\nb' }],
    ['env', { env: { 'A\0': 'b' } }],
    ['tenant', { tenant: 'blue' }],
  ])('S-16 S-17 S-29 %s that is no wish of ours is refused by its name', async (field, spec) => {
    const answer = await own.ask('/v1/sandboxes', { key, body: { ...plain, ...spec } })
    expect([answer.status, String(answer.json().message)]).toEqual([400, expect.stringContaining(field)])
  })

  test('S-22 set-id bits are refused, and nothing is written', async () => {
    const client = own.client(key)
    const { id } = await client.create(plain)
    const files = `/v1/sandboxes/${id}/files`
    const bytes = { 'content-type': 'application/octet-stream' }
    const answers = [
      await own.ask(`${files}/content?path=a&mode=${0o4777}`, { key, method: 'PUT', body: 'x', headers: bytes }),
      await own.ask(`${files}/mkdir`, { key, body: { path: 'b', mode: 0o2755 } }),
      await own.ask(`${files}/chmod`, { key, body: { path: '.', mode: 0o6755 } }),
    ]
    expect(answers.map(({ status }) => status)).toEqual([403, 403, 403])
    expect([await client.files.of(id).stat('a'), await client.files.of(id).stat('b')]).toEqual([null, null])
    expect((await own.ask(`${files}/mkdir`, { key, body: { path: 'b', mode: 0o755 } })).status).toBe(200)
    await client.close(id)
  })
})
