/** Other sides, real ones: they write down what reached them. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2'
import { createServer as createHttps } from 'node:https'
import type { AddressInfo, Server } from 'node:net'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import type { Duplex } from 'node:stream'
import { join } from 'node:path'
import { generateKeyPairSync } from 'node:crypto'
import { makeCertificate } from '../../src/egress/authority-der.js'

export interface Seen {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, unknown>>
  readonly version: string
  body: string
}

export interface OtherSide extends AsyncDisposable {
  readonly port: number
  readonly seen: readonly Seen[]
  readonly connections: () => number
}

async function listening(server: Server, seen: Seen[], { port = 0, address = '127.0.0.1', onUpgrade }: Place = {}): Promise<OtherSide> {
  let connections = 0
  const open = new Set<{ destroy(): unknown }>()
  server.on('connection', (socket) => {
    connections += 1
    open.add(socket)
    socket.on('close', () => open.delete(socket))
    socket.on('error', () => undefined)
  })
  if (onUpgrade) server.on('upgrade', onUpgrade)
  server.listen(port, address, 4096)
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    seen,
    connections: () => connections,
    [Symbol.asyncDispose]: async () => {
      for (const socket of open) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

interface Place {
  readonly port?: number
  readonly address?: string
  readonly onUpgrade?: (request: IncomingMessage, stream: Duplex) => void
}

/** Writes down, and says what it has seen. */
function noting(seen: Seen[], answer?: RequestListener) {
  return (request: IncomingMessage | Http2ServerRequest, response: Parameters<RequestListener>[1] | Http2ServerResponse): void => {
    const note: Seen = { method: request.method ?? '', url: request.url ?? '', headers: { ...request.headers }, version: request.httpVersion, body: '' }
    seen.push(note)
    if (answer) return answer(request as never, response as never)
    request.on('data', (chunk: Buffer) => {
      note.body += chunk.toString('latin1')
    })
    request.on('end', () => {
      response.setHeader('x-served-by', 'test')
      ;(response as Parameters<RequestListener>[1]).end(`seen ${note.method} ${note.url} ${note.body.length}`)
    })
  }
}

export async function httpServer(options: Place & { answer?: RequestListener } = {}): Promise<OtherSide> {
  const seen: Seen[] = []
  return await listening(createServer(noting(seen, options.answer)), seen, options)
}

export interface TestAuthority {
  readonly certificate: string
  pairFor(host: string): { key: string; cert: string }
}

export function testAuthority(): TestAuthority {
  const issuerKey = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
  const common = { issuer: 'test', issuerKey, serial: Buffer.of(1), notBefore: new Date(Date.now() - 86_400_000), notAfter: new Date(Date.now() + 86_400_000) }
  return {
    certificate: makeCertificate({ ...common, subject: 'test', publicKey: issuerKey.publicKey }),
    pairFor: (host) => {
      const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
      const cert = makeCertificate({ ...common, serial: Buffer.of(2), subject: host, publicKey, host })
      return { cert, key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() }
    },
  }
}

export async function httpsServer(options: Place & { authority: TestAuthority; host: string; answer?: RequestListener }): Promise<OtherSide> {
  const seen: Seen[] = []
  return await listening(createHttps(options.authority.pairFor(options.host), noting(seen, options.answer)), seen, options)
}

/** Of HTTP/2, and of HTTP/1.1 for those who want that. */
export async function http2Server(options: Place & { authority: TestAuthority; host: string; answer?: RequestListener }): Promise<OtherSide> {
  const seen: Seen[] = []
  return await listening(createSecureServer({ ...options.authority.pairFor(options.host), allowHTTP1: true }, noting(seen, options.answer)), seen, options)
}

export function scratch(): Disposable & { readonly path: string } {
  const path = mkdtempSync(join(tmpdir(), 'front-'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}
