import { SandboxError } from '../contract/errors.js'
import type { Platform } from '../contract/platform.js'
import { ClientPlatform } from './platform.js'
import type { Transport } from '../contract/wire/transport.js'
import { webTransport } from './transport.js'
import { Wire } from './wire.js'

export interface ClientOptions {
  /** Where the server is: `https://sandboxes.example.com`. */
  readonly url?: string
  /** A key, as `glovebox keys create` prints it. */
  readonly key?: string
  /** Another tenant's, for a key that may name it. */
  readonly tenant?: string
  /** How requests leave this process; by `fetch` when not given. */
  readonly transport?: Transport
  /** Whether what it created is closed when it is disposed of; false unless given. */
  readonly closesOwn?: boolean
}

/** A platform over HTTP. Nothing is asked before it is used. */
export function createClient({ url, key, tenant, transport, closesOwn = false }: ClientOptions): Platform {
  if (key !== undefined && !/^[\x21-\x7e]{1,500}$/.test(key)) throw new SandboxError('invalid', 'key: must be printable, and without spaces')
  const headers = { ...(key !== undefined && { authorization: `Bearer ${key}` }), ...(tenant !== undefined && { 'glovebox-tenant': tenant }) }
  return new ClientPlatform(new Wire(transport ?? webTransport(checkUrl(url)), headers), { closesOwn })
}

export function checkUrl(url: string | undefined): string {
  const parsed = typeof url === 'string' && URL.canParse(url) ? new URL(url) : undefined
  if (!parsed || !/^https?:$/.test(parsed.protocol)) throw new SandboxError('invalid', "url: expected an address such as 'https://sandboxes.example.com'")
  if (parsed.username !== '' || parsed.password !== '' || parsed.search !== '')
    throw new SandboxError('invalid', 'url: must hold nothing but where the server is')
  return parsed.href
}
