/**
 * A server for the commands of one user: one platform, and neither keys nor tenants nor a trail, because whoever reaches it is the user themselves. It is to listen on a socket
 * that nobody else can open, and nowhere else.
 */
import { SandboxError } from '../contract/errors.js'
import type { Platform } from '../contract/platform.js'
import type { Forward } from '../contract/ports.js'
import type { Actor, House } from '../contract/tenants.js'
import { GloveboxServer, type ServerOptions } from './server.js'

const owner: Actor = { key: 'owner', tenant: 'default', scopes: ['admin'] }

export function createOwnServer(platform: Platform, version: string): GloveboxServer {
  const ports = new OpenPorts()
  return new GloveboxServer({
    ...nothingElse,
    house: houseOf(platform),
    trusted: owner,
    allowed: 'everything',
    templates: { list: refuse },
    version,
    door: { hosts: [], origins: [] },
    openPort: (_, sandbox, port) => ports.open(platform, sandbox, port),
  })
}

function houseOf(platform: Platform): House {
  return {
    platformFor: () => Promise.resolve(platform),
    list: (filter, options) => platform.list(filter, options),
    events: platform.events,
    // Whoever made the platform disposes of it.
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
}

function refuse(): never {
  throw new SandboxError('unsupported', 'this is the daemon of one user, which has none of that', { hint: 'glovebox serve --help' })
}

const nothingElse: Pick<ServerOptions, 'keys' | 'tenants' | 'quotas' | 'audit'> = {
  keys: { create: refuse, list: refuse, revoke: refuse, authenticate: refuse, isAccepted: refuse },
  tenants: { create: refuse, get: refuse, list: refuse, update: refuse, remove: refuse },
  quotas: { reserve: refuse, egressOf: refuse, usage: refuse },
  audit: { append: refuse, list: refuse, tail: refuse, head: refuse, verify: refuse, export: refuse } as unknown as ServerOptions['audit'],
}

/** Ports of this machine that lead to those of sandboxes: one for each, for as long as the sandbox lives. */
class OpenPorts {
  readonly #forwards = new Map<string, Promise<Forward>>()

  async open(platform: Platform, sandbox: string, port: number): Promise<string> {
    const name = `${sandbox}:${port}`
    const opening = this.#forwards.get(name) ?? this.#begin(platform, { name, sandbox, port })
    return (await opening).url
  }

  #begin(platform: Platform, { name, sandbox, port }: { readonly name: string; readonly sandbox: string; readonly port: number }): Promise<Forward> {
    const opening = platform.ports.forward(sandbox, port, { waitFor: 0 })
    const forget = (): void => void this.#forwards.delete(name)
    this.#forwards.set(name, opening)
    opening.then(() => this.#atEnd(platform, sandbox, forget), forget)
    return opening
  }

  async #atEnd(platform: Platform, sandbox: string, forget: () => void): Promise<void> {
    try {
      for await (const event of platform.life.events(sandbox)) if (event.type === 'closed') break
    } catch {
      // It was over before anyone could listen.
    } finally {
      forget()
    }
  }
}
