/** Who may talk to the server at all, whatever they ask: by which name it is called, and whose page asks. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { wireHeaders } from '../contract/wire/media.js'
import { HttpError } from './http-error.js'

export interface DoorOptions {
  /** Names that it may be called by, beside those of the loopback; without ports. */
  readonly hosts: readonly string[]
  /** Below which sandboxes have names of their own. */
  readonly domain?: string
  /** Pages of these may ask. */
  readonly origins: readonly string[]
}

const loopback = ['localhost', '127.0.0.1', '[::1]']
const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

export interface Entered {
  readonly method: string
  /** As it came, without what follows the `?`. */
  readonly path: string
  readonly search: string
  /** The first part of the name of its host, where that is below the domain of sandboxes. */
  readonly label: string | undefined
}

export class Door {
  readonly #hosts: ReadonlySet<string>
  readonly #options: DoorOptions

  constructor(options: DoorOptions) {
    this.#options = options
    this.#hosts = new Set([...loopback, ...options.hosts].map((host) => host.toLowerCase()))
  }

  /** Throws HttpError. A page of another is refused before anything is looked at, and told nothing. */
  enter(request: IncomingMessage): Entered {
    const { method = '', url = '' } = request
    if (!methods.includes(method)) throw new HttpError(405, `method: expected one of ${methods.join(', ')}`)
    if (!url.startsWith('/')) throw new HttpError(400, 'path: must begin with /')
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused here
    if (/[#\\\u0000-\u0020\u007f-\uffff]/.test(url)) throw new HttpError(400, 'path: has a character that must be escaped')
    const label = this.#checkHost(request)
    this.#checkOrigin(request, label)
    const [path = '', ...search] = url.split('?')
    return { method, path, search: search.join('?'), label }
  }

  /** What a page of a listed origin needs to be let at the answer. True when that was all that it asked for. */
  answerOrigin({ method, headers }: IncomingMessage, response: ServerResponse): boolean {
    const { origin } = headers
    if (origin === undefined) return false
    response.setHeader('access-control-allow-origin', origin)
    response.setHeader('vary', 'Origin')
    response.setHeader('access-control-expose-headers', `${wireHeaders.entry}, retry-after, content-range`)
    if (method !== 'OPTIONS' || headers['access-control-request-method'] === undefined) return false
    response.setHeader('access-control-allow-methods', methods.join(', '))
    response.setHeader('access-control-allow-headers', `authorization, content-type, accept, range, ${wireHeaders.call}, ${wireHeaders.idempotency}`)
    response.setHeader('access-control-max-age', '600')
    response.writeHead(204).end()
    return true
  }

  #checkHost({ headers }: IncomingMessage): string | undefined {
    const host = (headers.host ?? '').toLowerCase().replace(/:\d{1,5}$/, '')
    if (this.#hosts.has(host)) return undefined
    const { domain } = this.#options
    if (domain !== undefined) {
      if (host === domain) return undefined
      const label = host.endsWith(`.${domain}`) ? host.slice(0, -domain.length - 1) : undefined
      if (label !== undefined && /^[a-z0-9-]{1,63}$/.test(label)) return label
    }
    throw new HttpError(403, 'host: this server has another name', { hint: 'glovebox serve --host NAME' })
  }

  #checkOrigin({ headers }: IncomingMessage, label: string | undefined): void {
    const { origin, host } = headers
    if (origin === undefined || this.#options.origins.includes(origin)) return
    // A page that a program shows under a name of its own asks that same program.
    if (label !== undefined && (origin === `http://${host}` || origin === `https://${host}`)) return
    throw new HttpError(403, 'origin: pages of this origin may not ask', { hint: 'glovebox serve --allow-origin ORIGIN' })
  }
}
