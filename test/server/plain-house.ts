import { SandboxError } from '../../src/contract/errors.js'
import type { Platform } from '../../src/contract/platform.js'
import type { Actor, House, Keys } from '../../src/contract/tenants.js'
import { createClient } from '../../src/client/index.js'
import type { ServerOptions } from '../../src/server/server.js'
import { GloveboxServer } from '../../src/server/server.js'
import { checkedTransport } from './checked-transport.js'
import { nodeTransport } from '../../src/sys/http-transport.js'

const operator: Actor = { key: 'operator', tenant: 'default', scopes: ['admin'] }

function never(): never {
  throw new SandboxError('unsupported', 'this house has none')
}

/** One platform for everyone: what conformance over HTTP is run against, so that what is held is the platform's. */
function plainHouse(platform: Platform): House {
  return {
    platformFor: () => Promise.resolve(platform),
    list: (filter, options) => platform.list(filter, options),
    events: platform.events,
    [Symbol.asyncDispose]: () => platform[Symbol.asyncDispose](),
  }
}

function plainOptions(platform: Platform, key: string): ServerOptions {
  const keys: Keys = {
    create: never,
    list: never,
    revoke: never,
    isAccepted: (id) => Promise.resolve(id === operator.key),
    authenticate: (secret) => (secret === key ? Promise.resolve(operator) : Promise.reject(new SandboxError('unauthorized', 'wrong key'))),
  }
  const parts = { tenants: {}, quotas: {}, audit: {} } as unknown as Pick<ServerOptions, 'tenants' | 'quotas' | 'audit'>
  return {
    ...parts,
    house: plainHouse(platform),
    keys,
    templates: { list: () => Promise.resolve([]) },
    version: '0',
    door: { hosts: [], origins: [] },
    allowed: 'everything',
  }
}

export interface Served extends AsyncDisposable {
  readonly client: Platform
  readonly server: GloveboxServer
  readonly socket: string
}

/** The platform behind a server on a socket of this machine, and a client of that. */
export async function serve(platform: Platform, socket: string, options: Partial<ServerOptions> = {}): Promise<Served> {
  const key = 'gbx_a-key-of-a-test'
  const server = new GloveboxServer({ ...plainOptions(platform, key), ...options })
  await server.listen({ socket })
  const client = createClient({ key, transport: checkedTransport(nodeTransport({ place: { socket }, keepAlive: false })) })
  return {
    client,
    server,
    socket,
    [Symbol.asyncDispose]: async () => {
      await client[Symbol.asyncDispose]()
      await server.close()
    },
  }
}
