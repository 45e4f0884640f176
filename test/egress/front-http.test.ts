import { Agent, request as send } from 'node:http'
import { expect, test } from 'vitest'
import { exchange, openFront, statusOf } from './front-harness.js'
import { httpServer } from './front-servers.js'

const hosts = { 'api.test': '127.0.0.1', 'other.test': '127.0.0.1' }

interface Got {
  status: number
  headers: Record<string, unknown>
  body: string
}

function viaProxy(
  port: number,
  url: string,
  options: { method?: string; body?: string | Buffer; agent?: Agent; headers?: Record<string, string> } = {},
): Promise<Got> {
  return new Promise((resolve, reject) => {
    const { host } = new URL(url)
    const { method = 'GET', body, agent, headers } = options
    const sent = send({ port, host: '127.0.0.1', path: url, method, headers: { host, ...headers }, ...(agent && { agent }) }, (response) => {
      let text = ''
      response.on('data', (chunk: Buffer) => {
        text += chunk.toString('latin1')
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }))
      response.on('error', reject)
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

test('a request to an allowed host arrives, and its answer comes back', async () => {
  await using server = await httpServer()
  await using front = await openFront({ network: { allow: [`api.test:${server.port}`] }, hosts })

  const got = await viaProxy(front.port, `http://api.test:${server.port}/a/b?c=d`)

  expect(got).toMatchObject({ status: 200, body: 'seen GET /a/b?c=d 0', headers: { 'x-served-by': 'test' } })
  expect(server.seen).toMatchObject([{ method: 'GET', url: '/a/b?c=d', headers: { host: `api.test:${server.port}` } }])
  await expect.poll(() => front.records).toMatchObject([{ host: 'api.test', path: '/a/b', method: 'GET', status: 200, verdict: 'allowed', scheme: 'http' }])
})

test('a denied request is told why, in words, and nothing arrives', async () => {
  await using server = await httpServer()
  await using front = await openFront({ network: { allow: [`api.test:${server.port}`] }, hosts })

  const got = await viaProxy(front.port, `http://other.test:${server.port}/`, { method: 'POST', body: 'x'.repeat(100_000) })

  expect(got.status).toBe(403)
  expect(got.body).toContain(`network.allow: ['other.test:${server.port}'] would allow it`)
  expect(got.headers['x-glovebox-denied']).toContain('other.test')
  expect(server.connections()).toBe(0)
  expect(front.resolved).toEqual([])
})

test('each request on a kept connection is judged by itself', async () => {
  await using server = await httpServer()
  await using front = await openFront({ network: { allow: [`api.test:${server.port}`] }, hosts })
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })

  const urls = ['api.test', 'other.test', 'api.test'].map((host) => `http://${host}:${server.port}/`)
  const statuses: number[] = []
  for (const url of urls) statuses.push((await viaProxy(front.port, url, { agent })).status)
  agent.destroy()

  expect(statuses).toEqual([200, 403, 200])
  expect(server.seen.map(({ headers }) => headers.host)).toEqual([`api.test:${server.port}`, `api.test:${server.port}`])
  expect(server.connections()).toBe(1)
})

test('requests that are sent ahead are answered in order, and each is judged', async () => {
  await using server = await httpServer()
  await using front = await openFront({ network: { allow: [`api.test:${server.port}`] }, hosts })
  const of = (host: string, path: string): string => `GET http://${host}:${server.port}${path} HTTP/1.1\r\nHost: ${host}:${server.port}\r\n\r\n`

  const answer = await exchange(front.port, of('api.test', '/1') + of('other.test', '/2') + of('api.test', '/3'), { until: /seen GET \/3/ })

  expect(answer.match(/HTTP\/1.1 \d+|seen GET \/\d/g)).toEqual(['HTTP/1.1 200', 'seen GET /1', 'HTTP/1.1 403', 'HTTP/1.1 200', 'seen GET /3'])
  expect(server.seen.map(({ url }) => url)).toEqual(['/1', '/3'])
})

test('more requests ahead than anybody needs end the connection', async () => {
  await using server = await httpServer({ answer: () => undefined })
  await using front = await openFront({ network: { allow: [`api.test:${server.port}`] }, hosts })
  const one = `GET http://api.test:${server.port}/ HTTP/1.1\r\nHost: api.test:${server.port}\r\n\r\n`

  expect(await exchange(front.port, one.repeat(1000))).toBe('')
  expect(server.seen.length).toBeLessThan(2)
})

test('a body of ten megabytes goes up and another comes down', async () => {
  const big = Buffer.alloc(10_000_000, 'x')
  await using server = await httpServer({
    answer: (request, response) => {
      let length = 0
      request.on('data', (chunk: Buffer) => {
        length += chunk.length
      })
      request.on('end', () => {
        response.setHeader('x-length', String(length))
        response.end(big)
      })
    },
  })
  await using front = await openFront({ network: { allow: [`api.test:${server.port}`] }, hosts })

  const got = await viaProxy(front.port, `http://api.test:${server.port}/`, { method: 'POST', body: big })

  expect(got.headers['x-length']).toBe('10000000')
  expect(got.body.length).toBe(10_000_000)
  await expect.poll(() => front.records[0]?.bytesDown ?? 0).toBeGreaterThan(10_000_000)
})

test('what belongs to one connection is not passed on, and what Connection names neither', async () => {
  await using server = await httpServer()
  await using front = await openFront({ network: { allow: [`api.test:${server.port}`] }, hosts })
  const lines = ['Proxy-Authorization: Basic eA==', 'Proxy-Connection: keep-alive', 'Keep-Alive: 5', 'TE: trailers', 'X-Mine: 1', 'Connection: close, X-Mine']

  await exchange(front.port, `GET http://api.test:${server.port}/ HTTP/1.1\r\nHost: api.test:${server.port}\r\n${lines.join('\r\n')}\r\nX-Kept: 2\r\n\r\n`)

  const { headers } = server.seen[0] ?? { headers: {} }
  expect(headers).toEqual({ host: `api.test:${server.port}`, 'x-kept': '2', connection: 'keep-alive' })
})

test('a program that waits to be told gets its go only when it is allowed', async () => {
  await using server = await httpServer()
  await using front = await openFront({ network: { allow: [`api.test:${server.port}`] }, hosts })
  const of = (host: string): string =>
    `POST http://${host}:${server.port}/ HTTP/1.1\r\nHost: ${host}:${server.port}\r\nExpect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\n`

  expect(statusOf(await exchange(front.port, of('other.test'), { until: /\r\n\r\n/ }))).toBe('HTTP/1.1 403 Forbidden')
  expect(statusOf(await exchange(front.port, of('api.test'), { until: /\r\n\r\n/ }))).toBe('HTTP/1.1 100 Continue')
  expect(await exchange(front.port, `${of('api.test')}ok`)).toContain('seen POST / 2')
})

test('what is broken off by the other side is broken off for the program', async () => {
  await using server = await httpServer({
    answer: (_request, response) => {
      response.writeHead(200, { 'content-length': '100' })
      response.write('half', () => response.destroy())
    },
  })
  await using front = await openFront({ network: { allow: [`api.test:${server.port}`] }, hosts })

  await expect(viaProxy(front.port, `http://api.test:${server.port}/`)).rejects.toThrow('aborted')
  await expect.poll(() => front.records).toMatchObject([{ verdict: 'failed' }])
})

test('a host that cannot be reached is told as that', async () => {
  await using front = await openFront({ network: { allow: ['api.test:9'] }, hosts })

  const got = await viaProxy(front.port, 'http://api.test:9/')

  expect(got).toMatchObject({ status: 502, body: 'glovebox: 127.0.0.1 port 9: nobody listens there\n' })
})

test('an idle connection that the other side has ended is replaced', async () => {
  await using server = await httpServer({
    answer: (request, response) => {
      response.setHeader('keep-alive', 'timeout=60')
      response.end('ok', () => setImmediate(() => request.socket.destroy()))
    },
  })
  await using front = await openFront({ network: { allow: [`api.test:${server.port}`] }, hosts })
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const statuses: number[] = []
  for (let index = 0; index < 20; index += 1) statuses.push((await viaProxy(front.port, `http://api.test:${server.port}/`, { agent })).status)
  agent.destroy()

  expect(new Set(statuses)).toEqual(new Set([200]))
})
