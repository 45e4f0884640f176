import { networkSchema } from '../../../src/contract/network.js'
import { decide, decideAll, isNameKnown, mustTerminate } from '../../../src/policy/network-decide.js'
import { parseHost } from '../../../src/policy/network-host.js'
import { networkRules } from '../../../src/policy/network-rules.js'
import { type FuzzTarget, holds, isSame, jsonIn, unlessRefused } from '../target.js'

const hosts = ['example.org', 'a.example.org', 'deep.a.example.org', '203.0.113.7', '10.1.2.3', '[2001:db8::1]', '[::1]', 'localhost', 'other.test'].flatMap(
  (text) => parseHost(text) ?? [],
)
const ports = [80, 443, 8443]
const requests = ['unknown', 'opaque', { method: 'GET', path: '/v1/x' }, { method: 'POST', path: '/%2e%2e/admin' }] as const

/** The rules of a network: deny beats allow, what is not public is never allowed, and one more entry to block never allows more. */
export const target: FuzzTarget = {
  name: 'network-rules',
  most: 2000,
  seeds: [
    '{"allow":["api.example.com","*.example.org","db.example.net:5432"],"block":["a.example.org"]}',
    '{"allow":["*"],"block":[{"cidr":"203.0.113.0/24","ports":[443]}],"precedence":"allow"}',
    '{"allow":[{"host":"example.org","ports":[80,443],"methods":["GET"],"paths":["/v1/*"]}],"terminate":true}',
    '{"allow":["*:8443"],"credentials":[{"host":"api.example.com","header":"x-key","value":"v"}],"sni":"any","maxConnections":3,"bytes":"10m"}',
    '{"allow":[{"cidr":"2001:db8::/32"}],"block":["*.deep.a.example.org"]}',
  ],
  run(bytes) {
    const parsed = networkSchema.safeParse(jsonIn(bytes))
    if (!parsed.success || parsed.data === false) return
    const network = parsed.data
    const rules = unlessRefused(() => networkRules(network))
    if (!rules) return
    const stricter = { ...rules, block: [...rules.block, ...rules.allow] }
    // Another part of them by each input: all of them together would be most of the work.
    const turn = bytes.reduce((sum, byte) => sum + byte, 0)
    for (const host of hosts.filter((_, index) => index % 4 === turn % 4))
      for (const port of [ports[turn % ports.length] ?? 443])
        for (const request of requests) {
          const question = { host, port, request }
          const { verdict } = decide(rules, question)
          if (host.kind === 'address' && /^10\.|^::1/.test(host.address.text)) isSame(verdict, 'deny', 'what is not public is denied')
          const isBlocked =
            decide(
              { ...rules, allow: [{ text: '*', pattern: { kind: 'any' }, ports: undefined, methods: undefined, paths: undefined, terminate: false }] },
              question,
            ).verdict === 'deny'
          if (rules.precedence === 'block' && isBlocked) isSame(verdict, 'deny', 'deny beats allow')
          if (rules.precedence === 'block' && verdict !== 'allow') holds(decide(stricter, question).verdict !== 'allow', 'more that is blocked allows no more')
          if (verdict !== 'allow') holds(decideAll(rules, question).verdict !== 'allow', 'what is not allowed is not allowed in all readings')
          mustTerminate(rules, host, port)
          if (host.kind === 'name') isNameKnown(rules, host.name)
        }
  },
}
