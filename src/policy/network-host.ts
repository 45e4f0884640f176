/** The one parser of hosts: what it reads is what is judged, resolved, dialled and written down. What it cannot read strictly is denied. */
import type { Host } from '../contract/network.js'
import { parseAddress } from './network-address.js'

const label = /^(?!-)[a-z0-9_-]{1,63}(?<!-)$/
/** What some library would read as a number of an address. */
const numeric = /^(?:\d+|0x[0-9a-f]*)$/

/** A name or an address, in brackets or not; undefined when it is neither. */
export function parseHost(text: string): Host | undefined {
  if (text.startsWith('[') || text.includes(':')) {
    const inner = text.startsWith('[') && text.endsWith(']') ? text.slice(1, -1) : text
    const address = inner.includes(':') ? parseAddress(inner) : undefined
    return address && { kind: 'address', address }
  }
  const address = parseAddress(text)
  if (address !== undefined) return { kind: 'address', address }
  const name = nameOf(text)
  return name === undefined ? undefined : { kind: 'name', name }
}

/** In lower case, without a closing dot. Anything beyond ASCII is refused: who means such a name writes it as `xn--`. */
function nameOf(text: string): string | undefined {
  if (!/^[\x21-\x7e]+$/.test(text)) return undefined
  const name = text.toLowerCase().replace(/\.$/, '')
  const labels = name.split('.')
  if (name.length > 253 || !labels.every((each) => label.test(each))) return undefined
  return numeric.test(labels.at(-1) ?? '') ? undefined : name
}

/** As it stands in a URL. */
export function hostText(host: Host): string {
  if (host.kind === 'name') return host.name
  return host.address.family === 6 ? `[${host.address.text}]` : host.address.text
}

export function isSameHost(a: Host, b: Host): boolean {
  return a.kind === b.kind && hostText(a) === hostText(b)
}

export interface Authority {
  /** Unchanged: for `parseHost`. */
  readonly host: string
  /** Undefined when none is written. */
  readonly port: number | undefined
}

/** `host`, `host:port`, `[address]`, `[address]:port`; undefined when it is none of these, as with a user before an @. */
export function splitAuthority(text: string): Authority | undefined {
  const match = /^(\[[0-9A-Fa-f:.]+\]|[^:[\]@/\\?#\s]+)(?::(\d+))?$/.exec(text)
  if (match?.[1] === undefined) return undefined
  if (match[2] === undefined) return { host: match[1], port: undefined }
  const port = parsePort(match[2])
  return port === undefined ? undefined : { host: match[1], port }
}

/** 1 to 65535, without leading zeros. */
export function parsePort(text: string): number | undefined {
  return /^[1-9]\d{0,4}$/.test(text) && Number(text) <= 65_535 ? Number(text) : undefined
}
