import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { NetworkInput, NetworkRules } from '../../src/contract/network.js'
import { networkSchema } from '../../src/contract/network.js'
import { addressOf } from '../../src/policy/network-address.js'
import { addressRefusal, decide, isNameKnown, mustTerminate, type Question } from '../../src/policy/network-decide.js'
import { parseHost } from '../../src/policy/network-host.js'
import { networkRules } from '../../src/policy/network-rules.js'

function rulesFor(input: Exclude<NetworkInput, false>, named: readonly string[] = []): NetworkRules {
  const network = networkSchema.parse(input)
  if (network === false) throw new Error('is off')
  return networkRules(network, named)
}

type Entry = NonNullable<Exclude<NetworkInput, false>['allow']>[number]

interface Asked {
  readonly host: string
  readonly port?: number
  readonly request?: Question['request']
}

/** What becomes of it: `allow`, `undecided`, the code of a denial, or `unparsable`. */
function verdictOf(rules: NetworkRules, { host: text, port = 443, request = 'unknown' }: Asked): string {
  const host = parseHost(text)
  if (host === undefined) return 'unparsable'
  const decision = decide(rules, { host, port, request })
  return decision.verdict === 'deny' ? decision.code : decision.verdict
}

const get = (path: string): Question['request'] => ({ method: 'GET', path })
const post = (path: string): Question['request'] => ({ method: 'POST', path })
type Row = readonly [host: string, port: number, verdict: string, request?: Question['request']]

function table(name: string, network: Exclude<NetworkInput, false>, rows: readonly Row[]): void {
  describe(name, () => {
    test.each(rows.map(([host, port, verdict, request = 'unknown']) => ({ host, port, verdict, request })))('$host port $port: $verdict', (row) => {
      expect(verdictOf(rulesFor(network), row)).toBe(row.verdict)
    })
  })
}

table('an empty list', { allow: [] }, [
  ['example.org', 443, 'undecided'],
  ['8.8.8.8', 443, 'undecided'],
  ['localhost', 80, 'private'],
])

table('nothing said', {}, [['example.org', 443, 'undecided']])

table('one name', { allow: ['api.example.com'] }, [
  ['api.example.com', 443, 'allow'],
  ['api.example.com', 80, 'allow'],
  ['API.Example.COM', 443, 'allow'],
  ['api.example.com.', 443, 'allow'],
  ['api.example.com..', 443, 'unparsable'],
  ['api.example.com', 8443, 'undecided'],
  ['api.example.com', 22, 'undecided'],
  ['example.com', 443, 'undecided'],
  ['x.api.example.com', 443, 'undecided'],
  ['xapi.example.com', 443, 'undecided'],
  ['api.example.com.evil.test', 443, 'undecided'],
  ['api.example.com@evil.test', 443, 'unparsable'],
  ['evil.test#@api.example.com', 443, 'unparsable'],
  ['evil.test\\@api.example.com', 443, 'unparsable'],
  ['api.example.com\u0000.evil.test', 443, 'unparsable'],
  ['api.example.com\r\n', 443, 'unparsable'],
  ['api.еxample.com', 443, 'unparsable'],
  ['ａpi.example.com', 443, 'unparsable'],
  ['8.8.8.8', 443, 'undecided'],
  ['', 443, 'unparsable'],
  ['.', 443, 'unparsable'],
  ['api..example.com', 443, 'unparsable'],
  ['-api.example.com', 443, 'unparsable'],
])

table('names below another', { allow: ['*.example.org'] }, [
  ['a.example.org', 443, 'allow'],
  ['a.b.c.example.org', 443, 'allow'],
  ['example.org', 443, 'undecided'],
  ['badexample.org', 443, 'undecided'],
  ['example.org.evil.test', 443, 'undecided'],
  ['*.example.org', 443, 'unparsable'],
])

table('any public host', { allow: ['*'] }, [
  ['example.org', 443, 'allow'],
  ['8.8.8.8', 80, 'allow'],
  ['2606:4700::1111', 443, 'allow'],
  ['[2606:4700::1111]', 443, 'allow'],
  ['example.org', 25, 'undecided'],
  ['localhost', 443, 'private'],
  ['localhost.', 443, 'private'],
  ['LOCALHOST', 443, 'private'],
  ['x.localhost', 443, 'private'],
  ['metadata.google.internal', 80, 'private'],
  ['METADATA.google.internal.', 80, 'private'],
  ['instance-data', 80, 'private'],
  ['127.0.0.1', 443, 'private'],
  ['127.0.0.1.', 443, 'unparsable'],
  ['127.1', 443, 'unparsable'],
  ['127.0.1', 443, 'unparsable'],
  ['0177.0.0.1', 443, 'unparsable'],
  ['0x7f.0.0.1', 443, 'unparsable'],
  ['0x7f000001', 443, 'unparsable'],
  ['2130706433', 443, 'unparsable'],
  ['017700000001', 443, 'unparsable'],
  ['127.0.0.01', 443, 'unparsable'],
  ['256.0.0.1', 443, 'unparsable'],
  ['1.2.3.4.5', 443, 'unparsable'],
  ['①②⑦.0.0.1', 443, 'unparsable'],
  ['127。0。0。1', 443, 'unparsable'],
  ['0.0.0.0', 443, 'private'],
  ['10.1.2.3', 443, 'private'],
  ['100.64.0.1', 443, 'private'],
  ['100.100.100.200', 80, 'private'],
  ['168.63.129.16', 80, 'private'],
  ['169.254.169.254', 80, 'private'],
  ['169.254.170.2', 80, 'private'],
  ['172.16.0.1', 443, 'private'],
  ['172.31.255.255', 443, 'private'],
  ['172.32.0.1', 443, 'allow'],
  ['192.0.0.192', 80, 'private'],
  ['192.168.1.1', 443, 'private'],
  ['198.18.0.1', 443, 'private'],
  ['198.51.100.1', 443, 'private'],
  ['203.0.113.1', 443, 'private'],
  ['224.0.0.251', 443, 'private'],
  ['255.255.255.255', 443, 'private'],
  ['::', 443, 'private'],
  ['::1', 443, 'private'],
  ['0:0:0:0:0:0:0:1', 443, 'private'],
  ['[::1]', 443, 'private'],
  ['::ffff:127.0.0.1', 443, 'private'],
  ['::ffff:7f00:1', 443, 'private'],
  ['0:0:0:0:0:ffff:a00:1', 443, 'private'],
  ['::127.0.0.1', 443, 'private'],
  ['64:ff9b::10.0.0.1', 443, 'private'],
  ['64:ff9b::a9fe:a9fe', 80, 'private'],
  ['64:ff9b::8.8.8.8', 443, 'allow'],
  ['64:ff9b:1::8.8.8.8', 443, 'private'],
  ['2002:7f00:1::', 443, 'private'],
  ['2002:808:808::', 443, 'private'],
  ['2001:0:4136:e378:8000:63bf:3fff:fdd2', 443, 'private'],
  ['fd00:ec2::254', 80, 'private'],
  ['fe80::1', 443, 'private'],
  ['fe80::1%eth0', 443, 'unparsable'],
  ['ff02::fb', 443, 'private'],
  ['fec0::1', 443, 'private'],
  ['2001:db8::1', 443, 'private'],
  ['3fff::1', 443, 'private'],
  ['4000::1', 443, 'private'],
  ['[::1', 443, 'unparsable'],
  ['1::2::3', 443, 'unparsable'],
  ['12345::', 443, 'unparsable'],
])

table('a port on any public host', { allow: ['*:5432'] }, [
  ['db.example.org', 5432, 'allow'],
  ['8.8.4.4', 5432, 'allow'],
  ['db.example.org', 443, 'undecided'],
  ['10.0.0.1', 5432, 'private'],
])

table('addresses', { allow: ['8.8.8.8:53', { cidr: '1.1.1.0/24', ports: [443] }, '[2606:4700::1111]:443'] }, [
  ['8.8.8.8', 53, 'allow'],
  ['8.8.4.4', 53, 'undecided'],
  ['::ffff:8.8.8.8', 53, 'allow'],
  ['64:ff9b::8.8.8.8', 53, 'undecided'],
  ['1.1.1.1', 443, 'allow'],
  ['1.1.2.1', 443, 'undecided'],
  ['1.1.1.1', 80, 'undecided'],
  ['2606:4700:0:0:0:0:0:1111', 443, 'allow'],
  ['one.one.one.one', 443, 'undecided'],
])

table('a block below what is allowed', { allow: ['*.example.org', '*:8080'], block: ['bad.example.org', '*.deep.example.org:443', { cidr: '8.8.0.0/16' }] }, [
  ['good.example.org', 443, 'allow'],
  ['bad.example.org', 443, 'blocked'],
  ['bad.example.org', 8080, 'blocked'],
  ['BAD.example.org.', 443, 'blocked'],
  ['x.bad.example.org', 443, 'allow'],
  ['a.deep.example.org', 443, 'blocked'],
  ['a.deep.example.org', 80, 'allow'],
  ['deep.example.org', 443, 'allow'],
  ['8.8.4.4', 8080, 'blocked'],
  ['::ffff:8.8.4.4', 8080, 'blocked'],
  ['64:ff9b::8.8.4.4', 8080, 'blocked'],
  ['9.9.9.9', 8080, 'allow'],
])

table('everything blocked', { allow: ['*'], block: ['*'] }, [['example.org', 443, 'blocked']])

table('an allowing list that wins', { allow: ['good.example.org'], block: ['*'], precedence: 'allow' }, [
  ['good.example.org', 443, 'allow'],
  ['good.example.org', 8443, 'blocked'],
  ['other.example.org', 443, 'blocked'],
  ['127.0.0.1', 443, 'private'],
])

const requests = {
  allow: [{ host: 'api.example.com', methods: ['GET', 'HEAD'], paths: ['/v1/*', '/health'] }, { host: 'open.example.com' }],
  block: [
    { host: 'open.example.com', paths: ['/admin*'] },
    { host: 'open.example.com', methods: ['DELETE'] },
  ],
}

table('methods and paths', requests, [
  ['api.example.com', 443, 'allow', get('/v1/things')],
  ['api.example.com', 443, 'allow', get('/v1/things?q=/v2')],
  ['api.example.com', 443, 'allow', get('/health')],
  ['api.example.com', 443, 'path', get('/healthy')],
  ['api.example.com', 443, 'path', get('/v2/')],
  ['api.example.com', 443, 'path', get('/v1')],
  ['api.example.com', 443, 'method', post('/v1/things')],
  ['api.example.com', 443, 'method', { method: 'get', path: '/v1/things' }],
  ['api.example.com', 443, 'path', get('/v1/../secret')],
  ['api.example.com', 443, 'path', get('/v1/%2e%2e/secret')],
  ['api.example.com', 443, 'path', get('/v1/.%2E/secret')],
  ['api.example.com', 443, 'path', get('/v1/..%2fsecret')],
  ['api.example.com', 443, 'path', get('/v1/%252e%252e/secret')],
  ['api.example.com', 443, 'path', get('/v1/..;/secret')],
  ['api.example.com', 443, 'path', get('/v1/..\\secret')],
  ['api.example.com', 443, 'path', get('/v1/%5c..%5csecret')],
  ['api.example.com', 443, 'path', get('/v1/%zz')],
  ['api.example.com', 443, 'path', get('/v1/%00')],
  ['api.example.com', 443, 'path', get('v1/things')],
  ['api.example.com', 443, 'path', get('http://other.test/v1/')],
  ['api.example.com', 443, 'path', get('*')],
  ['api.example.com', 443, 'opaque', 'opaque'],
  ['api.example.com', 443, 'allow', 'unknown'],
  ['open.example.com', 443, 'allow', get('/public')],
  ['open.example.com', 443, 'blocked', get('/admin/users')],
  ['open.example.com', 443, 'blocked', get('/ADMIN')],
  ['open.example.com', 443, 'blocked', get('/%61dmin')],
  ['open.example.com', 443, 'blocked', get('//admin')],
  ['open.example.com', 443, 'blocked', get('/public/../admin')],
  ['open.example.com', 443, 'blocked', { method: 'DELETE', path: '/public' }],
  ['open.example.com', 443, 'blocked', 'opaque'],
])

const spellings: readonly ((bits: bigint) => string)[] = [
  (bits) => addressOf(4, bits).text,
  (bits) => `::ffff:${addressOf(4, bits).text}`,
  (bits) => `[::FFFF:${(bits >> 16n).toString(16)}:${(bits & 0xffffn).toString(16)}]`,
  (bits) => `0:0:0:0:0:ffff:${(bits >> 16n).toString(16).padStart(4, '0')}:${(bits & 0xffffn).toString(16).padStart(4, '0')}`,
  (bits) => `::${addressOf(4, bits).text}`,
  (bits) => `64:ff9b::${addressOf(4, bits).text}`,
  (bits) => `64:ff9b:1::${addressOf(4, bits).text}`,
  (bits) => `2002:${(bits >> 16n).toString(16)}:${(bits & 0xffffn).toString(16)}::1`,
  (bits) => addressOf(6, (0x2001_0000n << 96n) | (0x808_0808n << 64n) | (bits ^ 0xffff_ffffn)).text,
  (bits) => String(bits),
  (bits) => `0x${bits.toString(16)}`,
  (bits) => `0${bits.toString(8)}`,
  (bits) => [24n, 16n, 8n, 0n].map((shift) => `0${((bits >> shift) & 255n).toString(8)}`).join('.'),
  (bits) => [24n, 16n, 8n, 0n].map((shift) => `0x${((bits >> shift) & 255n).toString(16)}`).join('.'),
  (bits) => `${bits >> 24n}.${bits & 0xff_ffffn}`,
  (bits) => `${addressOf(4, bits).text}.`,
]

const everyV4 = fc.bigInt({ min: 0n, max: 0xffff_ffffn })
const privateV4 = fc.oneof(
  ...[
    [0x0a00_0000n, 24n],
    [0x7f00_0000n, 24n],
    [0xa9fe_0000n, 16n],
    [0xac10_0000n, 20n],
    [0xc0a8_0000n, 16n],
    [0x6440_0000n, 22n],
    [0xe000_0000n, 29n],
  ].map(([first = 0n, size = 0n]) => fc.bigInt({ min: 0n, max: (1n << size) - 1n }).map((rest) => first + rest)),
)

describe('whatever is asked', () => {
  const any = rulesFor({ allow: ['*'] })

  test('an address that is denied stays denied in every spelling', () => {
    fc.assert(
      fc.property(
        privateV4,
        fc.constantFrom(...spellings),
        (bits, spell) => void expect(['private', 'unparsable']).toContain(verdictOf(any, { host: spell(bits) })),
      ),
      { numRuns: 2000 },
    )
  })

  test('a block of addresses holds in every spelling, and whichever address a name leads to', () => {
    fc.assert(
      fc.property(everyV4, fc.constantFrom(...spellings), (bits, spell) => {
        const rules = rulesFor({ allow: ['*'], block: [{ cidr: `${addressOf(4, bits).text}/32` }] })
        expect(['private', 'unparsable', 'blocked']).toContain(verdictOf(rules, { host: spell(bits) }))
        const host = parseHost(spell(bits))
        if (host?.kind === 'address') expect(addressRefusal(rules, { address: host.address, port: 443 })).toBeDefined()
      }),
      { numRuns: 2000 },
    )
  })

  const hosts = fc.constantFrom('a.example', 'b.a.example', 'c.b.a.example', 'other.test', '8.8.8.8', '::ffff:8.8.4.4', '2606:4700::1', '10.0.0.1')
  const entries: fc.Arbitrary<Entry> = fc.oneof(
    fc.constantFrom('*', '*:8080', 'a.example', '*.a.example', '*.b.a.example:8080', '8.8.8.8'),
    fc.constantFrom<Entry[]>(
      { cidr: '8.8.0.0/16' },
      { cidr: '::/0', ports: [443] },
      { host: 'a.example', methods: ['GET'] },
      { host: '*.a.example', paths: ['/x*'] },
    ),
  )
  const lists = fc.array(entries, { maxLength: 4 })
  const asked = fc.record({
    host: hosts,
    port: fc.constantFrom(80, 443, 8080),
    request: fc.constantFrom<Question['request'][]>('unknown', 'opaque', get('/x'), get('/y'), post('/x/../y')),
  })
  const precedence = fc.constantFrom('block' as const, 'allow' as const)

  test('one more block never allows more', () => {
    fc.assert(
      fc.property(lists, lists, entries, precedence, asked, (allow, block, more, precedence, question) => {
        const before = verdictOf(rulesFor({ allow, block, precedence }), question)
        const after = verdictOf(rulesFor({ allow, block: [...block, more], precedence }), question)
        if (before !== 'allow') expect(after).not.toBe('allow')
      }),
      { numRuns: 2000 },
    )
  })

  test('one more allowing entry never denies more', () => {
    fc.assert(
      fc.property(lists, lists, entries, precedence, asked, (allow, block, more, precedence, question) => {
        const before = verdictOf(rulesFor({ allow, block, precedence }), question)
        if (before === 'allow') expect(verdictOf(rulesFor({ allow: [...allow, more], block, precedence }), question)).toBe('allow')
      }),
      { numRuns: 2000 },
    )
  })

  test('nothing that cannot be read is a host: no text makes the parser throw, and what it reads it reads the same again', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.stringMatching(/^[0-9a-fx.:[\]*-]{0,40}$/)), (text) => {
        const host = parseHost(text)
        if (host === undefined) return
        const again = host.kind === 'name' ? host.name : host.address.text
        expect(parseHost(again)).toEqual(host)
        expect(again).toMatch(/^[\x21-\x7e]+$/)
      }),
      { numRuns: 3000 },
    )
  })
})

describe("an operator's addresses", () => {
  const rules = rulesFor({ allow: ['*', '10.1.2.3:8080'] }, ['10.1.0.0/16', '127.0.0.0/8'])

  test.each([
    ['10.1.2.3', 8080, 'allow'],
    ['10.1.2.3', 443, 'allow'],
    ['::ffff:10.1.2.3', 443, 'allow'],
    ['10.2.0.1', 443, 'private'],
    ['localhost', 443, 'allow'],
    ['64:ff9b::10.2.0.1', 443, 'private'],
    ['2002:a01:203::', 443, 'private'],
    ['metadata.google.internal', 80, 'private'],
    ['10.1.2.3', 9999, 'undecided'],
  ])('%s port %i: %s', (host, port, verdict) => {
    expect(verdictOf(rules, { host, port })).toBe(verdict)
  })
})

describe('TLS is terminated', () => {
  const rules = rulesFor({
    allow: ['plain.example', { host: 'read.example', terminate: true }, { host: 'get.example', methods: ['GET'] }, 'secret.example', 'watched.example'],
    block: [{ host: 'watched.example', paths: ['/admin*'] }],
    credentials: [{ host: 'secret.example', header: 'authorization', value: 'x' }],
  })
  const isTerminated = (host: string, port = 443): boolean => mustTerminate(rules, { kind: 'name', name: host }, port)

  test('where an entry says so, where requests are judged, and where a credential is to be added', () => {
    expect(['plain.example', 'read.example', 'get.example', 'secret.example', 'watched.example'].map((host) => isTerminated(host))).toEqual([
      false,
      true,
      true,
      true,
      true,
    ])
    expect(isTerminated('secret.example', 80)).toBe(false)
  })

  test('everywhere, but for entries that say otherwise', () => {
    const all = rulesFor({ terminate: true, allow: ['a.example', { host: 'db.example', ports: [5432], terminate: false }] })
    expect(mustTerminate(all, { kind: 'name', name: 'a.example' }, 443)).toBe(true)
    expect(mustTerminate(all, { kind: 'name', name: 'db.example' }, 5432)).toBe(false)
    expect(verdictOf(all, { host: 'a.example', request: 'opaque' })).toBe('opaque')
    expect(verdictOf(all, { host: 'db.example', port: 5432, request: 'opaque' })).toBe('allow')
  })
})

test('a name is known when some port of it is allowed', () => {
  const rules = rulesFor({ allow: ['a.example:8443', '*.b.example', '8.8.8.8'], block: ['c.b.example', '*.d.b.example:443'] })
  const names = ['a.example', 'b.example', 'x.b.example', 'c.b.example', 'x.d.b.example', 'other.test', 'localhost']
  expect(names.filter((name) => isNameKnown(rules, name))).toEqual(['a.example', 'x.b.example', 'x.d.b.example'])
  expect(isNameKnown(rulesFor({ allow: [] }), 'a.example')).toBe(false)
})
