import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { Secret } from '../../src/contract/secret.js'
import { applyPolicy, checkNetwork, networkRulesOf, planSandbox } from '../../src/policy/apply.js'
import { mergePolicies, parsePolicy } from '../../src/policy/policy-file.js'
import { parseSpec } from '../../src/policy/spec.js'
import { hashOf } from '../../src/receipt/hash.js'
import { refusalOf } from './refusal-of.js'

const refusedSpec = (network: unknown): string => refusalOf(() => planSandbox({ network }))[1]

describe('a spec that is wrong about the network names the entry', () => {
  test.each<readonly [unknown, string]>([
    [true, 'network: expected false or a plain object, got a boolean'],
    ['on', 'network: expected false or a plain object, got a string'],
    [{ alow: [] }, 'network.alow: is not a known field'],
    [{ allow: 'example.org' }, "network.allow: expected an array, got 'example.org'"],
    [{ allow: [''] }, 'network.allow[0]: must not be empty'],
    [{ allow: ['a.example', 7] }, 'network.allow[1]: expected a string or a plain object, got a number'],
    [{ allow: ['https://a.example'] }, "network.allow[0]: 'https://a.example' is a URL: write its host and port, as 'api.example.com:443'"],
    [{ allow: ['a.example/x'] }, "network.allow[0]: 'a.example/x' has a path in it: write { host: '…', paths: ['…'] }"],
    [{ allow: ['10.0.0.0/8'] }, "network.allow[0]: '10.0.0.0/8' is a range of addresses: write { cidr: '…' }"],
    [{ allow: ['user@a.example'] }, "network.allow[0]: 'user@a.example' has a user in it: write only its host"],
    [{ allow: ['*.'] }, "network.allow[0]: '*.' is no pattern of names such as '*.example.org'"],
    [{ allow: ['*.com'] }, "network.allow[0]: '*.com' is a whole top-level domain: write '*' for any public host"],
    [{ allow: ['a.*.example'] }, "network.allow[0]: 'a.*.example' has a * in it that is not the whole first part: '*' and '*.example.org' are possible"],
    [{ allow: ['a.example:0'] }, "network.allow[0]: 'a.example:0' has no possible port: 1 to 65535"],
    [{ allow: ['a.example:65536'] }, "network.allow[0]: 'a.example:65536' has no possible port: 1 to 65535"],
    [{ allow: ['a.example:'] }, "network.allow[0]: 'a.example:' has no possible port: 1 to 65535"],
    [{ allow: ['a.example:080'] }, "network.allow[0]: 'a.example:080' has no possible port: 1 to 65535"],
    [{ allow: [{}] }, "network.allow[0]: must have either 'host' or 'cidr'"],
    [{ allow: [{ host: 'a.example', cidr: '8.8.8.0/24' }] }, "network.allow[0]: must have either 'host' or 'cidr'"],
    [{ allow: [{ host: 'a.example:443', ports: [80] }] }, "network.allow[0]: has a port in 'host' and 'ports' beside it"],
    [{ allow: [{ host: 'a.example', ports: [] }] }, 'network.allow[0].ports: must not be empty: leave it out for 80 and 443'],
    [{ allow: [{ host: 'a.example', ports: [70000] }] }, 'network.allow[0].ports[0]: must be at most 65535, got 70000'],
    [{ allow: [{ host: 'a.example', methods: ['get'] }] }, "network.allow[0].methods[0]: must be a method in capitals, such as 'GET'"],
    [{ allow: [{ host: 'a.example', paths: ['v1'] }] }, "network.allow[0].paths[0]: must begin with / and be printable, such as '/v1/*'"],
    [
      { allow: [{ host: 'a.example', methods: ['GET'], terminate: false }] },
      "network.allow[0]: 'methods' and 'paths' can be judged only where TLS is terminated",
    ],
    [{ allow: [{ cidr: '8.8.8.0/24', methods: ['GET'] }] }, "network.allow[0]: 'methods' and 'paths' are for hosts, not for a range of addresses"],
    [{ block: [{ cidr: '8.8.8.8/24' }] }, "network.block[0]: '8.8.8.8/24' has bits below its prefix: write '8.8.8.0/24'"],
    [{ block: [{ cidr: '8.8.8.0/33' }] }, "network.block[0]: '8.8.8.0/33' has no possible prefix: /0 to /32"],
    [{ block: [{ cidr: '8.8.8/24' }] }, "network.block[0]: '8.8.8/24' is no range of addresses such as '203.0.113.0/24'"],
    [{ maxConnections: 0 }, 'network.maxConnections: must be at least 1, got 0'],
    [{ bandwidth: '1' }, "network.bandwidth: must be at least 1k, got '1'"],
    [{ idleTimeout: 'soon' }, "network.idleTimeout: expected a duration with a unit such as '30s', at least 10ms and at most 1d, got 'soon'"],
    [
      { credentials: [{ host: '*.a.example', header: 'x-key', value: 'v' }] },
      "network.credentials[0].host: '*.a.example' must be the name of one host: a credential is for nobody else",
    ],
    [
      { credentials: [{ host: 'a.example', header: 'x key', value: 'v' }] },
      "network.credentials[0].header: must be the name of a header, such as 'authorization'",
    ],
    [
      { credentials: [{ host: 'a.example', header: 'Host', value: 'v' }] },
      "network.credentials[0].header: 'Host' says how a message is carried, and cannot be a credential",
    ],
    [{ credentials: [{ host: 'a.example', header: 'x-key' }] }, "network.credentials[0]: must have exactly one of 'value', 'env' and 'file'"],
    [
      { credentials: [{ host: 'a.example', header: 'x-key', value: 'v', env: 'KEY' }] },
      "network.credentials[0]: must have exactly one of 'value', 'env' and 'file'",
    ],
    [
      { credentials: [{ host: 'a.example', header: 'x-key', value: 'sesame\r\nx: y' }] },
      'network.credentials[0].value: must be one line that a header can carry',
    ],
    [{ credentials: [{ host: 'a.example', header: 'x-key', file: 'key' }] }, 'network.credentials[0].file: must be an absolute path'],
    [
      { credentials: [{ host: 'a.example', header: 'x-key', value: '(secret)' }] },
      'network.credentials[0].value: is what is shown instead of a secret, not the secret',
    ],
  ])('%j', (network, message) => {
    expect(refusedSpec(network)).toBe(message)
  })

  test('a name beyond ASCII is to be written as DNS has it', () => {
    expect(refusedSpec({ allow: ['bücher.example'] })).toContain('xn--')
    expect(refusedSpec({ allow: ['a example'] })).toContain('white space')
  })

  test('what is no plain object is none', () => {
    expect(refusedSpec(new Date())).toBe('network: expected a plain object, got a Date')
  })
})

test('off is the default, and an empty object is a way out that leads nowhere', () => {
  expect(parseSpec({}).network).toBe(false)
  const { spec, policy } = planSandbox({ network: {} })
  expect(networkRulesOf(parseSpec({}).network, policy)).toBeUndefined()
  expect(networkRulesOf(spec.network, policy)).toMatchObject({ allow: [], block: [], private: [], limits: { maxConnections: 10 } })
})

test('a secret is in the rules and nowhere that can be printed', () => {
  const input = { network: { allow: ['a.example'], credentials: [{ host: 'a.example', header: 'Authorization', value: 'sesame-4711' }] } }
  const planned = planSandbox(input)
  const rules = networkRulesOf(planned.spec.network, planned.policy)
  const source = rules?.credentials[0]?.source
  expect(source && 'value' in source ? source.value.reveal() : undefined).toBe('sesame-4711')
  const seen = [JSON.stringify(planned), inspect(planned, { depth: 20, showHidden: true }), JSON.stringify(rules?.credentials), inspect(rules, { depth: 20 })]
  expect(seen.filter((text) => text.includes('sesame'))).toEqual([])
  expect(String(new Secret('sesame'))).toBe('(secret)')
  expect(hashOf(planned.spec)).toBe(
    hashOf(planSandbox({ network: { ...input.network, credentials: [{ ...input.network.credentials[0], value: 'other' }] } }).spec),
  )
  expect(refusedSpec({ credentials: [{ host: 'a.example', header: 'x', value: 'sesame'.repeat(5000) }] })).not.toContain('sesame')
})

describe('under a policy', () => {
  const site = parsePolicy({ name: 'site', ceiling: { network: { hosts: ['*.example.org', 'api.test:8443'], maxConnections: 5, bytes: '1g' } } })

  test('what is beyond its hosts is refused by name', () => {
    expect(refusalOf(() => applyPolicy({ network: { allow: ['a.example.org', '*'] } }, site))[1]).toBe(
      "network.allow[1]: '*' is not within what policy 'site' allows (*.example.org, api.test:8443)",
    )
    expect(refusalOf(() => applyPolicy({ network: { allow: ['a.example.org:22'] } }, site))[1]).toContain('network.allow[0]')
    expect(refusalOf(() => applyPolicy({ network: { maxConnections: 6 } }, site))[1]).toBe("network.maxConnections: 6 is above the 5 that policy 'site' allows")
    expect(refusalOf(() => applyPolicy({ network: { bytes: '2g' } }, site))[1]).toBe("network.bytes: 2g is above the 1g that policy 'site' allows")
  })

  test('what nobody asked for is lowered without a word', () => {
    const { spec, clamped, origins } = applyPolicy({ network: { allow: ['a.example.org'] } }, site)
    expect(spec.network).toEqual({ allow: ['a.example.org'], maxConnections: 5, bytes: 2 ** 30 })
    expect(clamped).toEqual([])
    expect(origins.network).toBe('spec')
  })

  test('that lowers, what is left is what both allow', () => {
    const kind = parsePolicy({ name: 'kind', ceiling: { network: { hosts: ['*.example.org', 'api.test:8443'] } }, onExceed: 'clamp' })
    const { spec, clamped } = applyPolicy({ network: { allow: ['*', { host: 'b.example.org', ports: [443, 22], methods: ['GET'] }, 'other.test'] } }, kind)
    expect(spec.network).toEqual({ allow: ['*.example.org', { host: 'b.example.org', ports: [443], methods: ['GET'] }] })
    expect(clamped).toEqual([
      { field: 'network.allow[0]', asked: '*', given: ['*.example.org'], policy: 'kind' },
      {
        field: 'network.allow[1]',
        asked: { host: 'b.example.org', ports: [443, 22], methods: ['GET'] },
        given: [{ host: 'b.example.org', ports: [443], methods: ['GET'] }],
        policy: 'kind',
      },
      { field: 'network.allow[2]', asked: 'other.test', given: null, policy: 'kind' },
    ])
  })

  test('that allows none, there is none', () => {
    expect(refusalOf(() => applyPolicy({ network: { allow: [] } }, parsePolicy('strict')))[1]).toBe("network: policy 'strict' allows none")
    expect(applyPolicy({ network: false }, parsePolicy('strict')).spec.network).toBe(false)
    expect(applyPolicy({}, parsePolicy('strict')).spec.network).toBe(false)
  })

  test('whose default is a network, a spec may have its own or none', () => {
    const given = parsePolicy({ defaults: { network: { allow: ['mirror.example.org'] } } })
    expect(applyPolicy({}, given)).toMatchObject({ spec: { network: { allow: ['mirror.example.org'] } }, origins: { network: 'policy' } })
    expect(applyPolicy({ network: { allow: ['a.test'] } }, given).spec.network).toEqual({ allow: ['a.test'] })
    expect(applyPolicy({ network: false }, given).spec.network).toBe(false)
  })

  test('a network that is changed later is held to the same caps', () => {
    expect(checkNetwork({ allow: ['x.example.org'] }, site).network).toEqual({ allow: ['x.example.org'], maxConnections: 5, bytes: 2 ** 30 })
    expect(refusalOf(() => checkNetwork({ allow: ['evil.test'] }, site))[1]).toContain("network.allow[0]: 'evil.test' is not within")
    expect(refusalOf(() => checkNetwork(false, site))[1]).toBe('network: cannot be taken away: allow nothing instead')
    expect(refusalOf(() => checkNetwork({ allow: ['*.com'] }, site))[1]).toContain('network.allow[0]')
    const kind = parsePolicy({ name: 'kind', ceiling: { network: { hosts: [] } }, onExceed: 'clamp' })
    expect(checkNetwork({ allow: ['a.test'] }, kind)).toEqual({
      network: { allow: [] },
      clamped: [{ field: 'network.allow[0]', asked: 'a.test', given: null, policy: 'kind' }],
    })
  })

  test('texts in it that cannot be read are errors of the policy', () => {
    expect(refusalOf(() => parsePolicy({ ceiling: { network: { hosts: ['*.com'] } } }))[1]).toContain('ceiling.network.hosts[0]')
    expect(refusalOf(() => parsePolicy({ ceiling: { network: { private: ['10.0.0.1/8'] } } }))[1]).toContain('ceiling.network.private[0]')
    expect(refusalOf(() => parsePolicy({ defaults: { network: { allow: ['x y'] } } }))[1]).toContain('defaults.network.allow[0]')
    expect(refusalOf(() => parsePolicy({ ceiling: { network: { hosts: [{ host: 'a.test', methods: ['GET'] }] } } }))[1]).toContain(
      'methods: is not a known field',
    )
  })
})

describe('addresses that are not public', () => {
  const operator = parsePolicy({ name: 'op', ceiling: { network: { private: ['10.1.0.0/16'] } } })

  test("are an operator's to name", () => {
    const { spec, policy } = planSandbox({ network: { allow: ['10.1.0.7:8080'] } }, operator)
    expect(networkRulesOf(spec.network, policy)?.private.map(({ text }) => text)).toEqual(['10.1.0.0/16'])
  })

  test("are not a spec's to name, with an operator or without", () => {
    const spec = { network: { allow: ['*'] }, policy: { ceiling: { network: { private: ['10.0.0.0/8'] } } } }
    expect(refusalOf(() => planSandbox(spec))[1]).toBe("policy.ceiling.network.private: only an operator's policy can name addresses that are not public")
    expect(refusalOf(() => planSandbox(spec, operator))[1]).toContain('only an operator')
  })

  test('may be fewer by the policy of a spec', () => {
    const own = parsePolicy({ ceiling: { network: { private: ['10.1.2.0/24'] } } })
    const { spec, policy } = planSandbox({ network: {}, policy: { ceiling: { network: { private: ['10.1.2.0/24'] } } } }, operator)
    expect(networkRulesOf(spec.network, policy)?.private.map(({ text }) => text)).toEqual(['10.1.2.0/24'])
    expect(mergePolicies(operator, own).ceiling.network).toEqual({ private: ['10.1.2.0/24'] })
    expect(mergePolicies(operator, parsePolicy('data')).ceiling.network).toEqual({ private: ['10.1.0.0/16'] })
  })
})
