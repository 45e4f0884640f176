/** SOCKS5 (RFC 1928), as much of it as there is a use for: no authentication, CONNECT. Pure. */
import { addressFromBytes } from '../policy/network-address.js'

export const socksReplies = { succeeded: 0, failed: 1, notAllowed: 2, hostUnreachable: 4, refused: 5, commandUnknown: 7, addressUnknown: 8 } as const
export type SocksReply = keyof typeof socksReplies

export type SocksGreeting = { readonly length: number; readonly isAcceptable: boolean }

/** `'more'` when it is not complete. */
export function parseSocksGreeting(bytes: Buffer): SocksGreeting | 'more' {
  const count = bytes[1]
  if (count === undefined || bytes.length < 2 + count) return 'more'
  // Whoever has nothing to offer but a password is told so, rather than believed.
  return { length: 2 + count, isAcceptable: bytes.subarray(2, 2 + count).includes(0) }
}

export const socksNoAuthentication = Buffer.of(5, 0)
export const socksNoneAcceptable = Buffer.of(5, 0xff)

export type SocksRequest =
  | { readonly kind: 'connect'; readonly length: number; readonly host: string; readonly port: number }
  | { readonly kind: 'refused'; readonly reply: SocksReply; readonly reason: string }

const commands: Readonly<Record<number, string>> = { 2: 'BIND', 3: 'UDP ASSOCIATE' }

/** `'more'` when it is not complete. Host and name are taken as they are: whoever judges them has the one parser of hosts. */
export function parseSocksRequest(bytes: Buffer): SocksRequest | 'more' {
  if (bytes.length < 5) return 'more'
  const [version, command = 0, reserved, kind, first = 0] = bytes
  if (version !== 5 || reserved !== 0) return refused('failed', 'a request of SOCKS that cannot be read')
  if (command !== 1) return refused('commandUnknown', `${commands[command] ?? `command ${command}`} of SOCKS: only CONNECT is offered`)
  if (kind !== 1 && kind !== 3 && kind !== 4) return refused('addressUnknown', `an address of SOCKS of the unknown type ${kind}`)
  const length = kind === 3 ? 5 + first : 4 + (kind === 1 ? 4 : 16)
  if (bytes.length < length + 2) return 'more'
  const port = bytes.readUInt16BE(length)
  const host = kind === 3 ? bytes.toString('latin1', 5, length) : addressText(bytes.subarray(4, length))
  if (port === 0) return refused('failed', 'port 0')
  return { kind: 'connect', length: length + 2, host, port }
}

function addressText(bytes: Buffer): string {
  return addressFromBytes(bytes)?.text ?? ''
}

function refused(reply: SocksReply, reason: string): SocksRequest {
  return { kind: 'refused', reply, reason }
}

/** The address that it names is nobody's business. */
export function socksReply(reply: SocksReply): Buffer {
  return Buffer.of(5, socksReplies[reply], 0, 1, 0, 0, 0, 0, 0, 0)
}
/** 0x5b: rejected. */
export const socks4Refusal = Buffer.of(0, 0x5b, 0, 0, 0, 0, 0, 0)
