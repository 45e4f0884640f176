/** The way out of every cell: doors for what programs speak, one gate a sandbox, one authority an installation. */
import type { SecureContext } from 'node:tls'
import type { Egress, EgressDoor, EgressOrder } from '../contract/egress.js'
import { type Authority, type AuthorityOptions, loadAuthority } from './authority.js'
import { type Credentials, readCredentials } from './credentials.js'
import { createFront } from './front.js'
import { createGate, type GateOrder } from './gate.js'
import { PackageShelf, type ShelfOptions } from './package-shelf.js'
import { Packages } from './packages.js'
import { createResolver } from './resolver.js'
import { readTrust } from './tls.js'
import { Turns } from './turns.js'

export interface EgressOptions {
  /** Names as the host resolves them when not given. */
  readonly resolver?: GateOrder['resolver']
  readonly isOwn?: GateOrder['isOwn']
  readonly timings?: GateOrder['timings']
  /** Where the authority's key is kept, when not with the user's other keys. */
  readonly authority?: AuthorityOptions
  /** Authorities, as PEM, that are trusted beside those of the host. */
  readonly trusted?: readonly string[]
  /** Where files of packages are kept; nowhere when not given. */
  readonly packages?: ShelfOptions
  /** For credentials that name a variable. */
  readonly env?: Readonly<Record<string, string | undefined>>
}

export interface OwnEgressDoor extends EgressDoor {
  /** Of the authority, as PEM: for the trust stores of cells. Throws SandboxError('unavailable') when its key cannot be had. */
  certificate(): string
}

export function createEgressDoor(options: EgressOptions = {}): OwnEgressDoor {
  const resolver = options.resolver ?? createResolver()
  const open = new Set<Egress>()
  const shelf = options.packages && new PackageShelf(options.packages)
  let authority: Authority | undefined
  let trust: SecureContext | undefined
  const shared = {
    // Both cost time, and most sandboxes need neither.
    authority: () => (authority ??= loadAuthority(options.authority)),
    trust: () => (trust ??= readTrust(options.trusted)),
  }
  return {
    certificate: () => shared.authority().certificate,
    // eslint-disable-next-line @typescript-eslint/require-await -- what it throws is a rejection to whoever opens
    open: async (order) => {
      const egress = openEgress(order, { options, resolver, shared, shelf, onClosed: (closed) => open.delete(closed) })
      open.add(egress)
      return egress
    },
    close: async () => {
      await Promise.all([...open].map((egress) => egress.close()))
    },
  }
}

interface Surroundings {
  readonly options: EgressOptions
  readonly resolver: GateOrder['resolver']
  readonly shared: { authority(): Authority; trust(): SecureContext }
  readonly shelf: PackageShelf | undefined
  readonly onClosed: (egress: Egress) => void
}

function openEgress(order: EgressOrder, { options, resolver, shared, shelf, onClosed }: Surroundings): Egress {
  const { isOwn, timings, env } = options
  let credentials: Credentials = readCredentials(order.rules, env)
  const gate = createGate({ ...order, resolver, ...(isOwn && { isOwn }), ...(timings && { timings }) })
  const front = createFront({
    gate,
    turns: new Turns(),
    trust: () => shared.trust(),
    authority: () => shared.authority(),
    credentials: () => credentials,
    ...(shelf && { packages: new Packages(shelf) }),
  })
  const egress: Egress = {
    accept: (connection) => front.accept(connection),
    answer: (query) => Promise.resolve(gate.answer(query)),
    get ports() {
      return gate.ports
    },
    update: (rules) => {
      // Before anything changes: rules whose credentials cannot be had do not begin to hold.
      credentials = readCredentials(rules, env)
      gate.update(rules)
    },
    log: (signal) => gate.log(signal),
    summary: () => gate.summary(),
    settled: (mostMs) => gate.settled(mostMs),
    close: async ({ graceMs = 0 } = {}) => {
      if (graceMs > 0) await gate.settled(graceMs)
      onClosed(egress)
      await gate.close()
      front.close()
    },
  }
  return egress
}
