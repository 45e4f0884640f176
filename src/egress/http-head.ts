/**
 * The head of a request, judged before anybody acts on it. Node's parser has refused bare line feeds, folded lines, and lengths that contradict each other;
 * what it lets through and two servers could read in two ways is refused here. What goes on is written anew from what was understood.
 */
import type { IncomingMessage } from 'node:http'
import type { Host } from '../contract/network.js'
import { isSameHost, parseHost, splitAuthority } from '../policy/network-host.js'
import type { Header } from './front-words.js'

/** How the end of a body is told: it has none, that many bytes, or as it comes. */
export type Framing = 'none' | 'chunked' | number

export interface Head {
  readonly headers: readonly Header[]
  readonly framing: Framing
}

const mostHeaders = 256

/** Of one connection to the other side only; the last three are ours to write. */
const notPassedOn = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'upgrade',
  'http2-settings',
  'expect',
  'transfer-encoding',
  'content-length',
  'host',
])

export function pairsOf(raw: readonly string[]): Header[] {
  return Array.from({ length: raw.length / 2 }, (_, index) => [raw[2 * index] ?? '', raw[2 * index + 1] ?? ''])
}

/** What is passed on, and how long the body is; a text says why it is refused. */
export function readHead(request: IncomingMessage): Head | string {
  const { httpVersion, method = '', url = '' } = request
  const headers = pairsOf(request.rawHeaders)
  if (headers.length > mostHeaders) return `the request has more than ${mostHeaders} headers`
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return `HTTP/${httpVersion} is not spoken here`
  if (method === 'TRACE') return 'TRACE would show what the way out adds to requests'
  if (!/^[\x21-\x7e]+$/.test(url) || url.includes('#')) return 'the target of the request cannot be read'
  if (valuesOf(headers, 'host').length > 1) return 'there is more than one Host header'
  const framing = framingOf(headers, httpVersion)
  return typeof framing === 'object' ? framing.refused : { headers: endToEnd(headers), framing }
}

function framingOf(headers: readonly Header[], version: string): Framing | { readonly refused: string } {
  const lengths = valuesOf(headers, 'content-length')
  const encodings = valuesOf(headers, 'transfer-encoding')
  if (lengths.length + encodings.length > 1) return { refused: 'the length of the body is said more than once' }
  const [length] = lengths
  if (length !== undefined) return /^\d{1,15}$/.test(length) ? Number(length) : { refused: 'the length of the body cannot be read' }
  const [encoding] = encodings
  if (encoding === undefined) return 'none'
  if (version === '1.0') return { refused: 'HTTP/1.0 knows no Transfer-Encoding' }
  return encoding.toLowerCase() === 'chunked' ? 'chunked' : { refused: 'only chunked is known as Transfer-Encoding' }
}

/** Without what belongs to one connection: what the standard names, and what Connection names. */
export function endToEnd(headers: readonly Header[]): Header[] {
  const named = new Set(valuesOf(headers, 'connection').flatMap((value) => value.split(',').map((name) => name.trim().toLowerCase())))
  return headers.filter(([name]) => !notPassedOn.has(name.toLowerCase()) && !named.has(name.toLowerCase()))
}

export function valuesOf(headers: readonly Header[], wanted: string): string[] {
  return headers.filter(([name]) => name.toLowerCase() === wanted).map(([, value]) => value.trim())
}

const otherMethod = new Set(['x-http-method-override', 'x-http-method', 'x-method-override'])
const otherPath = new Set(['x-original-url', 'x-rewrite-url'])

/** What frameworks take instead of the method and the path, which rules may name; undefined when nothing asks for it. */
export function insteadOf(headers: readonly Header[]): { readonly methods: string[]; readonly paths: string[] } | undefined {
  const values = (names: ReadonlySet<string>) => headers.filter(([name]) => names.has(keyOf(name))).map(([, value]) => value.trim())
  const [methods, paths] = [values(otherMethod).map((method) => method.toUpperCase()), values(otherPath)]
  return methods.length + paths.length === 0 ? undefined : { methods, paths }
}

/** Servers that hand headers on as variables read `x_key` and `x-key` alike. */
export function keyOf(name: string): string {
  return name.toLowerCase().replaceAll('_', '-')
}

/** Where a request goes, as it says so itself. */
export interface Destination {
  /** Unchanged. */
  readonly host: string
  readonly port: number
  readonly path: string
}

/** Of `http://host:port/path?query`; a text says why it is refused. `Host` must say the same. */
export function readAbsolute(url: string, hostHeader: string | undefined): Destination | string {
  const match = /^http:\/\/([^/?]*)([/?].*)?$/i.exec(url)
  if (match?.[1] === undefined) {
    return /^https:/i.test(url) ? 'https is reached with CONNECT' : 'this is a proxy: a request names a whole URL, or is a CONNECT'
  }
  const authority = splitAuthority(match[1])
  if (authority === undefined) return 'the host of the URL cannot be read'
  const host = parseHost(authority.host)
  const port = authority.port ?? 80
  if (host !== undefined && hostHeader !== undefined && !isNamedBy(hostHeader, { host, port, usual: 80 })) return 'the Host header is not the host of the URL'
  const rest = match[2] ?? '/'
  return { host: authority.host, port, path: rest.startsWith('?') ? `/${rest}` : rest }
}

/** Whether a Host header or :authority is that of a host and port; without a port it is of the usual one. */
export function isNamedBy(text: string, { host, port, usual }: { host: Host; port: number; usual: number }): boolean {
  const authority = splitAuthority(text)
  const named = authority && parseHost(authority.host)
  return named !== undefined && isSameHost(named, host) && (authority?.port ?? usual) === port
}
