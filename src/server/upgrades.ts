/** Connections that become another: tunnels to ports, WebSockets of programs in sandboxes, and terminals. They pass what every request passes. */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { SandboxError } from '../contract/errors.js'
import type { Actor, House } from '../contract/tenants.js'
import { tunnelProtocol } from '../contract/wire/media.js'
import { farewellMs } from './following.js'
import { randomName } from './held.js'
import { asSandboxError, errorInJson, HttpError, statusOf } from './http-error.js'
import { type Passing, passUpgrade } from './proxy.js'
import { checkIds, type Requests } from './requests.js'
import { portOf } from './resources/places.js'
import { restOf } from './resources/ports.js'
import type { Match } from './router.js'
import { checkScope } from './scopes.js'
import { actorOf, type Signing } from './signing.js'
import type { Standing } from './standing.js'
import type { Terminals } from './terminals.js'
import type { Tickets } from './tickets.js'
import { carry } from './tunnel.js'

export interface UpgradeParts {
  readonly requests: Requests
  readonly house: House
  readonly signing: Signing
  readonly standing: Standing
  readonly tickets: Tickets
  readonly terminals: Terminals
}

export interface Upgrade {
  readonly request: IncomingMessage
  readonly socket: Duplex
  readonly head: Uint8Array
}

const ticketPrefix = 'ticket.'

export class Upgrades {
  readonly #parts: UpgradeParts

  constructor(parts: UpgradeParts) {
    this.#parts = parts
  }

  /** Never rejects. */
  async handle(upgrade: Upgrade): Promise<void> {
    const { socket } = upgrade
    const left = new AbortController()
    socket.on('error', () => undefined)
    socket.once('close', () => left.abort(new SandboxError('closed', 'whoever asked is gone')))
    const held: (() => void)[] = []
    const cut = (reason: SandboxError): void => {
      left.abort(reason)
      // Whoever does not take that is not waited for.
      setTimeout(() => socket.destroy(), farewellMs).unref()
    }
    try {
      await this.#pass(upgrade, { signal: left.signal, hold: (key) => void held.push(this.#parts.standing.hold(key, cut)) })
    } catch (error) {
      refuse(socket, error)
    } finally {
      for (const release of held) release()
    }
  }

  async #pass(upgrade: Upgrade, { signal, hold }: Held): Promise<void> {
    const { request, socket, head } = upgrade
    const { requests, house, signing } = this.#parts
    const { method, path, label } = requests.door.enter(request)
    const id = randomName()
    if (label !== undefined || path.startsWith('/v1/signed/')) {
      const grant = await (label === undefined ? signing.open(requests.find(method, path).params.token ?? '') : signing.openLabel(label))
      if (grant.port === undefined) throw new HttpError(400, 'path: this address is of a file')
      hold(grant.key)
      const platform = await house.platformFor(actorOf(grant), { request: id })
      const rest = label === undefined ? restOf({ request }) : (request.url ?? '/')
      const where = { platform, sandbox: grant.sandbox, port: grant.port, path: rest, isBeside: label === undefined, isKeyOurs: false }
      return passUpgrade(request, socket, { ...where, head, signal })
    }
    const match = requests.find(method, path)
    const actor = await this.#actor(request)
    const { scope } = match.route
    if (scope !== 'public' && scope !== 'signed') checkScope(actor, scope)
    checkIds(match)
    hold(actor.key)
    const platform = await requests.platformOf(actor, request, id)
    await this.#become(upgrade, { match, passing: { platform, path: restOf({ request }), isBeside: true, isKeyOurs: true, signal } })
  }

  /** By a key, or, since a browser can send none, by a ticket among the protocols that it offers. */
  #actor(request: IncomingMessage): Promise<Actor> {
    const offered = (request.headers['sec-websocket-protocol'] ?? '').split(',').map((each) => each.trim())
    const ticket = offered.find((each) => each.startsWith(ticketPrefix))
    if (ticket === undefined) return this.#parts.requests.authenticate(request)
    return this.#parts.tickets.redeem(ticket.slice(ticketPrefix.length))
  }

  async #become(upgrade: Upgrade, { match, passing }: Becoming): Promise<void> {
    const { request, socket, head } = upgrade
    const { id = '', port = '' } = match.params
    const { platform, signal } = passing
    const protocol = (request.headers.upgrade ?? '').toLowerCase()
    if (match.name === 'processes.terminal' && protocol === 'websocket') return this.#parts.terminals.open(upgrade, { platform, sandbox: id, signal })
    if (match.name === 'ports.proxy') return passUpgrade(request, socket, { ...passing, sandbox: id, port: portOf(port), head })
    if (match.name !== 'ports.tunnel' || protocol !== tunnelProtocol) throw new HttpError(400, 'upgrade: nothing here becomes that')
    const connection = await platform.ports.connect(id, portOf(port), { signal })
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: ${tunnelProtocol}\r\n\r\n`)
    await carry(socket, { head, signal }, connection)
  }
}

interface Held {
  readonly signal: AbortSignal
  /** It ends with this key. */
  readonly hold: (key: string) => void
}

interface Becoming {
  readonly match: Match
  readonly passing: Omit<Passing, 'sandbox' | 'port'>
}

function refuse(socket: Duplex, error: unknown): void {
  if (!socket.writable) return
  const known = asSandboxError(error)
  const text = JSON.stringify(errorInJson(known))
  const head = `HTTP/1.1 ${statusOf(known)} Refused\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n`
  socket.end(head + text)
}
