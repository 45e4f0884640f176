import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SandboxError } from '../../src/contract/errors.js'
import type { Ceiling, Policy } from '../../src/contract/policy.js'
import type { Network, NetworkRules } from '../../src/contract/network.js'
import type { SpecInput } from '../../src/contract/spec.js'
import { tiers } from '../../src/contract/spec-words.js'
import { type Applied, applyPolicy, checkLimits, planSandbox } from '../../src/policy/apply.js'
import { intersectCeilings } from '../../src/policy/ceiling.js'
import { isWithin } from '../../src/policy/host-path.js'
import { decide } from '../../src/policy/network-decide.js'
import { parseHost } from '../../src/policy/network-host.js'
import { networkRules } from '../../src/policy/network-rules.js'
import { mergePolicies, noPolicy, parsePolicy } from '../../src/policy/policy-file.js'
import { parseSpec } from '../../src/policy/spec.js'
import { ceilings, limitNames, policies, specs } from './arbitrary-policy.js'

const canonical = (ceiling: Ceiling): Ceiling => intersectCeilings(ceiling, {})

describe('what two ceilings both allow', () => {
  test('does not depend on which comes first', () => {
    fc.assert(fc.property(ceilings, ceilings, (a, b) => void expect(intersectCeilings(a, b)).toEqual(intersectCeilings(b, a))))
  })

  test('does not depend on how three are put together', () => {
    fc.assert(
      fc.property(
        ceilings,
        ceilings,
        ceilings,
        (a, b, c) => void expect(intersectCeilings(intersectCeilings(a, b), c)).toEqual(intersectCeilings(a, intersectCeilings(b, c))),
      ),
    )
  })

  test('with itself is itself', () => {
    fc.assert(fc.property(ceilings, (a) => void expect(intersectCeilings(a, a)).toEqual(canonical(a))))
  })

  test('is never looser than either: meeting one of them again changes nothing', () => {
    fc.assert(
      fc.property(ceilings, ceilings, (a, b) => {
        const both = intersectCeilings(a, b)
        expect(intersectCeilings(both, a)).toEqual(both)
        expect(intersectCeilings(both, b)).toEqual(both)
      }),
    )
  })

  test('keeps the inner one of two folders, and nothing of folders that only begin alike', () => {
    expect(intersectCeilings({ mounts: { sources: ['/data', '/srv'] } }, { mounts: { sources: ['/data/in/../in', '/srv2'] } })).toEqual({
      mounts: { sources: ['/data/in'] },
    })
  })
})

/** Every way in which a spec is above a ceiling, judged without any of the code that lowers it. */
function above(spec: SpecInput, ceiling: Ceiling): string[] {
  const parsed = parseSpec(spec)
  const { limits = {}, mounts = {} } = ceiling
  const values: Readonly<Record<string, number | undefined>> = {
    memory: parsed.limits.memoryBytes,
    cpus: parsed.limits.cpus,
    cpuTime: parsed.limits.cpuTimeMs,
    time: parsed.limits.timeMs,
    disk: parsed.limits.diskBytes,
    inodes: parsed.limits.inodes,
    fileSize: parsed.limits.fileSizeBytes,
    openFiles: parsed.limits.openFiles,
    processes: parsed.limits.processes,
    readRate: parsed.limits.readBytesPerSecond,
    writeRate: parsed.limits.writeBytesPerSecond,
    output: parsed.limits.outputBytes,
  }
  const over = limitNames.filter((name) => limits[name] !== undefined && !((values[name] ?? Number.POSITIVE_INFINITY) <= (limits[name] ?? 0)))
  const unheld = limitNames.filter((name) => limits[name] !== undefined && !parsed.limits.stated.includes(name))
  const outside = (names: readonly string[] | undefined, value: string | undefined): boolean =>
    names !== undefined && value !== undefined && !names.includes(value)
  const faults: Readonly<Record<string, boolean>> = {
    lifetime: ceiling.lifetime !== undefined && parsed.lifetimeMs > ceiling.lifetime,
    minTier: ceiling.minTier !== undefined && tiers.indexOf(parsed.minTier) < tiers.indexOf(ceiling.minTier),
    user: outside(ceiling.users, parsed.user),
    root: outside(ceiling.roots, parsed.root),
    template: outside(ceiling.templates, parsed.template),
    driver: outside(ceiling.drivers, parsed.driver),
    sources: mounts.sources !== undefined && parsed.mounts.some(({ source }) => !mounts.sources?.some((folder) => isWithin(source, folder))),
    modes: mounts.modes !== undefined && parsed.mounts.some(({ mode }) => !mounts.modes?.includes(mode)),
    commands: ceiling.commands !== undefined && (parsed.commands === undefined || parsed.commands.some((name) => !ceiling.commands?.includes(name))),
    env: ceiling.env !== undefined && Object.keys(parsed.env).some((name) => !ceiling.env?.includes(name)),
    network: isNetworkAbove(parsed.network, ceiling.network),
    seccomp: ceiling.seccomp === 'default-only' && parsed.seccomp !== undefined,
  }
  return [...over, ...unheld.map((name) => `${name} is not stated`), ...Object.keys(faults).filter((name) => faults[name])]
}

/** Whether anything that the rules let pass is not let pass by the caps, tried host by host. */
function isNetworkAbove(network: Network, cap: Ceiling['network']): boolean {
  if (network === false || cap === undefined) return false
  if (cap === false) return true
  const { allow, limits } = networkRules(network, ['203.0.113.0/24', '2001:db8::/32'])
  const passes = (rules: NetworkRules, host: string, port: number): boolean => {
    const parsed = parseHost(host)
    return parsed !== undefined && decide(rules, { host: parsed, port, request: 'unknown' }).verdict === 'allow'
  }
  const asked = { ...networkRules({}, ['203.0.113.0/24', '2001:db8::/32']), allow }
  const allowed = cap.hosts && networkRules({ allow: cap.hosts }, ['203.0.113.0/24', '2001:db8::/32'])
  const hosts = [
    'a.example',
    'b.a.example',
    'deep.b.a.example',
    'x.deep.b.a.example',
    'other.example',
    '203.0.113.7',
    '203.0.113.200',
    '[2001:db8::1]',
    '8.8.8.8',
  ]
  const isOver = (value: number | undefined, most: number | undefined): boolean => most !== undefined && !((value ?? Number.POSITIVE_INFINITY) <= most)
  return (
    isOver(limits.maxConnections, cap.maxConnections) ||
    isOver(limits.bytes, cap.bytes) ||
    isOver(limits.bytesPerSecond, cap.bandwidth) ||
    (allowed !== undefined && hosts.some((host) => [80, 443, 5432, 8080, 8443].some((port) => passes(asked, host, port) && !passes(allowed, host, port))))
  )
}

/** Undefined when it was refused. */
function applied(spec: SpecInput, policy: Policy): Applied | undefined {
  return orRefused(() => applyPolicy(spec, policy))
}

function orRefused<T>(act: () => T): T | undefined {
  try {
    return act()
  } catch (error) {
    if (error instanceof SandboxError && error.code === 'invalid') return undefined
    throw error
  }
}

const many = { numRuns: 400 }

describe('a spec under a policy', () => {
  test('never exceeds a cap, whatever is asked and whichever of refusing and lowering the policy does', () => {
    let accepted = 0
    fc.assert(
      fc.property(specs, policies, (spec, document) => {
        const policy = parsePolicy(document)
        const result = applied(spec, policy)
        if (result === undefined) return
        accepted += 1
        expect(above(result.spec, policy.ceiling)).toEqual([])
      }),
      many,
    )
    expect(accepted).toBeGreaterThan(many.numRuns / 20)
  })

  test('under two policies never exceeds a cap of either', () => {
    fc.assert(
      fc.property(specs, policies, policies, (spec, first, second) => {
        const [operator, own] = [parsePolicy(first, 'operator'), parsePolicy(second, 'own')]
        const both = orRefused(() => mergePolicies(operator, own))
        const result = both && applied(spec, both)
        if (result === undefined) return
        expect([above(result.spec, operator.ceiling), above(result.spec, own.ceiling)]).toEqual([[], []])
      }),
      many,
    )
  })

  test('that was lowered once is not lowered again', () => {
    fc.assert(
      fc.property(specs, policies, (spec, document) => {
        const policy = parsePolicy({ ...document, onExceed: 'clamp' })
        const once = applied(spec, policy)
        if (once === undefined) return
        const { origins: _, ...again } = applyPolicy(once.spec, policy)
        expect(again).toEqual({ spec: once.spec, clamped: [], assumed: [] })
      }),
      many,
    )
  })

  test('that is within every cap is left as it is', () => {
    fc.assert(
      fc.property(specs, policies, (spec, document) => {
        const policy = parsePolicy({ ...document, onExceed: 'clamp' })
        const within = applied(spec, policy)?.spec
        if (within === undefined) return
        const { origins: _, ...again } = applyPolicy(within, parsePolicy({ ...document, onExceed: 'refuse' }))
        expect(again).toEqual({ spec: within, clamped: [], assumed: [] })
      }),
      many,
    )
  })

  test('that states something above a cap is refused by a policy that refuses, and told by one that lowers', () => {
    fc.assert(
      fc.property(specs, policies, (spec, document) => {
        const lowered = applied(spec, parsePolicy({ ...document, extends: 'default', onExceed: 'clamp' }))
        const refused = applied(spec, parsePolicy({ ...document, extends: 'default', onExceed: 'refuse' })) === undefined
        if (lowered !== undefined) expect(lowered.clamped.length > 0).toBe(refused)
      }),
      many,
    )
  })

  test('without any policy is what it is without one', () => {
    fc.assert(
      fc.property(specs, (spec) => {
        const { origins, ...planned } = planSandbox(spec)
        expect(planned).toEqual({ spec: parseSpec(spec), clamped: [], policy: noPolicy })
        expect(Object.values(origins).filter((origin) => origin !== 'spec')).toEqual([])
      }),
    )
  })
})

test('limits that are changed later never exceed a cap either', () => {
  fc.assert(
    fc.property(specs, policies, (spec, document) => {
      const policy = parsePolicy({ ...document, onExceed: 'clamp' })
      const { limits, clamped } = checkLimits(spec.limits ?? {}, policy)
      const caps = policy.ceiling.limits ?? {}
      for (const name of limitNames) if (limits[name] !== undefined) expect(limits[name]).toBeLessThanOrEqual(caps[name] ?? Number.POSITIVE_INFINITY)
      expect(Object.keys(limits).sort()).toEqual(Object.keys(spec.limits ?? {}).sort())
      expect(clamped.every(({ field, given }) => caps[field.slice('limits.'.length) as 'memory'] === given)).toBe(true)
    }),
    many,
  )
})
