import { planSandbox } from '../../../src/policy/apply.js'
import { effectivePolicy } from '../../../src/policy/effective-policy.js'
import { mergePolicies, noPolicy, parsePolicy, parsePolicyText } from '../../../src/policy/policy-file.js'
import { type FuzzTarget, holds, isSame, textIn, unlessRefused } from '../target.js'

const specs = [
  {},
  { limits: { memory: '256m', time: '5s' } },
  { network: { allow: ['example.org'] }, user: 'user' },
  { limits: { memory: '64g', processes: 10_000 }, lifetime: '7d' },
] as const

/** Documents of policies: read, merged with themselves, printed and read again they say the same; what they cap stays capped. */
export const target: FuzzTarget = {
  name: 'policy',
  most: 3000,
  seeds: [
    '{"name":"mine","extends":"strict"}',
    '{"defaults":{"limits":{"memory":"256m","cpus":0.5},"network":{"allow":["example.org"]}},"ceiling":{"limits":{"memory":"1g","time":"10m"},"tiers":"process"},"onExceed":"refuse"}',
    '{"ceiling":{"network":{"hosts":["*.example.org"],"private":["10.0.0.0/8"],"maxConnections":5},"users":["user"],"drivers":["bwrap"],"env":["A","B_*"]}}',
    '{"ceiling":{"network":false,"mounts":["/srv"],"commands":["python3"],"lifetime":"1h"},"onExceed":"clamp","defaults":{"env":{"A":"1"}}}',
    '{"extends":"data","ceiling":{"minTier":"container","templates":["python"]}}',
  ],
  run(bytes) {
    const text = textIn(bytes)
    const input = unlessRefused(() => parsePolicyText(text, 'p.json'))
    if (input === undefined) return
    const policy = parsePolicy(input)
    isSame(mergePolicies(policy, noPolicy).ceiling, policy.ceiling, 'a policy that says nothing changes nothing')
    const shown = unlessRefused(() => effectivePolicy(policy))
    if (shown !== undefined) isSame(parsePolicy(JSON.parse(JSON.stringify(shown))).ceiling, policy.ceiling, 'a policy that is printed is the same')
    for (const spec of specs) {
      const planned = unlessRefused(() => planSandbox(spec, policy))
      const cap = policy.ceiling.limits?.memory
      if (planned && typeof cap === 'number') holds(planned.spec.limits.memoryBytes <= cap, 'memory stays below its cap')
    }
  },
}
