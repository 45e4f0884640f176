import { isIPv4, isIPv6 } from 'node:net'
import type { Host } from '../../../src/contract/network.js'
import { networkSchema } from '../../../src/contract/network.js'
import { readAbsolute } from '../../../src/egress/http-head.js'
import { addressOf, bytesOfAddress, addressFromBytes, parseAddress, parseRange } from '../../../src/policy/network-address.js'
import { decide } from '../../../src/policy/network-decide.js'
import { hostText, parseHost, splitAuthority } from '../../../src/policy/network-host.js'
import { networkRules } from '../../../src/policy/network-rules.js'
import { type FuzzTarget, holds, isSame, textIn } from '../target.js'

const parsed = networkSchema.parse({ allow: ['*', '*.example.org:8443'], block: ['secret.example.org', { cidr: '203.0.113.0/24' }, '*.deny.test'] })
const rules = networkRules(parsed === false ? {} : parsed)
const verdict = (host: Host): string => decide(rules, { host, port: 443, request: 'unknown' }).verdict

/** The odd spellings of one host: whatever is read of them is decided as the host is, or nothing is read. */
function spellings(host: Host): string[] {
  const text = hostText(host)
  if (host.kind === 'name') return [text.toUpperCase(), `${text}.`, `${text[0]?.toUpperCase() ?? ''}${text.slice(1)}`]
  const { family, bits } = host.address
  if (family === 6) return [text.toUpperCase(), text.slice(1, -1), text.replace('::', ':0:')]
  const mapped = `[::ffff:${text}]`
  return [`${text}.`, mapped, `${bits}`, `0x${bits.toString(16)}`, `0${bits.toString(8)}`, text.replace(/\.0\./, '.')]
}

/** Hosts and addresses in every spelling. */
export const target: FuzzTarget = {
  name: 'network-hosts',
  most: 400,
  seeds: [
    'example.org',
    'A.Example.ORG.',
    '127.0.0.1',
    '[::1]',
    '::ffff:10.0.0.1',
    '2130706433',
    '0x7f.1',
    '[fe80::1%eth0]',
    'xn--bcher-kva.example',
    'secret.example.org:443',
    '203.0.113.7',
    '10.0.0.0/8',
    '2001:db8::/32',
    'http://allowed.test@evil.test/',
    'http://a.example:80/x?y',
    'localhost',
    '①②⑦.0.0.1',
    'a.deny.test',
  ],
  run(bytes) {
    const text = textIn(bytes)
    const address = parseAddress(text)
    if (address) {
      holds(isIPv6(text) || (address.family === 4 && isIPv4(text)), 'what is an address here is one for the kernel')
      isSame(parseAddress(address.text), address, 'an address as it is written is read as itself')
      isSame(addressFromBytes(bytesOfAddress(address)), address, 'an address as bytes is itself')
      isSame(addressOf(address.family, address.bits), address, 'an address as a number is itself')
    }
    const range = parseRange(text)
    if (typeof range !== 'string') isSame(parseRange(range.text), range, 'a range as it is written is read as itself')
    const split = splitAuthority(text)
    if (split)
      holds(
        !/[@/\\?#\s]/.test(split.host) && (split.port === undefined || (split.port > 0 && split.port < 65_536)),
        'an authority has a host, and at most a port',
      )
    const host = parseHost(text)
    const url = readAbsolute(text, undefined)
    if (typeof url !== 'string') {
      const named = parseHost(url.host)
      // Whatever else reads the same address must come to the same host, or to none.
      const other = URL.canParse(text) ? new URL(text).hostname : undefined
      if (named && other !== undefined) isSame(hostText(named).replace(/\.$/, ''), other.replace(/\.$/, ''), 'a URL is read as others read it')
    }
    if (!host) return
    isSame(parseHost(hostText(host)), host, 'a host as it is written is read as itself')
    for (const spelling of spellings(host)) {
      const read = parseHost(spelling)
      if (!read) continue
      const isDenied = verdict(host) === 'deny'
      if (hostText(read) === hostText(host) || isDenied) isSame(verdict(read) === 'deny', isDenied, `${spelling} is decided as ${hostText(host)} is`)
    }
  },
}
