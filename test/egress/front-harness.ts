/** The doors of the way out with real sockets at both ends: where a cell has the warden's listeners, here are some of the host's loopback. */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Egress, GuestConnection } from '../../src/contract/egress.js'
import { type NetworkInput, type NetworkRecord, networkSchema } from '../../src/contract/network.js'
import { createEgressDoor, type EgressOptions } from '../../src/egress/index.js'
import { parseAddress } from '../../src/policy/network-address.js'
import { networkRules } from '../../src/policy/network-rules.js'

export interface FrontOptions extends EgressOptions {
  readonly network: Exclude<NetworkInput, false>
  /** Every other name has no address. */
  readonly hosts?: Readonly<Record<string, string>>
  readonly onRequest?: Parameters<ReturnType<typeof createEgressDoor>['open']>[0]['onRequest']
}

export interface OpenFront extends AsyncDisposable {
  readonly egress: Egress
  /** Of the proxy. */
  readonly port: number
  readonly certificate: string
  /** Names that were resolved. */
  readonly resolved: readonly string[]
  readonly records: readonly NetworkRecord[]
  update(network: Exclude<NetworkInput, false>): void
  /** A listener whose connections mean to go there; its port. */
  direct(address: string, port: number): Promise<number>
}

const everywhere = ['127.0.0.0/8']

function rulesOf(network: Exclude<NetworkInput, false>) {
  const parsed = networkSchema.parse(network)
  if (parsed === false) throw new Error('no network')
  return networkRules(parsed, everywhere)
}

export async function openFront({ network, hosts = {}, onRequest, ...options }: FrontOptions): Promise<OpenFront> {
  const folder = mkdtempSync(join(tmpdir(), 'front-'))
  const resolved: string[] = []
  const resolver = {
    resolve: async (name: string) => {
      resolved.push(name)
      const address = parseAddress(hosts[name] ?? '')
      if (!address) throw new Error(`no address for ${name}`)
      return [address]
    },
  }
  const door = createEgressDoor({ resolver, authority: { folder }, ...options })
  const egress = await door.open({ sandbox: 'abc', rules: rulesOf(network), ...(onRequest && { onRequest }) })
  const records: NetworkRecord[] = []
  const reading = (async () => {
    for await (const record of egress.log()) records.push(record)
  })()
  const listeners: Server[] = []
  const listen = async (about: Pick<GuestConnection, 'door' | 'address' | 'port'>): Promise<number> => {
    const listener = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => egress.accept(guestConnection(socket, about)))
    listeners.push(listener)
    listener.listen(0, '127.0.0.1', 4096)
    await once(listener, 'listening')
    return (listener.address() as AddressInfo).port
  }
  return {
    egress,
    port: await listen({ door: 'proxy', address: '127.0.0.1', port: 0 }),
    certificate: door.certificate(),
    resolved,
    records,
    update: (next) => egress.update(rulesOf(next)),
    direct: (address, port) => listen({ door: 'direct', address, port }),
    [Symbol.asyncDispose]: async () => {
      for (const listener of listeners) listener.close()
      await door.close()
      await reading
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function guestConnection(socket: Socket, about: Pick<GuestConnection, 'door' | 'address' | 'port'>): GuestConnection {
  socket.on('error', () => undefined)
  return {
    ...about,
    // As it is, iterating to the end would end the other direction, too.
    output: socket.iterator({ destroyOnReturn: false }),
    write: (bytes) => new Promise((resolve, reject) => socket.write(bytes, (error) => (error ? reject(error) : resolve()))),
    end: () => new Promise((resolve) => socket.end(resolve)),
    closed: new Promise((resolve) => socket.once('close', () => resolve())),
    destroy: async () => {
      socket.destroy()
    },
  }
}

/** What comes back for these bytes until the end, or until it says so. */
export async function exchange(port: number, sent: string | Buffer | readonly Buffer[], { until }: { until?: RegExp } = {}): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  let text = ''
  await new Promise<void>((resolve) => {
    socket.on('error', () => resolve())
    socket.on('close', () => resolve())
    socket.on('end', () => resolve())
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1')
      if (until?.test(text) === true) resolve()
    })
    for (const part of typeof sent === 'string' ? [Buffer.from(sent, 'latin1')] : Buffer.isBuffer(sent) ? [sent] : sent) socket.write(part)
  })
  socket.destroy()
  return text
}

export const statusOf = (answer: string): string => answer.split('\r\n')[0] ?? ''

/** However it ended. */
export function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    socket.once('close', () => resolve())
  })
}
