import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { connect as connectTls } from 'node:tls'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { testUnless } from '../unless.js'
import { exchange, type OpenFront, openFront, statusOf } from './front-harness.js'
import { httpServer, httpsServer, scratch, testAuthority } from './front-servers.js'

const hosts = { 'api.test': '127.66.0.2', 'other.test': '127.66.0.2' }
const notRoot = process.getuid?.() !== 0 && 'ports below 1024 need root'
const run = promisify(execFile)

function question(name: string): Buffer {
  const labels = name.split('.').map((label) => Buffer.concat([Buffer.of(label.length), Buffer.from(label)]))
  return Buffer.concat([Buffer.from('123401000001000000000000', 'hex'), ...labels, Buffer.from('0000010001', 'hex')])
}

function framed(message: Buffer): Buffer {
  return Buffer.concat([Buffer.of(message.length >> 8, message.length & 0xff), message])
}

/** What the front says that a name's address is. */
async function addressOf(front: OpenFront, name: string): Promise<string> {
  const answer = Buffer.from((await front.egress.answer(question(name))) ?? [])
  return [...answer.subarray(-4)].join('.')
}

test('DNS over TCP gives the same answers as over UDP, one after another', async () => {
  await using front = await openFront({ network: { allow: ['api.test'] }, hosts })
  const door = await front.direct('127.0.0.53', 53)
  const [known, unknown] = await Promise.all([front.egress.answer(question('api.test')), front.egress.answer(question('other.test'))])
  const expected = Buffer.concat([framed(Buffer.from(known ?? [])), framed(Buffer.from(unknown ?? []))])

  const sent = Buffer.concat([framed(question('api.test')), framed(question('other.test'))])
  const answer = await exchange(door, [sent.subarray(0, 7), sent.subarray(7)], { until: new RegExp(`^[^]{${expected.length}}$`) })

  expect(Buffer.from(answer, 'latin1')).toEqual(expected)
  expect(front.resolved).toEqual([])
})

test('DNS over TCP with a message that is too long ends the connection', async () => {
  await using front = await openFront({ network: { allow: ['api.test'] }, hosts })

  expect(await exchange(await front.direct('127.0.0.53', 53), Buffer.alloc(5000, 0xff))).toBe('')
})

testUnless(notRoot)('a direct connection of HTTP goes to the name that its address stands for, and Host must be that', async () => {
  await using server = await httpServer({ port: 80, address: '127.66.0.2' })
  await using front = await openFront({ network: { allow: ['api.test', 'other.test'] }, hosts })
  const door = await front.direct(await addressOf(front, 'api.test'), 80)

  expect(await exchange(door, 'GET /x HTTP/1.1\r\nHost: api.test\r\n\r\n', { until: /seen/ })).toContain('seen GET /x')
  expect(statusOf(await exchange(door, 'GET /x HTTP/1.1\r\nHost: other.test\r\n\r\n'))).toBe('HTTP/1.1 403 Forbidden')
  expect(server.seen).toHaveLength(1)
  expect(front.resolved).toEqual(['api.test'])
})

testUnless(notRoot)('a direct connection of TLS goes to the name that its address stands for, and must name it', async () => {
  const authority = testAuthority()
  await using server = await httpsServer({ authority, host: 'api.test', port: 443, address: '127.66.0.2' })
  await using front = await openFront({ network: { allow: ['api.test', 'other.test'] }, hosts })
  const door = await front.direct(await addressOf(front, 'api.test'), 443)
  const secure = async (servername: string): Promise<boolean> => {
    const socket = connectTls({ port: door, host: '127.0.0.1', servername, ca: authority.certificate, checkServerIdentity: () => undefined })
    await once(socket, 'secureConnect')
    socket.destroy()
    return socket.authorized
  }

  expect(await secure('api.test')).toBe(true)
  await expect(secure('other.test')).rejects.toThrow('access denied')
  expect(server.seen).toEqual([])
})

test('whoever may approve is asked once for a tunnel, and its answer holds', async () => {
  await using server = await httpServer()
  const asked: string[] = []
  await using front = await openFront({
    network: { allow: [] },
    timings: { entranceMs: 1500 },
    hosts: { 'api.test': '127.0.0.1', 'other.test': '127.0.0.1' },
    onRequest: async ({ host }) => {
      asked.push(host)
      // Longer than a connection may take to say what it wants.
      await new Promise((resolve) => setTimeout(resolve, 2000))
      return host === 'api.test' ? 'once' : 'deny'
    },
  })
  const tunnel = (host: string): string => `CONNECT ${host}:${server.port} HTTP/1.1\r\nHost: ${host}\r\n\r\n`

  expect(statusOf(await exchange(front.port, tunnel('api.test'), { until: /established/ }))).toContain(' 200 ')
  expect(statusOf(await exchange(front.port, tunnel('other.test')))).toContain(' 403 ')
  expect(asked).toEqual(['api.test', 'other.test'])
})

const noCurl = await run('curl', ['--version']).then(
  () => false as const,
  () => 'curl is not installed',
)

testUnless(noCurl)('curl: by proxy, by SOCKS, terminated with HTTP/2 and HTTP/1.1, and what follows a redirect is judged anew', async () => {
  const authority = testAuthority()
  await using elsewhere = await httpServer()
  await using server = await httpsServer({
    authority,
    host: 'api.test',
    answer: (request, response) => {
      if (request.url === '/away') response.writeHead(302, { location: `http://other.test:${elsewhere.port}/` }).end()
      else response.end(`ok ${request.url} ${request.headers.authorization ?? ''}`)
    },
  })
  using folder = scratch()
  const host = `api.test:${server.port}`
  await using front = await openFront({
    network: { allow: [host], credentials: [{ host, header: 'authorization', value: 'Bearer real' }] },
    hosts: { 'api.test': '127.0.0.1', 'other.test': '127.0.0.1' },
    trusted: [authority.certificate],
  })
  const ca = join(folder.path, 'ca.pem')
  writeFileSync(ca, front.certificate)
  const curl = async (...options: string[]): Promise<string> =>
    (await run('curl', ['-sS', '--cacert', ca, ...options], { env: { PATH: process.env.PATH } })).stdout
  const proxy = ['-x', `http://127.0.0.1:${front.port}`]

  expect(await curl(...proxy, `https://${host}/1`)).toBe('ok /1 Bearer real')
  expect(await curl(...proxy, '--http1.1', '-H', 'Authorization: own', `https://${host}/2`)).toBe('ok /2 Bearer real')
  expect(await curl('-x', `socks5h://127.0.0.1:${front.port}`, `https://${host}/3`)).toBe('ok /3 Bearer real')
  expect(await curl(...proxy, '-L', '-w', ' %{http_code}', `https://${host}/away`)).toMatch(/^glovebox: other.test port \d+ is denied[^]* 403$/)
  expect(elsewhere.connections()).toBe(0)
})
