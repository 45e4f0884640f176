/**
 * Addresses, read in the one way in which they are also written. IPv4 is four decimal numbers without leading zeros, and nothing else: what older
 * libraries take as well (`127.1`, `0x7f.0.0.1`, `2130706433`) is no address, and no name either. IPv6 has no zone. An IPv4-mapped address is the IPv4 one.
 */
import type { Address, AddressRange } from '../contract/network.js'

const widths = { 4: 32, 6: 128 } as const

/** Undefined when it is none. Without brackets. */
export function parseAddress(text: string): Address | undefined {
  const v4 = parseV4(text)
  if (v4 !== undefined) return addressOf(4, v4)
  const v6 = parseV6(text)
  return v6 === undefined ? undefined : addressOf(6, v6)
}

/** From its bytes, as SOCKS and DNS have it: 4 or 16 of them. */
export function addressFromBytes(bytes: Uint8Array): Address | undefined {
  if (bytes.length !== 4 && bytes.length !== 16) return undefined
  return addressOf(
    bytes.length === 4 ? 4 : 6,
    [...bytes].reduce((bits, byte) => (bits << 8n) | BigInt(byte), 0n),
  )
}

export function bytesOfAddress({ family, bits }: Pick<Address, 'family' | 'bits'>): Uint8Array {
  const count = widths[family] / 8
  return Uint8Array.from({ length: count }, (_, index) => Number((bits >> BigInt(8 * (count - 1 - index))) & 0xffn))
}

const mappedPrefix = 0xffffn

export function addressOf(family: 4 | 6, bits: bigint): Address {
  if (family === 6 && bits >> 32n === mappedPrefix) return addressOf(4, bits & 0xffff_ffffn)
  return { family, bits, text: family === 4 ? textOfV4(bits) : textOfV6(bits) }
}

function parseV4(text: string): bigint | undefined {
  const parts = text.split('.')
  if (parts.length !== 4 || !parts.every((part) => /^(?:0|[1-9]\d{0,2})$/.test(part) && Number(part) <= 255)) return undefined
  return parts.reduce((bits, part) => (bits << 8n) | BigInt(part), 0n)
}

function parseV6(text: string): bigint | undefined {
  if (text.length > 45 || !/^[0-9a-f:.]+$/i.test(text)) return undefined
  const halves = text.split('::')
  if (halves.length > 2) return undefined
  const [before, after] = halves.map((half, index) => groupsOf(half, { isLast: index === halves.length - 1 }))
  if (before === undefined) return undefined
  if (halves.length === 1) return before.length === 8 ? joinGroups(before) : undefined
  if (after === undefined || before.length + after.length > 7) return undefined
  return joinGroups([...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after])
}

/** Of eight at most; an IPv4 address may stand for the last two. */
function groupsOf(half: string, { isLast }: { readonly isLast: boolean }): number[] | undefined {
  if (half === '') return []
  const parts = half.split(':')
  const groups: number[] = []
  for (const [index, part] of parts.entries()) {
    const v4 = isLast && index === parts.length - 1 && part.includes('.') ? parseV4(part) : undefined
    if (v4 !== undefined) groups.push(Number(v4 >> 16n), Number(v4 & 0xffffn))
    else if (/^[0-9a-f]{1,4}$/i.test(part)) groups.push(Number.parseInt(part, 16))
    else return undefined
  }
  return groups
}

function joinGroups(groups: readonly number[]): bigint {
  return groups.reduce((bits, group) => (bits << 16n) | BigInt(group), 0n)
}

function textOfV4(bits: bigint): string {
  return [24n, 16n, 8n, 0n].map((shift) => (bits >> shift) & 0xffn).join('.')
}

/** As RFC 5952 has it: lower case, the longest run of zeros (of two or more, the first of equals) left out. */
function textOfV6(bits: bigint): string {
  const groups = Array.from({ length: 8 }, (_, index) => ((bits >> BigInt(16 * (7 - index))) & 0xffffn).toString(16))
  let best = { start: 0, length: 1 }
  for (let start = 0; start < 8; start++) {
    let length = 0
    while (groups[start + length] === '0') length++
    if (length > best.length) best = { start, length }
  }
  if (best.length === 1) return groups.join(':')
  return `${groups.slice(0, best.start).join(':')}::${groups.slice(best.start + best.length).join(':')}`
}

/** `203.0.113.0/24`, or one address. A text says what is wrong with it. */
export function parseRange(text: string): AddressRange | string {
  const [head = '', prefixText, ...rest] = text.split('/')
  const address = parseAddress(head)
  if (address === undefined || rest.length > 0) return "is no range of addresses such as '203.0.113.0/24'"
  // A mapped range is one of IPv4, whose prefix counts 96 bits less.
  const written = head.includes(':') ? 6 : 4
  if (prefixText === undefined) return rangeOf(address, widths[address.family])
  if (!/^(?:0|[1-9]\d{0,2})$/.test(prefixText) || Number(prefixText) > widths[written]) return `has no possible prefix: /0 to /${widths[written]}`
  const prefix = written === address.family ? Number(prefixText) : Number(prefixText) - 96
  if (prefix < 0) return 'has no possible prefix: /96 to /128 of IPv4-mapped addresses'
  const range = rangeOf(address, prefix)
  return range.bits === address.bits ? range : `has bits below its prefix: write '${range.text}'`
}

function rangeOf({ family, bits }: Address, prefix: number): AddressRange {
  const below = BigInt(widths[family] - prefix)
  const first = (bits >> below) << below
  return { family, bits: first, prefix, text: `${family === 4 ? textOfV4(first) : textOfV6(first)}/${prefix}` }
}

export function isIn({ family, bits }: Address, range: AddressRange): boolean {
  const below = BigInt(widths[family] - range.prefix)
  return family === range.family && bits >> below === range.bits >> below
}

/** Whether the whole of one range is in the other. */
export function isRangeIn(inner: AddressRange, outer: AddressRange): boolean {
  return inner.prefix >= outer.prefix && isIn({ ...inner, text: '' }, outer)
}
