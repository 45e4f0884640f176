import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { DriverLimit, Enforcement, Probe } from '../../src/contract/driver.js'
import { SandboxError } from '../../src/contract/errors.js'
import type { Spec } from '../../src/contract/spec.js'
import { tiers } from '../../src/contract/spec-words.js'
import { candidates, cheapestFirst, type Choice, chooseDriver as choose } from '../../src/policy/choose.js'
import { parseSpec } from '../../src/policy/spec.js'

function chooseDriver(spec: Spec, probes: readonly Probe[]): Choice {
  const found = cheapestFirst(
    spec,
    candidates(
      spec,
      probes.map((probe) => ({ name: probe.driver, tier: probe.tier, probe })),
    ),
  )
  return choose(
    spec,
    found.map(({ probe }) => probe),
  )
}

const held: Enforcement = { enforced: true, by: 'a cgroup' }
const loose: Enforcement = { enforced: false, why: 'no cgroup is writable' }
const values = {
  memory: '64m',
  cpus: 0.5,
  cpuTime: '5s',
  disk: '10m',
  inodes: 100,
  fileSize: '1m',
  openFiles: 64,
  processes: 10,
  readRate: '1m',
  writeRate: '1m',
} as const satisfies Record<DriverLimit, unknown>
const driverLimits = Object.keys(values) as readonly DriverLimit[]
/** Those that nobody asked for and that have no default: nothing to be told of. */
const withoutDefault: readonly DriverLimit[] = ['cpuTime', 'readRate', 'writeRate']

function limitsOf(enforcement: (limit: DriverLimit) => Enforcement): Probe['limits'] {
  return Object.fromEntries(driverLimits.map((name) => [name, enforcement(name)])) as unknown as Probe['limits']
}

const here = { available: true } as const

function probeOf(changes: Partial<Probe> = {}): Probe {
  return {
    driver: 'bwrap',
    tier: 'process',
    available: true,
    obstacles: [],
    limits: limitsOf(() => held),
    features: {
      commands: here,
      'mounts-ro': here,
      'mounts-overlay': here,
      'mounts-rw': here,
      'root-overlay': here,
      liners: here,
      pause: here,
      network: here,
      'direct-network': here,
    },
    users: { user: { available: true }, root: { available: true } },
    filtersSyscalls: true,
    isolates: true,
    facts: {},
    ...changes,
  }
}

const fake = probeOf({ driver: 'fake', tier: 'none', isolates: false, limits: limitsOf(() => loose) })
const missing = probeOf({ available: false, obstacles: [{ what: 'bwrap', why: 'is not installed', hint: 'apt-get install bubblewrap' }] })

function refusal(input: unknown, probes: readonly Probe[]): SandboxError {
  try {
    chooseDriver(parseSpec(input), probes)
  } catch (error) {
    if (error instanceof SandboxError) return error
    throw error
  }
  throw new Error('was not refused')
}

describe('choosing a driver', () => {
  test('takes the one that is named', () => {
    const probes = [probeOf(), probeOf({ driver: 'docker', tier: 'container' })]
    expect(chooseDriver(parseSpec({ driver: 'bwrap' }), probes).probe.driver).toBe('bwrap')
  })

  test('takes the cheapest of those that enforce the most, and at least the least tier', () => {
    const weak = probeOf({ driver: 'wasm', tier: 'wasm' })
    const strong = probeOf({ driver: 'vm', tier: 'vm' })
    const loosely = probeOf({ driver: 'looser', tier: 'vm', limits: { ...probeOf().limits, cpus: loose } })
    expect(chooseDriver(parseSpec({}), [weak, probeOf(), loosely]).probe.driver).toBe('bwrap')
    expect(chooseDriver(parseSpec({}), [weak, strong, probeOf()]).probe.driver).toBe('bwrap')
    expect(chooseDriver(parseSpec({ minTier: 'container' }), [weak, strong, probeOf()]).probe.driver).toBe('vm')
    expect(chooseDriver(parseSpec({}), [probeOf({ limits: { ...probeOf().limits, cpus: loose } }), strong]).probe.driver).toBe('vm')
    expect(chooseDriver(parseSpec({ minTier: 'wasm' }), [weak]).probe.driver).toBe('wasm')
  })

  test('takes the one of a family that is named, and any for auto', () => {
    const probes = [probeOf({ driver: 'oci:runsc', tier: 'gvisor' }), probeOf({ driver: 'oci:runc', tier: 'container' }), probeOf()]
    expect(chooseDriver(parseSpec({ driver: 'oci' }), probes).probe.driver).toBe('oci:runc')
    expect(chooseDriver(parseSpec({ driver: 'oci:runsc' }), probes).probe.driver).toBe('oci:runsc')
    expect(chooseDriver(parseSpec({ driver: 'oci', minTier: 'gvisor' }), probes).probe.driver).toBe('oci:runsc')
    expect(chooseDriver(parseSpec({ driver: 'auto' }), probes).probe.driver).toBe('bwrap')
    expect(refusal({ driver: 'oc' }, probes)).toMatchObject({ code: 'unsupported' })
    expect(refusal({ driver: 'auto' }, [fake])).toMatchObject({ code: 'unsupported' })
  })

  test('goes around a driver that cannot hold what was stated', () => {
    const loosely = probeOf({ driver: 'looser', tier: 'vm', limits: { ...probeOf().limits, memory: loose } })
    expect(chooseDriver(parseSpec({ limits: { memory: '64m' } }), [loosely, probeOf()]).probe.driver).toBe('bwrap')
  })

  test('takes a driver without a boundary only when it is named and minTier none is stated', () => {
    expect(chooseDriver(parseSpec({ driver: 'fake', minTier: 'none' }), [fake]).probe.driver).toBe('fake')
    expect(refusal({ driver: 'fake' }, [fake]).message).toBe("driver fake: is of tier 'none', and the least accepted (minTier) is 'process'")
    expect(refusal({ minTier: 'none' }, [fake]).message).toBe('no driver here builds a boundary (drivers: fake)')
    expect(chooseDriver(parseSpec({ minTier: 'none' }), [fake, probeOf()]).probe.driver).toBe('bwrap')
  })

  test('names a driver that there is not', () => {
    const error = refusal({ driver: 'docker' }, [probeOf()])
    expect([error.code, error.message]).toEqual(['unsupported', "driver: there is no driver 'docker' here (drivers: bwrap)"])
  })

  test('tells where cells can be built when there is no driver at all', () => {
    const error = refusal({}, [])
    expect([error.code, error.message]).toEqual(['unsupported', 'no driver is for this system: cells are built on Linux'])
    expect(error.hint).toContain('docker run')
  })

  test('names every driver and its obstacle when none is available, and hints at the first removal', () => {
    const other = probeOf({ driver: 'docker', tier: 'container', available: false, obstacles: [{ what: 'docker', why: 'does not run', hint: 'start it' }] })
    const error = refusal({}, [missing, other])
    expect([error.code, error.message, error.hint]).toEqual([
      'unavailable',
      'driver bwrap: bwrap: is not installed (apt-get install bubblewrap). driver docker: docker: does not run (start it)',
      'apt-get install bubblewrap',
    ])
  })

  test('refuses a tier that nothing here reaches', () => {
    const error = refusal({ minTier: 'vm' }, [probeOf()])
    expect([error.code, error.message]).toEqual(['unsupported', "driver bwrap: is of tier 'process', and the least accepted (minTier) is 'vm'"])
  })

  test('where all that are here are too weak, hints at what would bring one that is not', () => {
    const obstacles = [{ what: 'no runsc', why: 'the program runsc is not installed', hint: 'apt-get install -y runsc' }]
    const gvisor = probeOf({ driver: 'oci:runsc', tier: 'gvisor', available: false, obstacles })
    const error = refusal({ minTier: 'gvisor' }, [gvisor, probeOf()])
    expect([error.code, error.hint]).toEqual(['unsupported', 'apt-get install -y runsc'])
    expect(error.message).toContain('driver oci:runsc: no runsc: the program runsc is not installed (apt-get install -y runsc)')
    const lacking = probeOf({ driver: 'other', tier: 'gvisor', limits: { ...probeOf().limits, memory: loose } })
    expect(refusal({ minTier: 'gvisor', limits: { memory: '64m' } }, [gvisor, probeOf(), lacking]).hint).toBe('glovebox doctor')
  })

  test('refuses a user that is not available, with the reason', () => {
    const single = probeOf({ users: { user: { available: true }, root: { available: false, why: 'only one id can be mapped' } } })
    const error = refusal({ user: 'root' }, [single])
    expect([error.code, error.message]).toEqual(['unsupported', "driver bwrap: user: 'root' is not available: only one id can be mapped"])
  })
})

describe('what a spec asks for beyond limits and users', () => {
  const ro = { source: '/srv/data', target: '/workspace/data' }
  const rw = { ...ro, mode: 'rw' }
  const lack = { available: false, why: 'this kernel is too old' } as const

  test.each([
    [{ commands: ['ls'] }, 'commands', 'commands cannot be enforced: this kernel is too old'],
    [{ commands: [] }, 'commands', 'commands cannot be enforced: this kernel is too old'],
    [{ mounts: [ro] }, 'mounts-ro', 'mounts are not available: this kernel is too old'],
    [{ mounts: [{ ...ro, mode: 'overlay' }] }, 'mounts-overlay', 'mounts with an overlay are not available: this kernel is too old'],
    [{ mounts: [rw] }, 'mounts-rw', 'mounts that can be written to are not available: this kernel is too old'],
    [{ root: 'overlay' }, 'root-overlay', "root: 'overlay' is not available: this kernel is too old"],
  ] as const)('%j is refused exactly where %s is lacking', (input, feature, message) => {
    const lacking = probeOf({ features: { ...probeOf().features, [feature]: lack } })
    const error = refusal(input, [lacking])
    expect([error.code, error.message]).toEqual(['unsupported', `driver bwrap: ${message}`])
    const others = Object.fromEntries(Object.keys(probeOf().features).map((name) => [name, name === feature ? here : lack])) as Probe['features']
    expect(chooseDriver(parseSpec(input), [probeOf({ features: others })]).probe.driver).toBe('bwrap')
    expect(chooseDriver(parseSpec({}), [lacking]).probe.driver).toBe('bwrap')
  })

  test('a profile is refused where no system calls are filtered', () => {
    const open = probeOf({ filtersSyscalls: false })
    expect(refusal({ seccomp: { defaultAction: 'SCMP_ACT_ALLOW' } }, [open]).message).toBe(
      'driver bwrap: seccomp cannot be enforced: this driver filters no system calls',
    )
    expect(chooseDriver(parseSpec({}), [open]).probe.driver).toBe('bwrap')
  })
})

describe('limits', () => {
  test('that are stated and above what can be enforced are refused with the largest that can be', () => {
    const small = probeOf({ limits: { ...probeOf().limits, disk: { enforced: true, by: 'tmpfs', max: 1000_000 } } })
    const error = refusal({ limits: { disk: 2_000_000 } }, [small])
    expect([error.code, error.message]).toEqual(['unsupported', 'driver bwrap: limits.disk: 2m is above the 976.5k that can be enforced (tmpfs)'])
    const { limits } = chooseDriver(parseSpec({}), [small])
    expect([limits.diskBytes, limits.stated]).toEqual([1_000_000, []])
  })

  test('refuses what is below the least that a cell needs, and says how much that is', () => {
    const needy = probeOf({ limits: { ...probeOf().limits, memory: { enforced: true, by: 'a cgroup', min: 8 * 2 ** 20 } } })
    const error = refusal({ limits: { memory: '4m' } }, [needy])
    expect([error.code, error.message]).toEqual(['unsupported', 'driver bwrap: limits.memory: 4m is below the 8m that a cell needs'])
    expect(chooseDriver(parseSpec({ limits: { memory: '8m' } }), [needy]).probe.driver).toBe('bwrap')
  })

  test('are refused exactly when one that was stated is not enforced; unstated ones are told instead', () => {
    fc.assert(
      fc.property(fc.subarray([...driverLimits]), fc.subarray([...driverLimits]), (stated, notEnforced) => {
        const limits = limitsOf((name) => (notEnforced.includes(name) ? loose : held))
        const input = { limits: Object.fromEntries(stated.map((name) => [name, values[name]])) }
        const lacking = stated.filter((name) => notEnforced.includes(name))
        if (lacking.length > 0) {
          const error = refusal(input, [probeOf({ limits })])
          expect(error.code).toBe('unsupported')
          for (const name of lacking) expect(error.message).toContain(`limits.${name} cannot be enforced: no cgroup is writable`)
        } else {
          const expected = driverLimits
            .filter((name) => notEnforced.includes(name) && !withoutDefault.includes(name))
            .map((limit) => ({ limit, why: 'no cgroup is writable' }))
          expect(chooseDriver(parseSpec(input), [probeOf({ limits })]).unenforced).toEqual(expected)
        }
      }),
    )
  })

  test('of time and output are the engine’s, so no driver is refused for them', () => {
    const nothing = probeOf({ limits: limitsOf(() => loose) })
    expect(chooseDriver(parseSpec({ limits: { time: 1, output: 1 } }), [nothing]).unenforced).toHaveLength(driverLimits.length - withoutDefault.length)
  })
})

test('whatever the probes say, the choice is available, strong enough, and never without a boundary unless it was named', () => {
  const anyProbe = fc.record({ driver: fc.constantFrom('a', 'b', 'c'), tier: fc.constantFrom(...tiers), available: fc.boolean() })
  fc.assert(
    fc.property(fc.array(anyProbe), fc.constantFrom(...tiers), fc.option(fc.constantFrom('a', 'b'), { nil: undefined }), (found, minTier, driver) => {
      const probes = found.map((each) => probeOf(each))
      try {
        const { probe } = chooseDriver(parseSpec({ minTier, driver }), probes)
        expect(probe.available).toBe(true)
        expect(tiers.indexOf(probe.tier)).toBeGreaterThanOrEqual(tiers.indexOf(minTier))
        expect(driver === undefined ? probe.tier !== 'none' : probe.driver === driver).toBe(true)
      } catch (error) {
        if (!(error instanceof SandboxError)) throw error
        expect(['unsupported', 'unavailable']).toContain(error.code)
      }
    }),
  )
})
