import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { connect as connectTls, createServer as createTls } from 'node:tls'
import { expect, test } from 'vitest'
import { openFront } from './front-harness.js'
import { testAuthority } from './front-servers.js'
import { serve } from './gate-harness.js'

const hosts = { 'api.test': '127.0.0.1' }

/** All that comes for these bytes, which are sent with the end of this direction. */
async function sayAndEnd(port: number, sent: Buffer | string): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  socket.end(sent)
  return await textOf(socket)
}

async function textOf(socket: Socket): Promise<string> {
  let text = ''
  socket.on('error', () => undefined)
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1')
  })
  await new Promise<void>((resolve) => {
    for (const event of ['end', 'close']) socket.once(event, () => resolve())
  })
  socket.destroy()
  return text
}

const whole = 'x'.repeat(20_000)

test('an answer that the end of its connection ends is whole, however slowly it is let through', async () => {
  await using server = await serve((socket) => socket.once('data', () => socket.end(`HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n${whole}`)))
  await using front = await openFront({ network: { allow: [`api.test:${server.port}`], bandwidth: '40k' }, hosts })
  const socket = connect(front.port, '127.0.0.1')
  socket.write(`GET http://api.test:${server.port}/ HTTP/1.0\r\nHost: api.test:${server.port}\r\n\r\n`)
  const answer = await textOf(socket)
  expect(answer.split('\r\n\r\n')[1]?.length).toBe(whole.length)
  expect(front.records.map(({ verdict, bytesDown }) => [verdict, bytesDown > whole.length])).toEqual([['allowed', true]])
})

test('what the other side sent before it closed reaches a program that has ended its own direction', async () => {
  await using server = await serve((socket) => socket.resume().once('end', () => socket.end(whole)))
  await using front = await openFront({ network: { allow: [`api.test:${server.port}`], bandwidth: '40k' }, hosts })
  const connected = 'HTTP/1.1 200 Connection established\r\n\r\n'
  expect((await sayAndEnd(front.port, `CONNECT api.test:${server.port} HTTP/1.1\r\n\r\nhello`)).length).toBe(connected.length + whole.length)
})

test.each(['CONNECT', 'SOCKS'])('after %s, what is sent with the end of its direction arrives', async (way) => {
  const seen: string[] = []
  await using server = await serve((socket) => {
    socket.on('data', (chunk: Buffer) => seen.push(chunk.toString()))
    socket.once('end', () => socket.end('answer'))
  })
  const { port } = server
  await using front = await openFront({ network: { allow: [`api.test:${port}`] }, hosts })
  const name = Buffer.from('api.test')
  const socks = Buffer.concat([Buffer.of(5, 1, 0, 5, 1, 0, 3, name.length), name, Buffer.of(port >> 8, port & 255), Buffer.from('hello')])
  const answer = await sayAndEnd(front.port, way === 'SOCKS' ? socks : `CONNECT api.test:${port} HTTP/1.1\r\n\r\nhello`)
  expect([seen.join(''), answer.slice(-6)]).toEqual(['hello', 'answer'])
})

test('trailers that HTTP/2 has no way to write break off that one answer, and nothing else', async () => {
  const authority = testAuthority()
  const answer = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\netag: a\r\netag: b\r\n\r\n'
  const server = createTls({ ...authority.pairFor('api.test'), ALPNProtocols: ['http/1.1'] }, (socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () => socket.write(answer))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await using front = await openFront({ network: { allow: [`api.test:${port}`], terminate: true }, hosts, trusted: [authority.certificate] })
  const socket = connect(front.port, '127.0.0.1')
  socket.write(`CONNECT api.test:${port} HTTP/1.1\r\n\r\n`)
  await once(socket, 'data')
  const secure = connectTls({ socket, servername: 'api.test', ca: front.certificate, ALPNProtocols: ['h2'] })
  const session = connectHttp2(`https://api.test:${port}`, { createConnection: () => secure })
  const request = session.request({ ':path': '/' })
  request.resume()
  await expect(once(request, 'end')).rejects.toThrow('closed with error code')
  expect(session.destroyed).toBe(false)
  session.destroy()
  server.close()
})
