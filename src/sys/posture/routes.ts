import { existsSync } from 'node:fs'

/** Whether this kernel has IPv6 at all. */
export function hasIpv6(): boolean {
  return existsSync('/proc/self/net/if_inet6')
}

/** What /proc/net/route and /proc/net/ipv6_route tell, as `DESTINATION INTERFACE`; sorted. */

/** RTF_REJECT: nothing is reached that way, as each namespace has it for what it knows no way to. */
const reject = 0x0200
const ownLoopback = `${'0'.repeat(31)}1`

export function parseRoutes(four: string, six: string): string[] {
  return [...four.split('\n').slice(1).flatMap(fourOf), ...six.split('\n').flatMap(sixOf)].sort()
}

/** Interface, destination, gateway, flags, three numbers, mask: addresses as the machine has them in memory, which is little-endian. */
function fourOf(line: string): string[] {
  const [name, destination, , , , , , mask] = line.trim().split(/\s+/)
  if (name === undefined || destination === undefined || mask === undefined) return []
  const bytes = Buffer.from(destination, 'hex').reverse()
  return [`${bytes.join('.')}/${countOnes(Number.parseInt(mask, 16))} ${name}`]
}

/** Destination and the length of its prefix, both twice, next hop, four numbers of which the last are flags, interface. */
function sixOf(line: string): string[] {
  const fields = line.trim().split(/\s+/)
  const [destination, length] = fields
  const [flags, name] = fields.slice(-2)
  if (destination === undefined || length === undefined || flags === undefined || name === undefined) return []
  if ((Number.parseInt(flags, 16) & reject) !== 0 || destination === ownLoopback) return []
  const groups = destination.match(/.{4}/g)?.map((group) => Number.parseInt(group, 16).toString(16)) ?? []
  return [`${/^0+$/.test(destination) ? '::' : groups.join(':')}/${Number.parseInt(length, 16)} ${name}`]
}

function countOnes(number: number): number {
  return number.toString(2).replaceAll('0', '').length
}

/** Of /proc/PID/net/dev: two lines of headings, then `NAME: numbers`. */
export function interfacesOf(table: string): string[] {
  const names = table.split('\n').flatMap((line) => /^\s*([^\s:|]+):/.exec(line)?.[1] ?? [])
  return names.sort()
}
