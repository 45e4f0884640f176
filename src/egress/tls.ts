/** Both ends of TLS that is not passed through: towards the program as the host that it wanted, towards that host as a client that verifies. */
import { readFileSync } from 'node:fs'
import type { Duplex } from 'node:stream'
import { connect, createSecureContext, rootCertificates, type SecureContext, TLSSocket } from 'node:tls'
import type { Host } from '../contract/network.js'
import { isSameHost, parseHost } from '../policy/network-host.js'
import type { Authority } from './authority.js'
import { EgressError } from './egress-error.js'
import type { Outlook } from './gate-types.js'
import type { Hello } from './hello.js'

/** Why a first message may not go on; undefined when it may. An address is named by no server name, so there is nothing to compare. */
export function judgeHello(hello: Hello, { host, hostText, sni }: Pick<Outlook, 'host' | 'hostText' | 'sni'>): string | undefined {
  if (hello.kind === 'invalid') return `what should be TLS cannot be read: ${hello.reason}`
  if (sni === 'any' || host.kind === 'address') return undefined
  if (hello.kind === 'hidden') return `TLS hides for whom it is; the connection is for ${hostText}`
  if (hello.serverName === undefined) return `TLS does not name its server (SNI); the connection is for ${hostText}`
  const named = parseHost(hello.serverName)
  return named !== undefined && isSameHost(named, host) ? undefined : `TLS names another server (SNI) than ${hostText}`
}

/** A fatal alert, `access_denied`, as TLS 1.2 and 1.3 write it before keys are known. */
export const deniedAlert = Buffer.of(0x15, 3, 3, 0, 2, 2, 49)

/** Undefined when the program goes away or cannot agree. */
export function secureGuest(stream: Duplex, { authority, host }: { authority: Authority; host: Host }): Promise<TLSSocket | undefined> {
  const secureContext = authority.contextFor(plainText(host))
  const socket = new TLSSocket(stream, { isServer: true, secureContext, ALPNProtocols: ['h2', 'http/1.1'], requestCert: false, rejectUnauthorized: false })
  socket.setMaxListeners(50)
  return new Promise((resolve) => {
    socket.once('secure', () => {
      // Node's servers say so themselves; HTTP/2 waits for it.
      Object.assign(socket, { secureConnecting: false })
      resolve(socket)
    })
    socket.on('error', () => {
      stream.destroy()
      resolve(undefined)
    })
    socket.once('close', () => resolve(undefined))
  })
}

export interface SecureOrder {
  readonly host: Host
  readonly trust: SecureContext
  readonly protocols: readonly string[]
  readonly signal: AbortSignal
}

/** Verified: by the authorities that are trusted here, for this host. Throws EgressError. */
export function secureUpstream(stream: Duplex, { host, trust, protocols, signal }: SecureOrder): Promise<TLSSocket> {
  const name = plainText(host)
  const socket = connect({
    socket: stream,
    host: name,
    // An address is no server name.
    servername: host.kind === 'name' ? name : '',
    secureContext: trust,
    ALPNProtocols: [...protocols],
    // Whatever the environment says.
    rejectUnauthorized: true,
    minVersion: 'TLSv1.2',
  })
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      socket.destroy()
      reject(signal.reason)
    }
    signal.addEventListener('abort', stop, { once: true })
    socket.once('secureConnect', () => {
      signal.removeEventListener('abort', stop)
      resolve(socket)
    })
    socket.on('error', (error: NodeJS.ErrnoException) => {
      signal.removeEventListener('abort', stop)
      stream.destroy()
      reject(error instanceof EgressError ? error : new EgressError('unreachable', `TLS to ${name}: ${error.code ?? 'it broke off'}`))
    })
    socket.once('close', () => reject(new EgressError('broken', `TLS to ${name}: it was ended by the other side`)))
  })
}

function plainText(host: Host): string {
  return host.kind === 'name' ? host.name : host.address.text
}

/** Where distributions keep the authorities that a host trusts, its owner's own among them. */
const bundles = ['/etc/ssl/certs/ca-certificates.crt', '/etc/pki/tls/certs/ca-bundle.crt', '/etc/ssl/ca-bundle.pem', '/etc/ssl/cert.pem']

/** The host's authorities, Node's where the host has none; and more, as PEM. */
export function readTrust(more: readonly string[] = []): SecureContext {
  return createSecureContext({ ca: [...hostAuthorities(), ...more], minVersion: 'TLSv1.2' })
}

export function hostAuthorities(): readonly string[] {
  for (const bundle of bundles) {
    try {
      const text = readFileSync(bundle, 'latin1')
      if (text.includes('-----BEGIN CERTIFICATE-----')) return [text]
    } catch {
      // The next one.
    }
  }
  return rootCertificates
}
