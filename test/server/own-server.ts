import { mkdtempSync, rmSync } from 'node:fs'
import { type IncomingHttpHeaders, request } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '../../src/client/index.js'
import type { Platform } from '../../src/contract/platform.js'
import type { Scope, TenantInput } from '../../src/contract/tenants.js'
import type { Driver } from '../../src/contract/driver.js'
import { createFakeDriver } from '../../src/drivers/fake/driver.js'
import { localActor, openHouse, openLedger } from '../../src/ledger.js'
import type { RequestLine } from '../../src/contract/wire/request-line.js'
import { GloveboxServer, type ServerOptions } from '../../src/server/server.js'
import { nodeTransport } from '../../src/sys/http-transport.js'

/** Without walls, and so without waiting: what is tried here is the door. */
export const plain = { driver: 'fake', minTier: 'none' } as const

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  json(): Record<string, unknown>
}

export interface Asking {
  readonly method?: string
  readonly key?: string | undefined
  /** Sent as JSON unless it is text or bytes. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  /** The address that it comes from: wrong keys are counted by it. */
  readonly from?: string
}

/** A server with everything real behind it but walls: a ledger in a folder of its own, a house, engines; on a port of the loopback. */
export async function ownServer(options: Partial<ServerOptions> & { readonly tenants?: readonly TenantInput[]; readonly drivers?: readonly Driver[] } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'glovebox-server-test-'))
  const ledger = await openLedger({ folder, leastFreeBytes: 0 })
  for (const tenant of [{ id: 'red' }, { id: 'blue' }, ...(options.tenants ?? [])]) await ledger.tenants.create(tenant, localActor)
  const house = await openHouse(ledger, { drivers: options.drivers ?? [createFakeDriver()], snapshotDir: join(folder, 'snapshots') })
  const lines: RequestLine[] = []
  const server = new GloveboxServer({
    house,
    keys: ledger.keys,
    tenants: ledger.tenants,
    quotas: ledger.quotas,
    audit: ledger.trail,
    templates: { list: () => Promise.resolve([]) },
    version: '0.0.0',
    door: { hosts: [], origins: ['https://pages.example'], domain: 'boxes.test' },
    allowed: { mounts: false, seccomp: false, drivers: ['fake'] },
    log: (line) => lines.push(line),
    ...options,
  })
  const { port = 0, url } = await server.listen({ host: '127.0.0.1', port: 0 })
  const key = async (tenant: string, scope: Scope = 'run', expires?: string): Promise<string> => {
    const all: readonly Scope[] = ['read', 'run', 'admin']
    return (await ledger.keys.create({ tenant, scopes: all.slice(0, all.indexOf(scope) + 1), ...(expires && { expires }) }, localActor)).secret
  }
  const transports: Platform[] = []
  return {
    server,
    ledger,
    house,
    port,
    url,
    lines,
    key,
    ask: (path: string, asking: Asking = {}) => ask(port, path, asking),
    client: (secret: string): Platform => {
      const client = createClient({ key: secret, transport: nodeTransport({ place: { url } }) })
      transports.push(client)
      return client
    },
    async [Symbol.asyncDispose]() {
      for (const client of transports) await client[Symbol.asyncDispose]()
      await server.close()
      await house[Symbol.asyncDispose]()
      await ledger[Symbol.asyncDispose]()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export type OwnServer = Awaited<ReturnType<typeof ownServer>>

/** One request as anyone's program would send it, to a port of the loopback or to a socket. */
export function ask(at: number | string, path: string, { method, key, body, headers = {}, from }: Asking = {}): Promise<Answer> {
  const bytes = body === undefined ? undefined : typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body)
  const own = { ...(key !== undefined && { authorization: `Bearer ${key}` }), ...(bytes !== undefined && { 'content-type': 'application/json' }) }
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        ...(typeof at === 'string' ? { socketPath: at } : { host: '127.0.0.1', port: at }),
        path,
        ...(from !== undefined && { localAddress: from }),
        method: method ?? (body === undefined ? 'GET' : 'POST'),
        headers: { ...own, ...headers } as Record<string, string>,
      },
      (response) => {
        const pieces: Buffer[] = []
        response.on('data', (piece: Buffer) => pieces.push(piece))
        response.on('error', reject)
        response.on('end', () => {
          const text = Buffer.concat(pieces).toString()
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text, json: () => JSON.parse(text) as Record<string, unknown> })
        })
      },
    )
    sent.on('error', reject)
    sent.end(bytes)
  })
}

/** Bytes as they are, and all that comes back until the other side ends. */
export function askRaw(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    let heard = ''
    socket.on('data', (piece) => {
      heard += piece.toString('latin1')
    })
    socket.on('error', (error: NodeJS.ErrnoException) => (error.code === 'ECONNRESET' || error.code === 'EPIPE' ? resolve(heard) : reject(error)))
    socket.on('close', () => resolve(heard))
    socket.write(text, 'latin1')
    setTimeout(() => socket.destroy(), 3000).unref()
  })
}
