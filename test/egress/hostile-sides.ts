/** Other sides that speak their protocol badly on purpose: bytes as they are written here, over plain TCP or TLS. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { createServer as createTls } from 'node:tls'
import type { TestAuthority } from './front-servers.js'

type Act = (socket: Socket, received: Buffer) => void

export interface HostileSide extends AsyncDisposable {
  readonly port: number
  /** Of each connection, in order. */
  readonly heard: readonly string[]
  readonly open: () => number
}

interface HostileOptions {
  /** With TLS, as that host, and one of these protocols. */
  readonly secure?: { readonly authority: TestAuthority; readonly host: string; readonly protocols: string[] }
  /** At the first bytes of a connection, and at those after them when `always`. */
  readonly act: Act
  readonly always?: boolean
}

export async function hostileSide({ secure, act, always = false }: HostileOptions): Promise<HostileSide> {
  const heard: string[] = []
  const sockets = new Set<Socket>()
  const take = (socket: Socket): void => {
    const index = heard.push('') - 1
    let isBegun = false
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
    socket.on('data', (bytes: Buffer) => {
      heard[index] += bytes.toString('latin1')
      if (isBegun && !always) return
      isBegun = true
      act(socket, bytes)
    })
  }
  const server: Server = secure ? createTls({ ...secure.authority.pairFor(secure.host), ALPNProtocols: secure.protocols }, take) : createServer(take)
  if (secure) server.on('secureConnection', () => undefined)
  server.on('tlsClientError', () => undefined)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    heard,
    open: () => sockets.size,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
