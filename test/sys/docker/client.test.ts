import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createEngineClient, type EngineClient } from '../../../src/sys/docker/client.js'
import { rejectionOf } from '../../engine/collect.js'
import { testUnless } from '../../unless.js'

let folder: string
let server: Server | undefined
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gbx-client-'))
})
afterEach(() => {
  server?.closeAllConnections()
  server?.close()
  server = undefined
  rmSync(folder, { recursive: true })
})

async function listen(answer: RequestListener): Promise<EngineClient> {
  const path = join(folder, 'socket')
  server = createServer((request, response) => {
    if (request.url === '/_ping') response.setHeader('Api-Version', '1.99').end('OK')
    else answer(request, response)
  })
  await new Promise<void>((resolve) => server?.listen(path, resolve))
  return createEngineClient({ kind: 'socket', path })
}

describe('an engine that cannot be reached', () => {
  test('is told with the command that starts it', async () => {
    const error = await rejectionOf(createEngineClient({ kind: 'socket', path: join(folder, 'none') }).version())
    expect(error).toMatchObject({ code: 'unavailable', message: expect.stringContaining('there is no such socket'), hint: 'systemctl start docker' })
  })

  testUnless(process.getuid?.() === 0 && 'root may connect to every socket')('is told with the command that lets a user in', async () => {
    const client = await listen((_, response) => response.end())
    chmodSync(join(folder, 'socket'), 0)
    expect(await rejectionOf(client.version())).toMatchObject({ message: expect.stringContaining('may not connect'), hint: expect.stringContaining('usermod') })
  })

  test('by its answer is waited for no longer than a call may take', async () => {
    const client = await listen(() => undefined)
    const error = await rejectionOf(client.call('GET', '/info', { timeoutMs: 50 }))
    expect(error).toMatchObject({ code: 'unavailable', message: expect.stringContaining('no answer to GET /v1.43/info within 50 ms') })
  })

  test('in the middle of an answer is waited for no longer either', async () => {
    const client = await listen((_, response) => void response.writeHead(200, { 'Content-Type': 'application/json' }).write('{'))
    expect(await rejectionOf(client.call('GET', '/info', { timeoutMs: 50 }))).toBeInstanceOf(Error)
  })

  test('that never stops to answer is listened to no longer than an answer may be', async () => {
    const piece = Buffer.alloc(2 ** 20, ' ')
    let sent = 0
    const client = await listen((_, response) => {
      const send = (): void => {
        while (!response.destroyed && response.write(piece)) sent += 1
      }
      response.on('drain', send).writeHead(200, { 'Content-Type': 'application/json' })
      send()
    })
    expect(await rejectionOf(client.call('GET', '/info', { timeoutMs: 5000 }))).toMatchObject({
      code: 'broken',
      message: 'the answer to GET /info is larger than 16777216 bytes',
    })
    expect(sent).toBeLessThan(64)
  })

  test('stops being waited for when nobody wants it any more', async () => {
    const client = await listen(() => undefined)
    const stop = new AbortController()
    const call = rejectionOf(client.call('GET', '/info', { signal: stop.signal }))
    stop.abort(new Error('enough'))
    expect(await call).toMatchObject({ message: 'enough' })
  })
})

describe('the answer of an engine', () => {
  test('is asked for in the newest version that both know', async () => {
    const client = await listen((request, response) => response.setHeader('Content-Type', 'application/json').end(JSON.stringify(request.url)))
    expect(await client.call('GET', '/x', { query: { name: 'a b&c' } })).toBe('/v1.43/x?name=a+b%26c')
  })

  test('that is a refusal has its status and its words', async () => {
    const client = await listen((_, response) => response.writeHead(404).end(JSON.stringify({ message: 'No such container' })))
    expect(await rejectionOf(client.call('GET', '/x'))).toMatchObject({ status: 404, message: 'the container engine refuses GET /x: No such container' })
  })

  test('in progress comes to what its last line says', async () => {
    const client = await listen((_, response) => response.setHeader('Content-Type', 'application/json').end('{"status":"one"}\n{"status":"two"}\n'))
    expect(await client.call('POST', '/images/create')).toEqual({ status: 'two' })
  })

  test('of one that is too old is refused before anything is asked of it', async () => {
    const path = join(folder, 'old')
    server = createServer((_, response) => response.setHeader('Api-Version', '1.24').end('OK'))
    await new Promise<void>((resolve) => server?.listen(path, resolve))
    const error = await rejectionOf(createEngineClient({ kind: 'socket', path }).call('GET', '/info'))
    expect(error).toMatchObject({ code: 'unavailable', message: expect.stringContaining('speaks version 1.24 of the Engine API; 1.40 is needed') })
  })

  test('of one that wants TLS says how it is asked with it', async () => {
    server = createServer((_, response) => response.writeHead(400).end('Client sent an HTTP request to an HTTPS server.\n'))
    await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve))
    const { port } = server?.address() as AddressInfo
    const error = await rejectionOf(createEngineClient({ kind: 'tcp', host: '127.0.0.1', port, tls: undefined }).call('GET', '/info'))
    expect(error).toMatchObject({
      code: 'unavailable',
      message: `the container engine at tcp://127.0.0.1:${port} is asked without TLS, and wants it`,
      hint: 'export DOCKER_TLS_VERIFY=1 DOCKER_CERT_PATH=~/.docker',
    })
  })

  test('of what is no engine is told as that', async () => {
    const path = join(folder, 'other')
    server = createServer((_, response) => response.end('hello'))
    await new Promise<void>((resolve) => server?.listen(path, resolve))
    const error = await rejectionOf(createEngineClient({ kind: 'socket', path }).call('GET', '/info'))
    expect(error).toMatchObject({
      code: 'unavailable',
      message: `unix://${path} does not say which version of the Engine API it speaks: it is no container engine`,
    })
  })

  test('that hands over no streams is no connection', async () => {
    const client = await listen((_, response) => response.writeHead(409).end(JSON.stringify({ message: 'paused' })))
    expect(await rejectionOf(client.hijack('/containers/x/attach'))).toMatchObject({ status: 409, message: expect.stringContaining('paused') })
  })
})
