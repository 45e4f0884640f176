/** Addresses that nobody may reach, in whatever spelling and wherever a program can write one: what is read is what would be dialled, or nothing is. */
import { isIP } from 'node:net'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { networkSchema } from '../../src/contract/network.js'
import { readAbsolute } from '../../src/egress/http-head.js'
import { parseSocksRequest } from '../../src/egress/socks.js'
import { addressOf, parseAddress } from '../../src/policy/network-address.js'
import { decide } from '../../src/policy/network-decide.js'
import { hostText, parseHost, splitAuthority } from '../../src/policy/network-host.js'
import { networkRules } from '../../src/policy/network-rules.js'

const privateFirsts = [0x0a00_0000, 0x7f00_0000, 0xa9fe_a900, 0xc0a8_0000, 0xac10_0000, 0x6440_0000, 0xe000_0000, 0]
const privates = fc.tuple(fc.constantFrom(...privateFirsts), fc.integer({ min: 0, max: 0xfe })).map(([first, low]) => first + low)
const hex = (bits: number, width = 1): string => bits.toString(16).padStart(width, '0')
const parts = (bits: number): number[] => [24, 16, 8, 0].map((shift) => (bits >>> shift) & 0xff)
const dotted = (bits: number): string => parts(bits).join('.')
const groups = (bits: number): string => `${hex(bits >>> 16)}:${hex(bits & 0xffff)}`

const spellings: readonly ((bits: number) => string)[] = [
  dotted,
  (bits) => `${dotted(bits)}.`,
  (bits) => String(bits),
  (bits) => `0x${hex(bits, 8)}`,
  (bits) => `0${bits.toString(8)}`,
  (bits) =>
    parts(bits)
      .map((part) => `0${part.toString(8)}`)
      .join('.'),
  (bits) =>
    parts(bits)
      .map((part) => `0X${hex(part).toUpperCase()}`)
      .join('.'),
  (bits) => `${bits >>> 24}.${bits & 0xff_ffff}`,
  (bits) => `${bits >>> 24}.${(bits >>> 16) & 0xff}.${bits & 0xffff}`,
  (bits) => dotted(bits).replaceAll('.', '。'),
  (bits) => dotted(bits).replace(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit))),
  (bits) => dotted(bits).replaceAll('.', '%2e'),
  (bits) => `${dotted(bits)}%00.example.org`,
  (bits) => `${dotted(bits)}\0.example.org`,
  (bits) => ` ${dotted(bits)}`,
  (bits) => `example.org@${dotted(bits)}`,
  (bits) => `${dotted(bits)}#example.org`,
  (bits) => `${dotted(bits)}\\example.org`,
  ...['::ffff:', '::', '64:ff9b::', '64:ff9b:1::', '::ffff:0:', '0:0:0:0:0:FFFF:'].flatMap((prefix) => [
    (bits: number) => `[${prefix}${dotted(bits)}]`,
    (bits: number) => `[${prefix}${groups(bits)}]`,
    (bits: number) => `${prefix}${groups(bits)}`,
    (bits: number) => `[${prefix}${groups(bits)}%eth0]`,
  ]),
  (bits) => `[2002:${groups(bits)}::1]`,
  (bits) => `[2001:0:${groups(bits)}::1]`,
  (bits) => `[2001:0:808:808:0:0:${groups(~bits >>> 0)}]`,
]

const everything = networkSchema.parse({ allow: ['*', '*:8080', { cidr: '0.0.0.0/0' }, { cidr: '::/0' }] })
const rules = networkRules(everything === false ? {} : everything)

/** Whether a host, as somebody wrote it, is somewhere that may be asked for. */
function isReached(text: string): boolean {
  const host = parseHost(text)
  if (host === undefined) return false
  // A name is resolved, and its addresses are judged one by one.
  return decide(rules, { host, port: 443, request: 'opaque' }).verdict === 'allow' && host.kind === 'address'
}

const socks = (name: string): string => {
  const bytes = Buffer.from(name, 'latin1').subarray(0, 255)
  const request = parseSocksRequest(Buffer.concat([Buffer.of(5, 1, 0, 3, bytes.length), bytes, Buffer.of(1, 187)]))
  return typeof request === 'object' && request.kind === 'connect' ? request.host : ''
}

const positions: Readonly<Record<string, (spelling: string) => string>> = {
  'a host': (spelling) => spelling,
  CONNECT: (spelling) => splitAuthority(`${spelling}:443`)?.host ?? '',
  'a URL': (spelling) => {
    const read = readAbsolute(`http://${spelling}:8080/`, undefined)
    return typeof read === 'string' ? '' : read.host
  },
  'a name of SOCKS': socks,
}

test.each(Object.entries(positions))('a private address is reached in no spelling as %s', (_name, read) => {
  expect(isReached(read('8.8.8.8'))).toBe(true)
  fc.assert(
    fc.property(privates, fc.constantFrom(...spellings), (bits, spell) => {
      expect(isReached(read(spell(bits)))).toBe(false)
      const upper = spell(bits).toUpperCase()
      expect(isReached(read(upper))).toBe(false)
    }),
    { numRuns: 3000 },
  )
})

test('what decides reads an address as what dials it does', () => {
  fc.assert(
    fc.property(fc.oneof(fc.bigInt({ min: 0n, max: 2n ** 32n - 1n }), fc.bigInt({ min: 0n, max: 2n ** 128n - 1n })), fc.boolean(), (bits, isFour) => {
      const address = addressOf(isFour && bits < 2n ** 32n ? 4 : 6, bits)
      expect(isIP(address.text)).toBe(address.family)
      expect(parseAddress(address.text)).toEqual(address)
      // As every URL has it: the same host, written in the same way.
      const text = hostText({ kind: 'address', address })
      expect(parseHost(new URL(`http://${text}/`).hostname)).toEqual({ kind: 'address', address })
    }),
    { numRuns: 2000 },
  )
})

test('where the parser of URLs finds an address in a text, ours finds the same one or refuses the text', () => {
  const texts = fc.oneof(
    fc.stringMatching(/^[0-9a-fxX.:]{1,30}$/),
    fc.tuple(fc.nat(0xffff_ffff), fc.constantFrom(...spellings)).map(([bits, spell]) => spell(bits)),
  )
  fc.assert(
    fc.property(texts, (text) => {
      const url = tryUrl(text)
      const theirs = parseHost(url?.hostname ?? '')
      const ours = parseHost(text)
      if (theirs?.kind === 'address' && ours !== undefined) expect(ours).toEqual(theirs)
    }),
    { numRuns: 5000 },
  )
})

function tryUrl(text: string): URL | undefined {
  try {
    return new URL(`http://${text}/`)
  } catch {
    return undefined
  }
}
