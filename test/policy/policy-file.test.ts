import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SandboxError } from '../../src/contract/errors.js'
import { defaultLimits } from '../../src/contract/limit-words.js'
import { allowedDrivers, applyPolicy, checkLimits, checkMounts, checkRun, planSandbox } from '../../src/policy/apply.js'
import { effectivePolicy } from '../../src/policy/effective-policy.js'
import { parseJson } from '../../src/contract/json-text.js'
import { mergePolicies, parsePolicy, parsePolicyText } from '../../src/policy/policy-file.js'
import { policies } from './arbitrary-policy.js'
import { refusalOf } from './refusal-of.js'

const MiB = 2 ** 20

describe('a policy', () => {
  test('is kept in base units, under its name', () => {
    const policy = parsePolicy({
      name: 'agents',
      defaults: { limits: { memory: '64m' }, lifetime: '1m', env: { TZ: 'UTC' } },
      ceiling: { limits: { memory: '1g', time: '2m' }, users: ['user'], mounts: { sources: ['/data/', '/data/in'], modes: ['ro'] } },
      onExceed: 'clamp',
    })
    const ceiling = { limits: { memory: 1024 * MiB, time: 120_000 }, users: ['user'], mounts: { sources: ['/data'], modes: ['ro'] } }
    expect(policy).toEqual({
      defaults: { limits: { memory: 64 * MiB }, lifetime: 60_000, env: { TZ: 'UTC' } },
      ceiling,
      layers: [{ name: 'agents', defaults: policy.defaults, ceiling, onExceed: 'clamp' }],
    })
  })

  test.each([
    [{ ceilings: {} }, 'ceilings: is not a known field'],
    [{ ceiling: { limits: { memroy: 1 } } }, 'ceiling.limits.memroy: is not a known field'],
    [{ ceiling: { limits: { memory: '1k' } } }, "ceiling.limits.memory: must be at least 4m, got '1k'"],
    [{ ceiling: { limits: { processes: Number.NaN } } }, 'ceiling.limits.processes: expected a finite number, got NaN'],
    [{ ceiling: { users: ['bob'] } }, "ceiling.users[0]: expected one of user, root, got 'bob'"],
    [{ ceiling: { mounts: [] } }, 'ceiling.mounts: expected a plain object, got an array'],
    [{ ceiling: { mounts: { sources: ['data'] } } }, 'ceiling.mounts.sources[0]: must be an absolute path'],
    [{ extends: 'lax' }, "extends: expected one of strict, default, data, got 'lax'"],
    [{ onExceed: 'warn' }, "onExceed: expected one of refuse, clamp, got 'warn'"],
    ['lax', "policy: there is no preset 'lax'; there are strict, default, data"],
    [[], 'policy: expected a plain object, got an array'],
    [null, 'policy: expected a plain object, got null'],
  ])('that is wrong is refused by the name of its field: %j', (document, message) => {
    expect(refusalOf(() => parsePolicy(document))).toEqual(['invalid', message])
  })

  test('whose own defaults are above its ceiling is refused', () => {
    const document = {
      name: 'p',
      defaults: { limits: { memory: '2g' }, user: 'root', env: { A: '1' }, commands: ['sh'] },
      ceiling: { limits: { memory: '1g' }, users: ['user'], env: [], commands: ['ls'] },
    }
    expect(refusalOf(() => parsePolicy(document))).toEqual([
      'invalid',
      "defaults.limits.memory: 2g is above the 1g that policy 'p' allows; defaults.user: 'root' is not among what policy 'p' allows (user); " +
        "defaults.commands: 'sh' is not among what policy 'p' allows (ls); defaults.env.A: is not among the variables that policy 'p' allows (none)",
    ])
  })

  test('that extends a preset has its defaults within the ceiling of both', () => {
    const { defaults, ceiling } = parsePolicy({ extends: 'data', defaults: { limits: { cpus: 1 } }, ceiling: { limits: { memory: '1g' }, lifetime: '24h' } })
    expect(defaults).toEqual({
      limits: { memory: 1024 * MiB, cpus: 1, time: 600_000, disk: 2048 * MiB, processes: 256, output: 64 * MiB },
      lifetime: 3_600_000,
    })
    expect([ceiling.limits, ceiling.lifetime, ceiling.users]).toEqual([{ memory: 1024 * MiB }, 8 * 3_600_000, ['user']])
  })

  test('as it takes effect is a policy that says the same', () => {
    fc.assert(
      fc.property(policies, (document) => {
        const policy = parsePolicy(document, 'p')
        const again = parsePolicy(JSON.parse(JSON.stringify(effectivePolicy(policy))))
        const caps = ({ ceiling, layers }: typeof policy) => ({ ceiling, layers: layers.map(({ defaults: _, ...layer }) => layer) })
        expect(caps(again)).toEqual(caps(policy))
        expect(effectivePolicy(again)).toEqual(effectivePolicy(policy))
      }),
    )
  })

  test('has a published schema that is in step with the code', () => {
    const root = fileURLToPath(new URL('../..', import.meta.url))
    expect(spawnSync(process.execPath, ['scripts/schemas.mjs', '--check'], { cwd: root, encoding: 'utf8' })).toMatchObject({ status: 0, stdout: '' })
    const schema = JSON.parse(readFileSync(new URL('../../schemas/policy.schema.json', import.meta.url), 'utf8')) as { properties: object }
    expect(Object.keys(schema.properties)).toEqual(['$schema', 'name', 'description', 'extends', 'defaults', 'ceiling', 'onExceed'])
  })
})

describe('a policy file', () => {
  test('is named by its path, unless it names itself', () => {
    expect(parsePolicyText('{"ceiling":{"users":[]}}', 'a.json')).toEqual({ name: 'a.json', ceiling: { users: [] } })
    expect(parsePolicyText('\uFEFF{"name":"agents"}', 'a.json')).toEqual({ name: 'agents' })
    expect(parsePolicy(parsePolicyText('{}', `/\u001b/${'x'.repeat(4000)}.json`)).layers[0]?.name).toMatch(/^x{195}\.json$/)
  })

  test.each([
    ['{\n  "ceiling": {\n    "users": ["user"],\n  }\n}', `a.json: line 4, column 3: expected a name in double quotes, got '}'`],
    ['{\n  "ceiling": { "users": ["user" "root"] }\n}', `a.json: line 2, column 33: expected ',' or ']', got '"root"] }'`],
    ['{"onExceed" "clamp"}', `a.json: line 1, column 13: expected ':', got '"clamp"}'`],
    ['{\n// caps\n}', `a.json: line 2, column 1: expected a name in double quotes, got '// caps'`],
    ['{"a": tru}', `a.json: line 1, column 7: expected a value, got 'tru}'`],
    ['{"a": 01}', `a.json: line 1, column 8: expected ',' or '}', got '1}'`],
    ['{} {}', `a.json: line 1, column 4: expected the end, got '{}'`],
    ['{"ceiling": {', 'a.json: line 1, column 14: expected a name in double quotes, got the end of the file'],
    ['', 'a.json: line 1, column 1: expected a value, got the end of the file'],
    ['{"onExceed": "refuse",\n "onExceed": "clamp"}', "a.json: line 2, column 2: 'onExceed' stands here twice"],
    ['{"ceiling": {"__proto__": {}}}', "a.json: line 1, column 14: '__proto__' is not a possible name"],
    ['['.repeat(200), 'a.json: line 1, column 102: is nested too deeply'],
    ['{"ceiling": {"users": "user"}}', "a.json: ceiling.users: expected an array, got 'user'"],
    ['[]', 'a.json: policy: expected a plain object, got an array'],
  ])('%j is refused with its place', (text, message) => {
    expect(refusalOf(() => parsePolicyText(text, 'a.json'))).toEqual(['invalid', message])
  })

  test('is read as JSON.parse reads it, or refused', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        let read: unknown
        try {
          read = parseJson(text, 'x')
        } catch (error) {
          // Of what is JSON only a key that stands twice, or sets a prototype, is refused.
          expect((error as SandboxError).message).toMatch(/stands here twice|__proto__/)
          return
        }
        expect(read).toEqual(JSON.parse(text))
      }),
    )
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'{}[]:,"\\u0a1-.eE tfn\n') }), (text) => {
        let isJson = true
        try {
          JSON.parse(text)
        } catch {
          isJson = false
        }
        if (!isJson) expect(() => parseJson(text, 'x')).toThrow(SandboxError)
      }),
      { numRuns: 2000 },
    )
  })
})

describe('a spec above a cap', () => {
  const policy = parsePolicy({
    name: 'agents.json',
    ceiling: {
      limits: { memory: '1g', cpuTime: '10s', processes: 32 },
      lifetime: '10m',
      minTier: 'process',
      users: ['user'],
      roots: ['readonly'],
      templates: ['python', 'node'],
      drivers: ['bwrap'],
      mounts: { sources: ['/data'], modes: ['ro'] },
      commands: ['ls'],
      seccomp: 'default-only',
      env: ['TZ'],
    },
  })

  test.each([
    [{ limits: { memory: '2g' } }, "limits.memory: 2g is above the 1g that policy 'agents.json' allows"],
    [{ limits: { memory: 2 ** 30 + 1 } }, "limits.memory: 1.1g is above the 1g that policy 'agents.json' allows"],
    [
      { limits: { cpuTime: '1m', processes: 33 } },
      "limits.cpuTime: 1m is above the 10s that policy 'agents.json' allows; limits.processes: 33 is above the 32 that policy 'agents.json' allows",
    ],
    [{ lifetime: '1h' }, "lifetime: 1h is above the 10m that policy 'agents.json' allows"],
    [{ minTier: 'none' }, "minTier: 'none' is below the 'process' that policy 'agents.json' demands"],
    [{ user: 'root' }, "user: 'root' is not among what policy 'agents.json' allows (user)"],
    [{ root: 'overlay' }, "root: 'overlay' is not among what policy 'agents.json' allows (readonly)"],
    [{ template: 'shell' }, "template: 'shell' is not among what policy 'agents.json' allows (node, python)"],
    [{ driver: 'fake' }, "driver: 'fake' is not among what policy 'agents.json' allows (bwrap)"],
    [{ mounts: [{ source: '/data/../etc', target: '/mnt/x' }] }, "mounts[0]: '/data/../etc' is in no folder that policy 'agents.json' allows (/data)"],
    [{ mounts: [{ source: '/database', target: '/mnt/x' }] }, "mounts[0]: '/database' is in no folder that policy 'agents.json' allows (/data)"],
    [{ mounts: [{ source: '/data/x', target: '/mnt/x', mode: 'rw' }] }, "mounts[0].mode: 'rw' is not among what policy 'agents.json' allows (ro)"],
    [{ commands: ['ls', 'sh'] }, "commands: 'sh' is not among what policy 'agents.json' allows (ls)"],
    [{ seccomp: '/p.json' }, "seccomp: policy 'agents.json' allows no profile of a spec's own"],
    [{ env: { TOKEN: 'x' } }, "env.TOKEN: is not among the variables that policy 'agents.json' allows (TZ)"],
  ])('is refused with what was asked, the cap and the policy: %j', (spec, message) => {
    expect(refusalOf(() => applyPolicy({ template: 'python', ...spec }, policy))).toEqual(['invalid', message])
  })

  test('that says nothing of it is lowered without a word, and what is capped counts as stated', () => {
    const { spec, clamped } = planSandbox({ template: 'python' }, policy)
    expect(clamped).toEqual([])
    expect(spec).toMatchObject({ commands: ['ls'], limits: { memoryBytes: defaultLimits.memoryBytes, cpuTimeMs: 10_000, processes: 32 } })
    expect(spec.limits.stated).toEqual(['memory', 'cpuTime', 'processes'])
  })

  test('that must choose one of several is told so, and gets the one where there is one', () => {
    expect(refusalOf(() => applyPolicy({}, policy))).toEqual(['invalid', "template: 'host' is not among what policy 'agents.json' allows (node, python)"])
    expect(planSandbox({}, parsePolicy({ ceiling: { templates: ['node'], users: ['root'] } })).spec).toMatchObject({ template: 'node', user: 'root' })
  })

  test('is lowered by a policy that lowers, and every lowering is told', () => {
    const lowering = parsePolicy({ name: 'p', ceiling: policy.ceiling, onExceed: 'clamp' })
    const spec = {
      template: 'python',
      limits: { memory: '2g', processes: 8 },
      user: 'root' as const,
      mounts: [
        { source: '/etc', target: '/mnt/etc' },
        { source: '/data/x', target: '/mnt/x', mode: 'rw' as const },
      ],
      commands: ['sh', 'ls'],
      env: { TZ: 'UTC', TOKEN: 'x' },
    }
    const planned = planSandbox(spec, lowering)
    expect(planned.spec).toMatchObject({
      limits: { memoryBytes: 1024 * MiB, processes: 8 },
      user: 'user',
      mounts: [{ source: '/data/x', target: '/mnt/x', mode: 'ro' }],
      commands: ['ls'],
      env: { TZ: 'UTC' },
    })
    expect(planned.clamped).toEqual([
      { field: 'limits.memory', asked: 2048 * MiB, given: 1024 * MiB, policy: 'p' },
      { field: 'user', asked: 'root', given: 'user', policy: 'p' },
      { field: 'mounts[0]', asked: { source: '/etc', target: '/mnt/etc', mode: 'ro' }, given: null, policy: 'p' },
      { field: 'mounts[1].mode', asked: 'rw', given: 'ro', policy: 'p' },
      { field: 'commands', asked: ['sh', 'ls'], given: ['ls'], policy: 'p' },
      { field: 'env.TOKEN', asked: 'TOKEN', given: null, policy: 'p' },
    ])
  })

  test.each([
    [{ template: 'shell' }, /^template: /],
    [{ template: 'python', driver: 'fake' }, /^driver: /],
    [{ template: 'python', seccomp: '/p.json' }, /^seccomp: /],
  ])('is refused also by a policy that lowers, where nothing is lower: %j', (spec, message) => {
    expect(refusalOf(() => applyPolicy(spec, { ...policy, layers: policy.layers.map((layer) => ({ ...layer, onExceed: 'clamp' as const })) }))[1]).toMatch(
      message,
    )
  })
})

describe("the operator's policy and a spec's own", () => {
  const operator = parsePolicy({ ceiling: { limits: { memory: '1g', disk: '1g' }, seccomp: 'default-only' }, defaults: { limits: { cpus: 1 } } }, 'operator')

  test('hold both, whichever is lower', () => {
    const { spec } = planSandbox({ policy: { ceiling: { limits: { memory: '512m', disk: '2g' } } } }, operator)
    expect([spec.limits.memoryBytes, spec.limits.diskBytes, spec.limits.stated]).toEqual([512 * MiB, 100 * MiB, ['memory', 'disk']])
    expect(refusalOf(() => planSandbox({ limits: { disk: '1.5g' }, policy: 'default' }, operator))).toEqual([
      'invalid',
      "limits.disk: 1.5g is above the 1g that policy 'operator' allows",
    ])
  })

  test('refuse or lower each by its own caps', () => {
    const own = { ceiling: { limits: { memory: '256m' } }, onExceed: 'clamp' as const }
    expect(planSandbox({ limits: { memory: '512m' }, policy: own }, operator).clamped).toEqual([
      { field: 'limits.memory', asked: 512 * MiB, given: 256 * MiB, policy: 'spec' },
    ])
    expect(refusalOf(() => planSandbox({ limits: { memory: '2g' }, policy: own }, operator))[1]).toBe(
      "limits.memory: 2g is above the 1g that policy 'operator' allows",
    )
  })

  test("give the spec's own defaults first, lowered to the operator's caps and told, and not demanded where nothing caps them", () => {
    const planned = planSandbox({ policy: 'data' }, operator)
    expect(planned.spec.limits).toMatchObject({ memoryBytes: 1024 * MiB, cpus: 2, diskBytes: 1024 * MiB, stated: ['memory', 'disk'] })
    expect(planned.clamped).toEqual([
      { field: 'limits.memory', asked: 4096 * MiB, given: 1024 * MiB, policy: 'operator' },
      { field: 'limits.disk', asked: 2048 * MiB, given: 1024 * MiB, policy: 'operator' },
    ])
  })

  test('never let a spec bring in a profile by its own defaults, and say so', () => {
    const own = parsePolicy({ defaults: { seccomp: '/own.json' } })
    expect(refusalOf(() => planSandbox({ policy: { defaults: { seccomp: '/own.json' } } }, operator))).toEqual([
      'invalid',
      "policy.defaults.seccomp: policy 'operator' allows no profile of a spec's own",
    ])
    const withProfile = parsePolicy({ defaults: { seccomp: '/theirs.json' }, ceiling: { seccomp: 'default-only' } })
    expect(refusalOf(() => mergePolicies(withProfile, own))[0]).toBe('invalid')
    expect(applyPolicy({}, mergePolicies(withProfile, parsePolicy('data'))).spec.seccomp).toBe('/theirs.json')
    expect(applyPolicy({}, mergePolicies(withProfile, withProfile)).spec.seccomp).toBe('/theirs.json')
    expect(applyPolicy({}, own).spec.seccomp).toBe('/own.json')
  })

  test.each([
    ['limits', { limits: { time: '2m' } }, { limits: { time: '1m' } }, 'limits.time'],
    ['lifetime', { lifetime: '2h' }, { lifetime: '1h' }, 'lifetime'],
    ['minTier', { minTier: 'none' }, { minTier: 'process' }, 'minTier'],
    ['user', { user: 'root' }, { users: ['user'] }, 'user'],
    ['root', { root: 'overlay' }, { roots: ['readonly'] }, 'root'],
    ['env', { env: { A: '1' } }, { env: [] }, 'env.A'],
    ['commands', { commands: ['sh'] }, { commands: ['ls'] }, 'commands'],
    ['template', { template: 'node' }, { templates: ['python'] }, /^template: /],
    ['seccomp', { seccomp: '/own.json' }, { seccomp: 'default-only' }, /^policy\.defaults\.seccomp: /],
  ])("never drop %s of a spec's own defaults without a word", (_, defaults, ceiling, told) => {
    const plan = () => planSandbox({ policy: { defaults } }, parsePolicy({ ceiling }, 'operator'))
    if (typeof told === 'string') expect(plan().clamped).toEqual([expect.objectContaining({ field: told, policy: 'operator' }) as unknown])
    else expect(refusalOf(plan)[1]).toMatch(told)
  })

  test('that leave no choice together are both named', () => {
    const [a, b] = [parsePolicy({ ceiling: { users: ['user'] }, onExceed: 'clamp' }, 'a'), parsePolicy({ ceiling: { users: ['root'] } }, 'b')]
    expect(refusalOf(() => applyPolicy({ user: 'root' }, mergePolicies(a, b)))[1]).toBe("user: 'root' is not among what policy 'a' with 'b' allows (none)")
    expect(refusalOf(() => applyPolicy({}, mergePolicies(a, b)))[1]).toBe("user: 'user' is not among what policy 'b' allows (root)")
  })
})

test("a spec's own policy that is wrong is refused in full", () => {
  expect(refusalOf(() => planSandbox({ policy: 'lax' }))[1]).toBe("policy: there is no preset 'lax'; there are strict, default, data")
  expect(refusalOf(() => planSandbox({ policy: { ceiling: { users: ['bob'] } } }))[1]).toBe("policy.ceiling.users[0]: expected one of user, root, got 'bob'")
  expect(refusalOf(() => planSandbox({ policy: 7 }))[1]).toBe('policy: expected a plain object, got a number')
  expect(refusalOf(() => planSandbox(null))[1]).toBe('spec: expected a plain object, got null')
})

describe('later on', () => {
  const policy = parsePolicy({
    name: 'p',
    ceiling: { limits: { memory: '1g' }, users: ['user'], env: ['TZ'], mounts: { sources: ['/data'] }, drivers: ['bwrap'] },
  })

  test('limits of a live sandbox are held to the caps', () => {
    expect(checkLimits({ memory: '512m', cpus: 3 }, policy)).toEqual({ limits: { memory: 512 * MiB, cpus: 3 }, clamped: [] })
    expect(refusalOf(() => checkLimits({ memory: '2g' }, policy))).toEqual(['invalid', "limits.memory: 2g is above the 1g that policy 'p' allows"])
    expect(refusalOf(() => checkLimits({ memroy: '2g' }, policy))).toEqual(['invalid', 'memroy: is not a known field'])
  })

  test('a run is held to them too, and refused', () => {
    checkRun({ user: 'user', env: { TZ: 'UTC' } }, policy)
    expect(refusalOf(() => checkRun({ user: 'root', env: {} }, policy))[1]).toBe("user: 'root' is not among what policy 'p' allows (user)")
    expect(refusalOf(() => checkRun({ user: 'user', env: { LD_PRELOAD: 'x' } }, policy))[1]).toBe(
      "env.LD_PRELOAD: is not among the variables that policy 'p' allows (TZ)",
    )
  })

  test('a source whose links led elsewhere is refused', () => {
    checkMounts([{ source: '/data/x', target: '/mnt/x', mode: 'rw' }], policy)
    expect(refusalOf(() => checkMounts([{ source: '/etc', target: '/mnt/x', mode: 'ro' }], policy))[1]).toMatch(/^mounts\[0\]: '\/etc' is in no folder/)
  })

  test('only allowed drivers are asked', () => {
    expect(allowedDrivers([{ name: 'fake' }, { name: 'bwrap' }], policy)).toEqual([{ name: 'bwrap' }])
    expect(refusalOf(() => allowedDrivers([{ name: 'fake' }], policy))).toEqual(['unsupported', "driver: policy 'p' allows bwrap; here are fake"])
  })
})
