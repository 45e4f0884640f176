/** Platforms behind servers, as Node reaches them. */
import { checkUrl, createClient } from './client/index.js'
import { reworded, SandboxError } from './contract/errors.js'
import type { Platform } from './contract/platform.js'
import type { Transport } from './contract/wire/transport.js'
import type { TransportOptions } from './sys/http-transport.js'
import { listenOnLoopback } from './sys/loopback-listener.js'

/** Where a server is, and who asks. */
export interface ConnectionOptions {
  /** `https://sandboxes.example.com`, or `unix:/path/of/a/socket`. */
  readonly url?: string
  /** The path of a socket of this machine. */
  readonly socket?: string
  /** A key, as `glovebox keys create` prints it. */
  readonly key?: string
  /** Another tenant's, for a key that may name it. */
  readonly tenant?: string
  /** Authorities that the server's certificate may be of, and a certificate that is shown to it: PEM. */
  readonly tls?: Omit<TransportOptions, 'place' | 'keepAlive'>
}

/** A platform behind a server. Nothing is asked before it is used. */
export function connectPlatform({ url, socket, key, tenant, tls = {} }: ConnectionOptions, own: { readonly closesOwn?: boolean } = {}): Platform {
  const place = socket === undefined ? placeOf(url) : { socket }
  const transport = loadedTransport(() => import('./sys/http-transport.js').then(({ nodeTransport }) => nodeTransport({ place, ...tls })))
  return createClient({ transport, ...own, ...(key !== undefined && { key }), ...(tenant !== undefined && { tenant }) })
}

function placeOf(url: string | undefined): TransportOptions['place'] {
  if (url?.startsWith('unix:/')) return { socket: url.slice('unix:'.length) }
  return { url: checkUrl(url) }
}

/** Most platforms are of this process: what carries requests is loaded when the first is sent. */
function loadedTransport(load: () => Promise<Transport>): Transport {
  let loaded: Promise<Transport> | undefined
  const transport = (): Promise<Transport> => (loaded ??= load())
  return {
    request: async (request) => (await transport()).request(request),
    tunnel: async (request) => {
      const own = await transport()
      if (!own.tunnel) throw new SandboxError('unsupported', 'no connection can be had here but by HTTP')
      return own.tunnel(request)
    },
    listen: (order) => listenOnLoopback(order),
    close: async () => (await loaded)?.close(),
  }
}

/** Behind the server that GLOVEBOX_URL names; undefined where it names none. */
export function remotePlatform(own: { readonly closesOwn?: boolean } = {}): Platform | undefined {
  const { GLOVEBOX_URL: url, GLOVEBOX_KEY: key } = process.env
  if (url === undefined || url === '') return undefined
  try {
    return connectPlatform({ url, ...(key !== undefined && key !== '' && { key }) }, own)
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error
    throw reworded(error, error.message.replace(/^url:/, 'GLOVEBOX_URL:').replace(/^key:/, 'GLOVEBOX_KEY:'))
  }
}
