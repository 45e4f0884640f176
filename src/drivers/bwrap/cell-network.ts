import type { CellNetwork, CellSpec } from '../../contract/driver.js'
import type { Capability } from './capabilities.js'

/** Where programs find HTTP and SOCKS, on the loopback of the cell and of each liner. */
export const proxyPort = 3128
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

/** For whoever asks their environment where the way out is; whoever does not is no better off. */
export function networkEnvironment(network: CellNetwork): Readonly<Record<string, string>> {
  const http = `http://127.0.0.1:${proxyPort}`
  const proxies = { HTTP_PROXY: http, HTTPS_PROXY: http, ALL_PROXY: `socks5h://127.0.0.1:${proxyPort}`, NO_PROXY: 'localhost,127.0.0.1,::1' }
  const lower = Object.fromEntries(Object.entries(proxies).map(([name, value]) => [name.toLowerCase(), value]))
  const trusted = network.certificates === undefined ? {} : Object.fromEntries(certificateVariables.map((name) => [name, certificatesPath]))
  return { ...proxies, ...lower, NODE_USE_ENV_PROXY: '1', ...trusted }
}

const certificateVariables = ['SSL_CERT_FILE', 'REQUESTS_CA_BUNDLE', 'NODE_EXTRA_CA_CERTS', 'CURL_CA_BUNDLE', 'GIT_SSL_CAINFO', 'PIP_CERT', 'npm_config_cafile']
