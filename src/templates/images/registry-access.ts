/** Talks to one registry: asks, shows who we are when asked to, and follows to where blobs really lie without taking our name there. */
import { SandboxError } from '../../contract/errors.js'
import { type GetResponse, httpGet } from '../../sys/http-get.js'
import { printed } from './entry-path.js'
import { type ImageReference, isLoopback } from './reference.js'

export interface Login {
  readonly user: string
  readonly secret: string
}

export interface AccessOptions {
  readonly login?: Login | undefined
  /** HTTP instead of HTTPS; a registry on this machine is asked so anyway. */
  readonly isPlain?: boolean | undefined
  readonly idleMs?: number | undefined
  readonly signal?: AbortSignal | undefined
}

const usualIdleMs = 30_000
const mostRedirects = 5
const mostTokenBytes = 64 * 1024
const mostErrorBytes = 8 * 1024

export class RegistryAccess {
  readonly #reference: ImageReference
  readonly #options: AccessOptions
  readonly #base: URL
  #authorization: string | undefined

  constructor(reference: ImageReference, options: AccessOptions = {}) {
    this.#reference = reference
    this.#options = options
    const scheme = options.isPlain === true || isLoopback(reference.registry) ? 'http' : 'https'
    this.#base = new URL(`${scheme}://${reference.registry}/v2/${reference.repository}/`)
  }

  /** Resolves to an answer of status 200. Rejects with SandboxError: 'not-found', 'denied', 'unavailable'. */
  async get(path: string, { accept, what }: { readonly accept?: string; readonly what: string }): Promise<GetResponse> {
    const url = new URL(path, this.#base)
    const headers = { ...(accept !== undefined && { accept }) }
    let response = await this.#ask(url, headers)
    if (response.status === 401) {
      await drop(response)
      this.#authorization = await this.#authorize(response.header('www-authenticate') ?? '')
      response = await this.#ask(url, headers)
    }
    if (response.status === 200) return response
    throw await this.#refusal(response, what)
  }

  async #ask(first: URL, headers: Readonly<Record<string, string>>): Promise<GetResponse> {
    const { signal, idleMs = usualIdleMs } = this.#options
    let url = first
    for (let redirects = 0; ; redirects += 1) {
      const isOwn = url.origin === this.#base.origin
      const own = isOwn && this.#authorization !== undefined ? { authorization: this.#authorization } : {}
      const response = await httpGet(url, { headers: { ...headers, ...own }, signal, idleMs })
      const location = response.header('location')
      if (response.status < 301 || response.status > 308 || location === undefined) return response
      await drop(response)
      if (redirects === mostRedirects) throw new SandboxError('unavailable', `${url.host} leads from one place to another without end`)
      url = this.#followed(url, location)
    }
  }

  #followed(from: URL, location: string): URL {
    const to = URL.canParse(location, from.href) ? new URL(location, from) : undefined
    if (to === undefined || !['http:', 'https:'].includes(to.protocol) || (from.protocol === 'https:' && to.protocol === 'http:'))
      throw new SandboxError('unavailable', `${from.host} leads to ${printed(location)}, where nothing is fetched from`)
    return to
  }

  /** `Bearer realm="…",service="…",scope="…"`, or `Basic realm="…"`. */
  async #authorize(challenge: string): Promise<string> {
    const { login, signal, idleMs = usualIdleMs } = this.#options
    const basic = login && `Basic ${Buffer.from(`${login.user}:${login.secret}`).toString('base64')}`
    const [scheme = ''] = challenge.split(' ')
    if (scheme.toLowerCase() === 'basic') {
      if (basic === undefined || this.#authorization !== undefined) throw this.#denied()
      return basic
    }
    const { realm, service, scope } = parametersOf(challenge)
    if (scheme.toLowerCase() !== 'bearer' || realm === undefined || !URL.canParse(realm)) throw this.#denied()
    const url = new URL(realm)
    if (url.protocol !== 'https:' && !(url.protocol === 'http:' && this.#base.protocol === 'http:')) throw this.#denied()
    if (service !== undefined) url.searchParams.set('service', service)
    url.searchParams.set('scope', scope ?? `repository:${this.#reference.repository}:pull`)
    const response = await httpGet(url, { headers: basic === undefined ? {} : { authorization: basic }, signal, idleMs })
    if (response.status !== 200) {
      await drop(response)
      throw this.#denied()
    }
    return `Bearer ${tokenIn(await textOf(response, mostTokenBytes)) ?? ''}`
  }

  #denied(): SandboxError {
    const { registry, repository } = this.#reference
    const who = this.#options.login === undefined ? 'without a login' : `as ${printed(this.#options.login.user)}`
    return new SandboxError('denied', `${registry} does not hand out ${repository} ${who}`, { hint: 'glovebox template pull --login USER docker://…' })
  }

  async #refusal(response: GetResponse, what: string): Promise<SandboxError> {
    const { registry, repository } = this.#reference
    const said = messageIn(await textOf(response, mostErrorBytes).catch(() => ''))
    if (response.status === 404) return new SandboxError('not-found', `${registry} has no ${what} of ${repository}${said}`)
    if (response.status === 401 || response.status === 403) return this.#denied()
    return new SandboxError('unavailable', `${registry} answered ${response.status} when asked for ${what} of ${repository}${said}`)
  }
}

/** At most so many bytes; more is an error. */
export async function bytesOf(response: GetResponse, most: number): Promise<Uint8Array> {
  const pieces: Uint8Array[] = []
  let bytes = 0
  for await (const piece of response.body) {
    bytes += piece.length
    if (bytes > most) throw new SandboxError('conflict', `an answer has more than ${most} bytes`)
    pieces.push(piece)
  }
  return Buffer.concat(pieces)
}

async function textOf(response: GetResponse, most: number): Promise<string> {
  return Buffer.from(await bytesOf(response, most)).toString('utf8')
}

async function drop(response: GetResponse): Promise<void> {
  await bytesOf(response, mostErrorBytes).catch(() => undefined)
}

function parametersOf(challenge: string): Record<string, string | undefined> {
  return Object.fromEntries([...challenge.matchAll(/([a-z]+)="([^"]*)"/g)].map(([, name = '', value = '']) => [name, value]))
}

function tokenIn(json: string): string | undefined {
  try {
    const { token, access_token: access } = JSON.parse(json) as { token?: unknown; access_token?: unknown }
    const found = typeof token === 'string' ? token : access
    return typeof found === 'string' && /^[\x21-\x7e]+$/.test(found) ? found : undefined
  } catch {
    return undefined
  }
}

/** What a registry says went wrong, in its own words, as far as they are printable. */
function messageIn(json: string): string {
  try {
    const { errors } = JSON.parse(json) as { errors?: readonly { readonly message?: unknown }[] }
    const said = errors?.[0]?.message
    return typeof said === 'string' && said !== '' ? ` (${printed(said)})` : ''
  } catch {
    return ''
  }
}
