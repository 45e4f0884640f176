/** Ports and files by addresses: with a key, or signed. */
import type { Platform } from '../../contract/platform.js'
import { lifetimeSchema } from '../../contract/spec.js'
import { parseWith } from '../../contract/refusal.js'
import { toBase64 } from '../../contract/wire/frames.js'
import { media } from '../../contract/wire/media.js'
import type { House } from '../../contract/tenants.js'
import { type Answer, json } from '../answers.js'
import type { Call, Handlers } from '../call.js'
import { HttpError } from '../http-error.js'
import { type Passing, passRequest } from '../proxy.js'
import { actorOf, type Grant, type Signing } from '../signing.js'
import { download, inJson } from './files.js'
import { portOf } from './places.js'

type Names = 'ports.tunnel' | 'ports.proxy' | 'signed.use' | 'processes.terminal' | 'urls.sign'

const hourMs = 3_600_000
const taken: Answer = { kind: 'taken' }

export interface PortsParts {
  readonly house: House
  readonly signing: Signing
  /** Below which sandboxes have names of their own. */
  readonly domain: string | undefined
  /** Opens a port of this machine that leads to one of a sandbox; only for a server that nobody reaches from elsewhere, and that has no address itself. */
  readonly openPort?: ((platform: Platform, sandbox: string, port: number) => Promise<string>) | undefined
}

export function portHandlers({ house, signing, domain, openPort }: PortsParts): Handlers<Names> {
  return {
    'ports.tunnel': () => Promise.reject(new HttpError(426, 'upgrade: this is for connections that become another')),
    'processes.terminal': () => Promise.reject(new HttpError(426, 'upgrade: this is for WebSockets')),
    'ports.proxy': async (call) => {
      const { platform, params, signal, request, response } = call
      const passing: Passing = { platform, sandbox: params.id, port: portOf(params.port), path: restOf(call), isBeside: true, isKeyOurs: true, signal }
      await passRequest(request, response, passing)
      return taken
    },
    'signed.use': async (call) => {
      const grant = await signing.open(call.params.token)
      call.onBehalfOf(actorOf(grant))
      const platform = await house.platformFor(actorOf(grant), { request: call.requestId })
      if (grant.port === undefined) return useFile({ ...call, platform }, grant)
      const { signal, request, response } = call
      const passing: Passing = { platform, sandbox: grant.sandbox, port: grant.port, path: restOf(call), isBeside: true, isKeyOurs: false, signal }
      await passRequest(request, response, passing)
      return taken
    },
    'urls.sign': async (call) => {
      const { platform, params, actor, body, signal, request } = call
      const { expiresAt } = await platform.info(params.id, { signal })
      if (openPort && 'port' in body) return json({ url: await openPort(platform, params.id, body.port), expiresAt })
      const expires = Date.now() + (body.expires === undefined ? hourMs : parseWith(lifetimeSchema, body.expires, 'expires'))
      const base = { tenant: actor.tenant, key: actor.key, sandbox: params.id, expires }
      const grant: Grant = 'port' in body ? { ...base, port: body.port } : { ...base, path: toBase64(bytesOf(body.path)), method: body.method }
      const isTls = 'encrypted' in request.socket
      const host = request.headers.host ?? 'localhost'
      const named = domain !== undefined && grant.port !== undefined ? `${signing.label(grant)}.${domain}${/:\d+$/.exec(host)?.[0] ?? ''}` : undefined
      const url = `${isTls ? 'https' : 'http'}://${named === undefined ? `${host}/v1/signed/${signing.token(grant)}` : named}/`
      return json({ url, expiresAt: new Date(expires).toISOString() })
    },
  }
}

/** What stands after the port, as it came. */
export function restOf({ request }: Pick<Call, 'request'>): string {
  const url = request.url ?? '/'
  const parts = url.split('?')[0]?.split('/') ?? []
  const skipped = parts[2] === 'signed' ? 4 : 6
  const search = url.includes('?') ? url.slice(url.indexOf('?')) : ''
  return `/${parts.slice(skipped).join('/')}${search}`
}

function bytesOf(path: string | Uint8Array): Uint8Array {
  return typeof path === 'string' ? new TextEncoder().encode(path) : path
}

async function useFile({ platform, request, pieces, signal }: Call<'signed.use'>, { sandbox, path = '', method }: Grant): Promise<Answer> {
  if (request.method !== method) throw new HttpError(405, `method: this address is for ${method}`)
  const files = platform.files.of(sandbox)
  const name = Uint8Array.from(Buffer.from(path, 'base64'))
  if (method === 'PUT') return json(inJson(await files.write(name, pieces, { signal })))
  return download((await files.read(name, { signal })).bytes, media.bytes)
}
