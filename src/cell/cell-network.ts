import { closeSync, openSync } from 'node:fs'
import { type CellNetwork, type CellSpec, type GivenEntry, proxyPort } from '../contract/driver.js'
import { SandboxError } from '../contract/errors.js'
import type { Json } from '../contract/posture.js'
import { hasIpv6 } from '../sys/posture/routes.js'
import type { Capability } from './capabilities.js'

const dnsPort = 53
/** Where what programs are to trust is copied to. */
export const certificatesPath = '/var/lib/glovebox/certificates.pem'

/** What the warden opens and never closes: a spec without a network has nothing of it. */
export function networkArguments({ network }: CellSpec): string[] {
  return network ? ['--egress', `${proxyPort}`, ...(network.direct ? ['--direct'] : [])] : []
}

/** To make routes before anything runs, and to listen at low ports as long as the cell lives. */
export function networkCapabilities({ network }: CellSpec): readonly Capability[] {
  return network?.direct ? ['NET_ADMIN', 'NET_BIND_SERVICE'] : []
}

/** Where the launcher hands bwrap the file of certificates. */
const certificatesFd = 200

export function openCertificates({ network }: CellSpec): Disposable & { readonly descriptor: number | undefined } {
  const path = network?.certificates
  if (path === undefined) return { descriptor: undefined, [Symbol.dispose]: () => undefined }
  try {
    const descriptor = openSync(path, 'r')
    return { descriptor, [Symbol.dispose]: () => closeSync(descriptor) }
  } catch (error) {
    throw new SandboxError('unavailable', `the certificates for the cell cannot be read: ${(error as Error).message}`, { hint: `ls -l ${path}`, cause: error })
  }
}

/** `inherited` is the launcher's descriptor of that file. */
export function passCertificates({ network }: CellSpec, inherited: number): string[] {
  return network?.certificates === undefined ? [] : ['--pass', `${inherited}`, `${certificatesFd}`]
}

/** The same of a launcher to which it is a file at a path. */
export function readCertificates({ network }: CellSpec, path: string): string[] {
  return network?.certificates === undefined ? [] : ['--read', `${certificatesFd}`, path]
}

/** A copy, so that no two cells have the same inode. */
export function copyCertificates({ network }: CellSpec): string[] {
  return network?.certificates === undefined ? [] : ['--perms', '0444', '--file', `${certificatesFd}`, certificatesPath]
}

/** What that makes in a root that can be written to. */
export function givenCertificates({ network }: CellSpec): GivenEntry[] {
  if (network?.certificates === undefined) return []
  const folder = { type: 'folder', mode: 0o755, target: '' } as const
  return [
    { ...folder, path: 'var/lib' },
    { ...folder, path: 'var/lib/glovebox' },
    { path: certificatesPath.slice(1), type: 'file', mode: 0o444, target: '' },
  ]
}

/** None, or all of them back to the namespace itself. */
export function expectedRoutes({ network }: CellSpec): string[] {
  return network?.direct ? ['0.0.0.0/0 lo', ...(hasIpv6() ? ['::/0 lo'] : [])] : []
}

/** Where the way out listens, in a cell that has just been made and in each liner: by the proxy on both loopbacks, and where it is direct for DNS and at these ports. */
export function expectedSockets({ network }: CellSpec, ports: readonly number[] = []): Json {
  const none = { tcp: 0, tcp6: 0, udp: 0, udp6: 0, other: 0 }
  if (!network) return none
  const six = hasIpv6()
  const streams = network.direct ? new Set([dnsPort, ...ports].filter((port) => port !== proxyPort)).size : 0
  const datagrams = network.direct ? 1 : 0
  return six ? { ...none, tcp: 1, tcp6: 1 + streams, udp6: datagrams } : { ...none, tcp: 1 + streams, udp: datagrams }
}

/** For whoever asks their environment where the way out is; whoever does not is no better off. */
export function networkEnvironment(network: CellNetwork): Readonly<Record<string, string>> {
  const http = `http://127.0.0.1:${proxyPort}`
  // Not the SOCKS5 that is spoken there too: some clients, as httpx, do not start where ALL_PROXY names that.
  const proxies = { HTTP_PROXY: http, HTTPS_PROXY: http, ALL_PROXY: http, NO_PROXY: 'localhost,127.0.0.1,::1' }
  const lower = Object.fromEntries(Object.entries(proxies).map(([name, value]) => [name.toLowerCase(), value]))
  const trusted = network.certificates === undefined ? {} : Object.fromEntries(certificateVariables.map((name) => [name, certificatesPath]))
  return { ...proxies, ...lower, NODE_USE_ENV_PROXY: '1', ...trusted }
}

const certificateVariables = ['SSL_CERT_FILE', 'REQUESTS_CA_BUNDLE', 'NODE_EXTRA_CA_CERTS', 'CURL_CA_BUNDLE', 'GIT_SSL_CAINFO', 'PIP_CERT', 'npm_config_cafile']
