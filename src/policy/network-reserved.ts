/** Addresses that are nobody's on the public network: whoever reaches them from a sandbox reaches the host, its neighbours or its cloud. */
import type { Address, AddressRange } from '../contract/network.js'
import { addressOf, isIn, parseRange } from './network-address.js'

function rangeNamed(text: string): AddressRange {
  const range = parseRange(text)
  if (typeof range === 'string') throw new Error(`${text} ${range}`)
  return range
}

const reserved: readonly (readonly [AddressRange, string])[] = (
  [
    ['0.0.0.0/8', 'of this host'],
    ['10.0.0.0/8', 'private'],
    ['100.64.0.0/10', 'shared by a carrier'],
    ['127.0.0.0/8', 'loopback'],
    // The services of clouds are among these, and one is not.
    ['169.254.0.0/16', 'link-local'],
    ['168.63.129.16/32', "a cloud's own service"],
    ['172.16.0.0/12', 'private'],
    ['192.0.0.0/24', 'reserved'],
    ['192.0.2.0/24', 'for documentation'],
    ['192.88.99.0/24', 'reserved'],
    ['192.168.0.0/16', 'private'],
    ['198.18.0.0/15', 'for measurements'],
    ['198.51.100.0/24', 'for documentation'],
    ['203.0.113.0/24', 'for documentation'],
    ['224.0.0.0/4', 'multicast'],
    ['240.0.0.0/4', 'reserved'],
    ['::/128', 'of this host'],
    ['::1/128', 'loopback'],
    ['fc00::/7', 'private'],
    ['fe80::/10', 'link-local'],
    ['ff00::/8', 'multicast'],
    ['2001::/23', 'reserved'],
    ['2001:db8::/32', 'for documentation'],
    ['2002::/16', 'a tunnel of IPv4'],
    ['3ffe::/16', 'reserved'],
    ['3fff::/20', 'for documentation'],
  ] as const
).map(([text, kind]) => [rangeNamed(text), kind] as const)

/** The only part of IPv6 that is given to anybody. */
const globalUnicast = rangeNamed('2000::/3')
const nat64 = rangeNamed('64:ff9b::/96')
const embedding = {
  /** The last 32 bits. */
  low: [nat64, rangeNamed('64:ff9b:1::/48'), rangeNamed('::/96')],
  sixToFour: rangeNamed('2002::/16'),
  teredo: rangeNamed('2001::/32'),
} as const

/** The address, and the IPv4 one that it leads to where it stands for one: whoever denies the second denies the first. */
export function readingsOf(address: Address): readonly Address[] {
  if (address.family === 4) return [address]
  const { bits } = address
  const low = bits & 0xffff_ffffn
  if (embedding.low.some((range) => isIn(address, range))) return [address, addressOf(4, low)]
  if (isIn(address, embedding.sixToFour)) return [address, addressOf(4, (bits >> 80n) & 0xffff_ffffn)]
  // Teredo hides the client's address by inverting it, and shows its server's.
  if (isIn(address, embedding.teredo)) return [address, addressOf(4, low ^ 0xffff_ffffn), addressOf(4, (bits >> 64n) & 0xffff_ffffn)]
  return [address]
}

/** What it is instead of public, in words; undefined when it is public. */
function kindOf(address: Address): string | undefined {
  const found = reserved.find(([range]) => isIn(address, range))
  if (found !== undefined) return found[1]
  return address.family === 4 || isIn(address, globalUnicast) || isIn(address, nat64) ? undefined : 'reserved'
}

/** Why it may not be dialled, unless an operator has named it: `loopback`, `private` and so on; undefined when it may. */
export function reservedKind(address: Address, named: readonly AddressRange[]): string | undefined {
  for (const reading of readingsOf(address)) {
    const kind = kindOf(reading)
    if (kind !== undefined && !named.some((range) => isIn(reading, range))) return kind
  }
  return undefined
}

const metadataNames = ['metadata', 'metadata.google.internal', 'metadata.goog', 'instance-data', 'instance-data.ec2.internal', 'metadata.azure.internal']
const metadataAddress = addressOf(4, 0xa9fe_a9fen)

/** The same of names that lead nowhere else, so that nobody needs to be asked for them. */
export function reservedNameKind(name: string, named: readonly AddressRange[]): string | undefined {
  if (name === 'localhost' || name.endsWith('.localhost')) return loopbackAddresses.every((address) => reservedKind(address, named)) ? 'loopback' : undefined
  return metadataNames.includes(name) && reservedKind(metadataAddress, named) !== undefined ? "a cloud's own service" : undefined
}

/** Where `localhost` leads, whatever a resolver says. */
export const loopbackAddresses: readonly Address[] = [addressOf(4, 0x7f00_0001n), addressOf(6, 1n)]
