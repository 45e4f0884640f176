import { describe, expect, test } from 'vitest'
import { presetNames } from '../../src/contract/policy.js'
import { applyPolicy, planSandbox } from '../../src/policy/apply.js'
import { auditPolicy } from '../../src/policy/audit.js'
import { effectivePolicy } from '../../src/policy/effective-policy.js'
import { noPolicy, parsePolicy } from '../../src/policy/policy-file.js'
import { parseSpec } from '../../src/policy/spec.js'
import { refusalOf } from './refusal-of.js'

const machine = { memoryBytes: 16 * 2 ** 30, processors: 8 }

test.each(presetNames)('%s is what its golden file says', async (name) => {
  await expect(`${JSON.stringify(effectivePolicy(parsePolicy(name)), undefined, 2)}\n`).toMatchFileSnapshot(`golden/preset-${name}.json`)
})

test('default is what there is without a policy', () => {
  for (const spec of [{}, { limits: { memory: '1t' }, user: 'root' as const, mounts: [{ source: '/', target: '/mnt/x' }] }]) {
    expect(planSandbox({ ...spec, policy: 'default' }).spec).toEqual(parseSpec(spec))
  }
  const { defaults, ceiling } = effectivePolicy(parsePolicy('default'))
  expect([defaults, ceiling]).toEqual([effectivePolicy(noPolicy).defaults, {}])
})

describe('strict', () => {
  test('grants nothing that is risky', () => {
    expect(auditPolicy(parsePolicy('strict'), machine).filter(({ severity }) => severity !== 'low')).toEqual([])
  })

  test.each([
    { mounts: [{ source: '/data', target: '/mnt/d' }] },
    { user: 'root' },
    { root: 'overlay' },
    { seccomp: '/p.json' },
    { minTier: 'none' },
    { lifetime: '3m' },
    { limits: { memory: '512m' } },
    { limits: { processes: 64 } },
    { limits: { time: '1m' } },
  ])('refuses %j', (spec) => {
    expect(refusalOf(() => applyPolicy(spec, parsePolicy('strict')))[1]).toContain("policy 'strict'")
  })

  test('demands every limit that it caps', () => {
    const { limits } = planSandbox({ policy: 'strict' }).spec
    expect(limits.stated).toEqual(['memory', 'cpus', 'cpuTime', 'time', 'disk', 'inodes', 'fileSize', 'openFiles', 'processes', 'output'])
    expect(limits).toMatchObject({ memoryBytes: 2 ** 28, timeMs: 30_000, inodes: 4096, fileSizeBytes: 2 ** 24 })
  })
})

describe('data', () => {
  test('gives more than the defaults, and demands none of it', () => {
    const [data, usual] = [planSandbox({ policy: 'data' }).spec, parseSpec({})]
    for (const limit of ['memoryBytes', 'cpus', 'timeMs', 'diskBytes', 'processes', 'outputBytes'] as const) {
      expect(data.limits[limit]).toBeGreaterThan(usual.limits[limit])
    }
    expect([data.limits.stated, data.lifetimeMs]).toEqual([[], 3_600_000])
  })

  test('shows folders for reading only', () => {
    expect(planSandbox({ policy: 'data', mounts: [{ source: '/data', target: '/data' }] }).spec.mounts).toHaveLength(1)
    expect(refusalOf(() => planSandbox({ policy: 'data', mounts: [{ source: '/data', target: '/data', mode: 'rw' }] }))[1]).toMatch(/^mounts\[0\]\.mode: 'rw'/)
  })
})
