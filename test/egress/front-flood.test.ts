import { once } from 'node:events'
import { request as send } from 'node:http'
import { connect, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import { closed, exchange, openFront, statusOf } from './front-harness.js'
import { httpServer, httpsServer, testAuthority } from './front-servers.js'

const hosts = { 'api.test': '127.0.0.1' }

async function opened(port: number, bytes: string): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  socket.resume()
  await once(socket, 'connect')
  if (bytes) socket.write(bytes)
  return socket
}

test('5,000 connections of one sandbox that say half of something cost another nothing but its turn', async () => {
  await using server = await httpServer()
  const network = { allow: [`api.test:${server.port}`] }
  await using flooded = await openFront({ network, hosts })
  await using quiet = await openFront({ network, hosts })
  const halves = ['', 'G', 'GET http://api.test/ HTTP/1.1\r\nX: ', 'CONNECT ', '\x05', '\x05\x02', '\x16\x03']
  const sockets: Socket[] = []
  let refused = 0
  for (let index = 0; index < 5000; index += 250) {
    const batch = Array.from({ length: 250 }, (_, offset) => opened(flooded.port, halves[(index + offset) % halves.length] ?? ''))
    for (const socket of await Promise.all(batch)) {
      socket.on('close', () => {
        refused += 1
      })
      sockets.push(socket)
    }
  }

  const answer = await exchange(quiet.port, `GET http://api.test:${server.port}/ HTTP/1.1\r\nHost: api.test:${server.port}\r\nConnection: close\r\n\r\n`)

  expect(statusOf(answer)).toBe('HTTP/1.1 200 OK')
  // Of the flood only so many wait; the rest were ended at once.
  await expect.poll(() => refused).toBeGreaterThan(4500)
  expect(sockets.length - refused).toBeGreaterThan(0)
  for (const socket of sockets) socket.destroy()
  await expect
    .poll(async () =>
      statusOf(await exchange(flooded.port, `GET http://api.test:${server.port}/ HTTP/1.1\r\nHost: api.test:${server.port}\r\nConnection: close\r\n\r\n`)),
    )
    .toBe('HTTP/1.1 200 OK')
})

test.each(['', 'GET http://api.test/ HT', '\x05\x01\x00', '\x05', 'CONNECT api.test:443 HTTP/1.1\r\nHost: '])(
  'who has said only %j is ended in time',
  async (bytes) => {
    await using front = await openFront({ network: { allow: ['api.test'] }, hosts, timings: { entranceMs: 50 } })
    const socket = await opened(front.port, bytes)

    await closed(socket)

    expect(socket.destroyed).toBe(true)
  },
)

test('who dribbles a byte now and then is ended in time', async () => {
  await using front = await openFront({ network: { allow: ['api.test'] }, hosts, timings: { entranceMs: 200 } })
  const socket = await opened(front.port, 'GET http://api.test/ HTTP/1.1\r\nX: ')
  const dribble = setInterval(() => socket.write('x'), 10)

  await closed(socket)
  clearInterval(dribble)

  expect(front.records).toEqual([])
})

test('who never finishes TLS that is to be terminated is ended in time', async () => {
  await using front = await openFront({ network: { allow: ['api.test'], terminate: true }, hosts, timings: { entranceMs: 100 } })
  const socket = await opened(front.port, 'CONNECT api.test:443 HTTP/1.1\r\nHost: api.test\r\n\r\n\x16\x03\x01')

  await closed(socket)

  expect(socket.destroyed).toBe(true)
})

test('200 requests at once are all served, over the connections that there may be', async () => {
  let most = 0
  let now = 0
  await using server = await httpServer({
    answer: (_request, response) => {
      now += 1
      most = Math.max(most, now)
      setTimeout(() => {
        now -= 1
        response.end('ok')
      }, 5)
    },
  })
  await using front = await openFront({ network: { allow: [`api.test:${server.port}`], maxConnections: 10 }, hosts })

  const statuses = await Promise.all(
    Array.from(
      { length: 200 },
      (_, index) =>
        new Promise<number>((resolve, reject) => {
          const path = `http://api.test:${server.port}/${index}`
          const sent = send({ port: front.port, host: '127.0.0.1', path, headers: { host: `api.test:${server.port}` }, agent: false }, (response) => {
            response.resume()
            response.on('end', () => resolve(response.statusCode ?? 0))
          })
          sent.on('error', reject)
          sent.end()
        }),
    ),
  )

  expect(statuses.filter((status) => status === 200)).toHaveLength(200)
  expect(most).toBeLessThanOrEqual(10)
  await expect.poll(() => front.egress.summary().byVerdict.allowed).toBe(200)
})

test('200 tunnels of TLS at once hold', async () => {
  const authority = testAuthority()
  await using server = await httpsServer({ authority, host: 'api.test' })
  await using front = await openFront({ network: { allow: [`api.test:${server.port}`], maxConnections: 200 }, hosts })

  const answers = await Promise.all(
    Array.from({ length: 200 }, () => exchange(front.port, `CONNECT api.test:${server.port} HTTP/1.1\r\nHost: api.test\r\n\r\n`, { until: /established/ })),
  )

  expect(answers.filter((answer) => answer.includes(' 200 '))).toHaveLength(200)
})

test('an answer that nobody reads holds the other side back, and not the memory', async () => {
  let sent = 0
  await using server = await httpServer({
    answer: (_request, response) => {
      const chunk = Buffer.alloc(64 * 1024)
      const more = (): void => {
        while (sent < 512 * 1024 * 1024 && !response.destroyed) {
          sent += chunk.length
          if (!response.write(chunk)) return void response.once('drain', more)
        }
      }
      more()
    },
  })
  await using front = await openFront({ network: { allow: [`api.test:${server.port}`] }, hosts })
  const socket = connect(front.port, '127.0.0.1')
  socket.on('error', () => undefined)
  socket.write(`GET http://api.test:${server.port}/ HTTP/1.1\r\nHost: api.test:${server.port}\r\n\r\n`)
  let before = -1
  await expect
    .poll(
      () => {
        const isStill = sent > 0 && sent === before
        before = sent
        return isStill
      },
      { interval: 300 },
    )
    .toBe(true)
  socket.destroy()

  expect(sent).toBeLessThan(64 * 1024 * 1024)
})
