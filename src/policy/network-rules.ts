import { SandboxError } from '../contract/errors.js'
import type { AddressRange, Credential, HostPattern, Network, NetworkEntry, NetworkRule, NetworkRules } from '../contract/network.js'
import { networkLimitDefaults } from '../contract/network.js'
import { parseRange } from './network-address.js'
import { hostText, parseHost, parsePort } from './network-host.js'
import { printable } from './refusal.js'

const webPorts = [80, 443] as const

export type NetworkWish = Exclude<Network, false>

interface RuleOptions {
  /** How messages call it: `network.allow[2]`. */
  readonly field: string
  /** What no ports mean: those of the web, or all. */
  readonly isBlock?: boolean
  /** Where the entry does not say. */
  readonly terminate?: boolean
}

/** Throws SandboxError('invalid') naming the entry. */
export function parseRule(entry: NetworkEntry, { field, isBlock = false, terminate = false }: RuleOptions): NetworkRule {
  const { host, cidr, ports, methods, paths, terminate: own } = typeof entry === 'string' ? { host: entry } : entry
  if ((host === undefined) === (cidr === undefined)) throw invalid(field, "must have either 'host' or 'cidr'")
  if (cidr !== undefined && (methods ?? paths) !== undefined) throw invalid(field, "'methods' and 'paths' are for hosts, not for a range of addresses")
  const judgesRequests = (methods ?? paths) !== undefined
  if (judgesRequests && own === false) throw invalid(field, "'methods' and 'paths' can be judged only where TLS is terminated")
  const { pattern, port } = host === undefined ? { pattern: rangePattern(cidr ?? '', field), port: undefined } : parseHostEntry(host, field)
  if (port !== undefined && ports !== undefined) throw invalid(field, "has a port in 'host' and 'ports' beside it")
  const named = port === undefined ? ports && [...new Set(ports)].sort((a, b) => a - b) : [port]
  const known = { pattern, ports: named ?? (isBlock ? undefined : webPorts), methods, paths, terminate: own ?? (judgesRequests || terminate) }
  return { text: ruleText(known, isBlock ? undefined : webPorts), ...known }
}

function invalid(field: string, words: string): SandboxError {
  return new SandboxError('invalid', `${field}: ${words}`)
}

function rangePattern(text: string, field: string): HostPattern {
  return { kind: 'range', range: parseRangeField(text, field) }
}

export function parseRangeField(text: string, field: string): AddressRange {
  const range = parseRange(text)
  if (typeof range === 'string') throw invalid(field, `'${printable(text)}' ${range}`)
  return range
}

function parseHostEntry(text: string, field: string): { readonly pattern: HostPattern; readonly port: number | undefined } {
  const refuse = (words: string): SandboxError => invalid(field, `'${printable(text)}' ${words}`)
  if (text.includes('://')) throw refuse("is a URL: write its host and port, as 'api.example.com:443'")
  if (text.includes('@')) throw refuse('has a user in it: write only its host')
  if (/^[^/]+\/\d+$/.test(text)) throw refuse("is a range of addresses: write { cidr: '…' }")
  if (text.includes('/')) throw refuse("has a path in it: write { host: '…', paths: ['…'] }")
  if (/[^\x21-\x7e]/.test(text)) throw refuse('has characters beyond ASCII, or white space: write the name as it stands in DNS, with xn--')
  const address = text.startsWith('[') || text.split(':').length <= 2 ? undefined : parseHost(text)
  const match = address === undefined ? /^(\[.*\]|[^:]*)(?::(.*))?$/.exec(text) : null
  const head = address === undefined ? (match?.[1] ?? '') : text
  const port = match?.[2] === undefined ? undefined : parsePort(match[2])
  if (match?.[2] !== undefined && port === undefined) throw refuse('has no possible port: 1 to 65535')
  return { pattern: parsePattern(head, refuse), port }
}

function parsePattern(text: string, refuse: (words: string) => SandboxError): HostPattern {
  if (text === '*') return { kind: 'any' }
  if (text.startsWith('*.')) {
    const below = parseHost(text.slice(2))
    if (below?.kind !== 'name') throw refuse("is no pattern of names such as '*.example.org'")
    if (!below.name.includes('.')) throw refuse("is a whole top-level domain: write '*' for any public host")
    return { kind: 'below', name: below.name }
  }
  if (text.includes('*')) throw refuse("has a * in it that is not the whole first part: '*' and '*.example.org' are possible")
  const host = parseHost(text)
  if (host === undefined) throw refuse("is no name and no address of a host: 'api.example.com', '203.0.113.7' and '[2001:db8::1]' are")
  if (host.kind === 'name') return host
  const range = parseRange(host.address.text)
  if (typeof range === 'string') throw refuse(range)
  return { kind: 'range', range }
}

/** `*.example.org:443 GET,HEAD /v1/*`: what a person would write, and more where a text has no place for it. */
function ruleText({ pattern, ports, methods, paths }: Omit<NetworkRule, 'text' | 'terminate'>, usual: readonly number[] | undefined): string {
  const isUsual = JSON.stringify(ports) === JSON.stringify(usual)
  return [`${patternText(pattern)}${isUsual ? '' : `:${(ports ?? ['*']).join(',')}`}`, methods?.join(','), paths?.join(',')]
    .filter((part) => part !== undefined)
    .join(' ')
}

export function patternText(pattern: HostPattern): string {
  switch (pattern.kind) {
    case 'any':
      return '*'
    case 'name':
      return pattern.name
    case 'below':
      return `*.${pattern.name}`
    case 'range':
      return singleText(pattern.range) ?? pattern.range.text
  }
}

/** Of one address: that address. */
function singleText({ family, prefix, text }: AddressRange): string | undefined {
  const [address = ''] = text.split('/')
  if (prefix !== (family === 4 ? 32 : 128)) return undefined
  return family === 6 ? `[${address}]` : address
}

/** What a spec says, as what decides. Throws SandboxError('invalid') naming the field. */
export function networkRules(network: NetworkWish, named: readonly string[] = []): NetworkRules {
  const { terminate = false, precedence = 'block', sni = 'match' } = network
  return {
    allow: (network.allow ?? []).map((entry, index) => parseRule(entry, { field: `network.allow[${index}]`, terminate })),
    block: (network.block ?? []).map((entry, index) => parseRule(entry, { field: `network.block[${index}]`, isBlock: true })),
    precedence,
    terminate,
    sni,
    credentials: (network.credentials ?? []).map((credential, index) => parseCredential(credential, `network.credentials[${index}]`)),
    limits: {
      maxConnections: network.maxConnections ?? networkLimitDefaults.maxConnections,
      bytes: network.bytes,
      bytesPerSecond: network.bandwidth,
      connectionBytes: network.connectionBytes,
      connectionBytesPerSecond: network.connectionBandwidth,
      requestTimeoutMs: network.requestTimeout ?? networkLimitDefaults.requestTimeoutMs,
      idleTimeoutMs: network.idleTimeout ?? networkLimitDefaults.idleTimeoutMs,
    },
    private: named.map((text, index) => parseRangeField(text, `ceiling.network.private[${index}]`)),
  }
}

/** Not said of a request but of the connection it comes by; a header of this name would break the message. */
const framing = ['host', 'connection', 'content-length', 'transfer-encoding', 'upgrade', 'te', 'trailer', 'keep-alive', 'expect', 'proxy-connection']

function parseCredential(credential: NonNullable<NetworkWish['credentials']>[number], field: string): Credential {
  const { header, value, env, file } = credential
  const { pattern, port = 443 } = parseHostEntry(credential.host, `${field}.host`)
  if (pattern.kind !== 'name') throw invalid(`${field}.host`, `'${printable(credential.host)}' must be the name of one host: a credential is for nobody else`)
  if (framing.includes(header.toLowerCase())) throw invalid(`${field}.header`, `'${header}' says how a message is carried, and cannot be a credential`)
  const sources = [value !== undefined && { value }, env !== undefined && { env }, file !== undefined && { file }].filter((source) => source !== false)
  const [source] = sources
  if (source === undefined || sources.length > 1) throw invalid(field, "must have exactly one of 'value', 'env' and 'file'")
  return { host: pattern, port, header: header.toLowerCase(), source }
}

/** The entry that would allow exactly this, as it is written in `network.allow`. */
export function entryFor(host: string, port: number): string {
  const parsed = parseHost(host)
  const text = parsed === undefined ? host : hostText(parsed)
  return (webPorts as readonly number[]).includes(port) ? text : `${text}:${port}`
}
