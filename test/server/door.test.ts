import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startServing } from '../../src/serve.js'
import { askRaw, type OwnServer, ownServer, plain } from './own-server.js'

describe('the door of the server', () => {
  let own: OwnServer
  let key: string
  beforeAll(async () => {
    own = await ownServer({ bounds: { mostJsonBytes: 1 << 20, idleMs: 300 } })
    key = await own.key('red')
  })
  afterAll(() => own[Symbol.asyncDispose]())

  test.each([
    ['/v1/../v1/sandboxes', [400, 404]],
    ['/v1/%2e%2e/sandboxes', [400, 404]],
    ['/v1//sandboxes', [400, 404]],
    ['//v1/sandboxes', [400, 404]],
    ['/v1/sandboxes/%00', [400]],
    ['/v1/sandboxes/a%2fb', [400]],
    ['/v1/sandboxes/a%5cb', [400]],
    ['/v1/sandboxes/%zz', [400]],
    ['/v1/sandboxes/', [400]],
    [`/v1/sandboxes/${'a'.repeat(10_000)}`, [400]],
    ['/etc/passwd', [404]],
  ])('S-02 %s leads nowhere', async (path, statuses) => {
    expect(statuses).toContain((await own.ask(path, { key })).status)
  })

  test.each([
    ['no JSON', '{'],
    ['a name twice', '{"name":"a","name":"b"}'],
    ['a name twice, once escaped', '{"name":"a","n\\u0061me":"b"}'],
    ['a prototype', '{"__proto__":{"a":1}}'],
    ['a prototype deeper', '{"metadata":{"__proto__":"x"}}'],
    ['a constructor', '{"constructor":{"prototype":{"polluted":1}}}'],
    ['100,000 levels', '['.repeat(100_000) + ']'.repeat(100_000)],
    ['a byte order mark', '\ufeff{}'],
    ['NaN', '{"limits":{"cpus":NaN}}'],
    ['a number beyond all bounds', '{"limits":{"memory":1e400}}'],
    ['an array', '[]'],
    ['a text', '"a"'],
    ['null', 'null'],
    ['a wrong type', '{"name":7}'],
    ['an unknown field', '{"nmae":"a"}'],
  ])('S-04 %s as a body is 400, and changes nothing', async (_, body) => {
    const answer = await own.ask('/v1/sandboxes', { key, body })
    expect([answer.status, answer.json().code]).toEqual([400, 'invalid'])
    expect(({} as Record<string, unknown>).polluted).toBeUndefined()
    expect((await own.ask('/v1/health')).status).toBe(200)
  })

  test('S-04 a body that is no UTF-8 is 400', async () => {
    expect((await own.ask('/v1/sandboxes', { key, body: Uint8Array.from([0x7b, 0x22, 0xff, 0x22, 0x7d]) })).status).toBe(400)
  })

  test.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data', ''])('S-05 JSON that calls itself %s is 415', async (type) => {
    expect((await own.ask('/v1/sandboxes', { key, body: '{}', headers: { 'content-type': type } })).status).toBe(415)
  })

  test.each(['https://evil.test', 'null', 'http://127.0.0.1', 'https://pages.example.evil.test'])(
    'S-07 a page of %s is refused whatever it asks, and is not let at the answer',
    async (origin) => {
      for (const asking of [{}, { body: plain }, { method: 'OPTIONS', headers: { 'access-control-request-method': 'POST' } }]) {
        const answer = await own.ask('/v1/sandboxes', { key, ...asking, headers: { ...('headers' in asking ? asking.headers : {}), origin } })
        expect([answer.status, answer.headers['access-control-allow-origin']]).toEqual([403, undefined])
      }
    },
  )

  test('S-07 a page of a listed origin is let at the answer, by its name and without credentials', async () => {
    const headers = { origin: 'https://pages.example' }
    const answer = await own.ask('/v1/sandboxes', { key, headers })
    expect([answer.status, answer.headers['access-control-allow-origin'], answer.headers['access-control-allow-credentials']]).toEqual([
      200,
      'https://pages.example',
      undefined,
    ])
    const preflight = await own.ask('/v1/sandboxes', { method: 'OPTIONS', headers: { ...headers, 'access-control-request-method': 'POST' } })
    expect([preflight.status, preflight.headers['access-control-allow-headers']]).toEqual([204, expect.stringContaining('authorization')])
  })

  test.each(['evil.test', 'evil.test:80', '169.254.169.254', 'localhost.evil.test'])('a server that is called %s is another one', async (host) => {
    expect((await own.ask('/v1/sandboxes', { key, headers: { host } })).status).toBe(403)
  })

  test.each(['TRACE', 'CONNECT', 'PROPFIND'])('S-13 %s is no method of ours', async (method) => {
    const answer = await askRaw(own.port, `${method} /v1/sandboxes HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${key}\r\nconnection: close\r\n\r\n`)
    expect(answer).not.toMatch(/^HTTP\/1\.1 2/)
  })

  test('S-13 no header, form of address or version of HTTP gets past the key', async () => {
    const requests = [
      'GET /v1/sandboxes HTTP/1.0\r\nhost: localhost\r\n\r\n',
      'HEAD /v1/sandboxes HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n',
      'GET http://localhost/v1/sandboxes HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n',
      'POST /v1/health HTTP/1.1\r\nhost: localhost\r\nx-http-method-override: GET\r\ncontent-length: 0\r\nconnection: close\r\n\r\n',
      'GET /v1/sandboxes HTTP/1.1\r\nhost: localhost\r\nx-original-url: /v1/health\r\nx-forwarded-for: 127.0.0.1\r\nconnection: close\r\n\r\n',
      'OPTIONS /v1/sandboxes HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n',
    ]
    for (const request of requests) expect(await askRaw(own.port, request)).toMatch(/^HTTP\/1\.1 (?:400|401|405) /)
  })

  test.each([
    ['a length and chunks', 'content-length: 5\r\ntransfer-encoding: chunked'],
    ['two lengths', 'content-length: 5\r\ncontent-length: 6'],
    ['a length that is none', 'content-length: +5'],
    ['an unknown encoding', 'transfer-encoding: chunked, identity'],
    ['a space before the colon', 'transfer-encoding : chunked'],
    ['a line without a return', 'x: y\n z: w\ntransfer-encoding: chunked'],
    ['two hosts', 'host: evil.test'],
  ])('S-14 %s in one request is refused, and what follows it is never taken for another', async (_, head) => {
    const smuggled = 'GET /v1/health HTTP/1.1\r\nhost: localhost\r\n\r\n'
    const request = `POST /v1/sandboxes HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n${head}\r\n\r\n0\r\n\r\n${smuggled}`
    const answer = await askRaw(own.port, request)
    expect(answer).not.toContain('"ok"')
    expect(answer).toMatch(/^(?:HTTP\/1\.1 4\d\d |$)/)
  })

  test('headers without an end, and more of them than anyone needs, are given up', async () => {
    expect(await askRaw(own.port, `GET /v1/health HTTP/1.1\r\nhost: localhost\r\n${'x'.repeat(40_000)}: y\r\n\r\n`)).toMatch(/^HTTP\/1\.1 4/)
  })

  test('a body that is larger than allowed is 413 before it is read, and one that grows is too', async () => {
    expect((await own.ask('/v1/sandboxes', { key, body: ' '.repeat((1 << 20) + 1) })).status).toBe(413)
    const chunk = `${(1 << 19).toString(16)}\r\n${' '.repeat(1 << 19)}\r\n`
    const head = `POST /v1/sandboxes HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`
    expect(await askRaw(own.port, head + chunk.repeat(3))).toMatch(/^HTTP\/1\.1 413 /)
  })

  test('a body that does not come is 408', async () => {
    const head = `POST /v1/sandboxes HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\r\n{`
    expect(await askRaw(own.port, head)).toMatch(/^HTTP\/1\.1 408 /)
  })

  test('M-16 errors name neither places of the machine nor code, and the log holds no key', async () => {
    const { id } = await own.client(key).create(plain)
    const answers = [
      await own.ask(`/v1/sandboxes/${id}/files/content?path=${encodeURIComponent('/no/such')}`, { key }),
      await own.ask('/v1/sandboxes', { key, body: { template: 'no-such' } }),
      await own.ask('/v1/snapshots/none', { key, method: 'DELETE' }),
      await own.ask(`/v1/sandboxes/${id}/processes`, { key, body: { command: 7 } }),
    ]
    for (const { text } of answers) expect(text).not.toMatch(/\/root\/|node_modules|\.ts:|at .*\(/)
    expect(JSON.stringify(own.lines)).not.toContain(key)
    expect(own.lines.at(-1)).toMatchObject({ route: 'processes.start', status: 400, tenant: 'red', error: 'invalid' })
  })
})

describe('where it listens', () => {
  const folder = mkdtempSync(join(tmpdir(), 'glovebox-listen-test-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  const state = (): string => mkdtempSync(join(folder, 'state-'))

  test('S-11 a socket is its owner’s alone, and one that an earlier server left is replaced', async () => {
    const socket = join(folder, 'a.sock')
    const first = await startServing({ at: { socket }, state: state() })
    expect(statSync(socket).mode & 0o777).toBe(0o600)
    await expect(startServing({ at: { socket }, state: state() })).rejects.toMatchObject({ code: 'conflict' })
    await first.close()
    const second = await startServing({ at: { socket }, state: state() })
    await second.close()
  })

  test('S-10 another address than the loopback needs a certificate or the word for it, and a key', async () => {
    const at = { host: '0.0.0.0', port: 0 }
    await expect(startServing({ at, state: state() })).rejects.toMatchObject({ code: 'invalid', message: expect.stringContaining('certificate') as string })
    await expect(startServing({ at, insecure: true, state: state() })).rejects.toMatchObject({ message: expect.stringContaining('key') as string })
  })
})
