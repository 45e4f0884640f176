/** What a program does inside of TLS that is terminated: by CONNECT, trusting nobody but the authority of the front. */
import { once } from 'node:events'
import { connect as connectHttp2, type IncomingHttpHeaders } from 'node:http2'
import { connect } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import type { OpenFront } from './front-harness.js'

export async function secureInside(front: OpenFront, { port, protocol = 'h2' }: { port: number; protocol?: 'h2' | 'http/1.1' }): Promise<TLSSocket> {
  const socket = connect(front.port, '127.0.0.1')
  socket.on('error', () => undefined)
  socket.write(`CONNECT api.test:${port} HTTP/1.1\r\nHost: api.test:${port}\r\n\r\n`)
  await Promise.race([once(socket, 'data'), once(socket, 'close').then(() => Promise.reject(new Error('refused')))])
  const secure = connectTls({ socket, servername: 'api.test', ca: front.certificate, ALPNProtocols: [protocol] })
  secure.on('error', () => undefined)
  await once(secure, 'secureConnect')
  return secure
}

export interface Got {
  status: number | undefined
  headers: IncomingHttpHeaders
  body: string
  /** Broken off, rather than ended. */
  isCut: boolean
}

/** One request of HTTP/2, however it ends. */
export async function askHttp2(front: OpenFront, { port }: { port: number }, headers: Record<string, string> = {}): Promise<Got> {
  const secure = await secureInside(front, { port })
  const session = connectHttp2('https://api.test', { createConnection: () => secure })
  session.on('error', () => undefined)
  const stream = session.request({ ':path': '/', ':authority': `api.test:${port}`, ...headers })
  const got: Got = { status: undefined, headers: {}, body: '', isCut: false }
  stream.on('error', () => (got.isCut = true))
  stream.on('response', (given) => {
    got.headers = given
    got.status = given[':status']
  })
  stream.on('data', (chunk: Buffer) => (got.body += chunk.toString('latin1')))
  await new Promise((resolve) => stream.once('close', resolve))
  session.destroy()
  return got
}
