import fc from 'fast-check'
import { type LimitName, limitsSchema } from '../../src/contract/limits.js'
import type { Ceiling, PolicyInput } from '../../src/contract/policy.js'
import type { SpecInput } from '../../src/contract/spec.js'
import { mountModes, rootModes, tiers, userNames } from '../../src/contract/spec-words.js'

const ranges: Readonly<Record<LimitName, readonly [min: number, max: number]>> = {
  memory: [4 * 2 ** 20, 2 ** 44],
  cpus: [1, 4096],
  cpuTime: [1, 604_800_000],
  time: [1, 604_800_000],
  disk: [65_536, 2 ** 44],
  inodes: [64, 2 ** 32],
  fileSize: [0, 2 ** 44],
  openFiles: [16, 2 ** 20],
  processes: [1, 100_000],
  readRate: [4096, 2 ** 44],
  writeRate: [4096, 2 ** 44],
  output: [0, 2 ** 30],
}

export const limitNames = Object.keys(limitsSchema.shape) as LimitName[]

/** An object with some of these, none of them undefined. */
function some<Model extends object>(model: { [Key in keyof Model]: fc.Arbitrary<Model[Key]> }) {
  return fc.record(model, { requiredKeys: [] })
}

const limits = some<Record<LimitName, number>>(
  Object.fromEntries(limitNames.map((name) => [name, fc.integer({ min: ranges[name][0], max: ranges[name][1] })])) as Record<LimitName, fc.Arbitrary<number>>,
)

const lifetime = fc.integer({ min: 1, max: 2_592_000_000 })
const folder = fc.constantFrom('/', '/data', '/data/in', '/data/in/deep', '/data2', '/srv/', '/srv/../data', '/home/a')
const programs = fc.constantFrom('python3', 'node', 'sh', '/bin/cat', 'ls')
const variables = fc.constantFrom('LANG', 'TZ', 'TOKEN', 'a.b')
const templates = fc.constantFrom('host', 'python', 'node')
const drivers = fc.constantFrom('bwrap', 'fake')
const listOf = <T>(item: fc.Arbitrary<T>) => fc.array(item, { maxLength: 4 })

type HostEntry = string | { cidr?: string; host?: string; ports?: number[] }

const host = fc.constantFrom('*', '*:5432', 'a.example', 'a.example:443', '*.a.example', 'deep.b.a.example', '*.b.a.example:443', '203.0.113.7')
const entry: fc.Arbitrary<HostEntry> = fc.oneof(
  host,
  fc.constantFrom<HostEntry[]>(
    { cidr: '203.0.113.0/24' },
    { cidr: '203.0.113.0/28', ports: [443, 8443] },
    { host: '*.a.example', ports: [80, 443, 8080] },
    { cidr: '2001:db8::/32', ports: [80] },
  ),
)
const maxConnections = fc.integer({ min: 1, max: 1000 })
const networkBytes = fc.integer({ min: 1024, max: 2 ** 40 })

export const ceilings: fc.Arbitrary<Ceiling> = some({
  limits,
  lifetime,
  minTier: fc.constantFrom(...tiers),
  users: listOf(fc.constantFrom(...userNames)),
  roots: listOf(fc.constantFrom(...rootModes)),
  templates: listOf(templates),
  drivers: listOf(drivers),
  mounts: some({ sources: listOf(folder), modes: listOf(fc.constantFrom(...mountModes)) }),
  commands: listOf(programs),
  network: fc.oneof(
    fc.constant(false as const),
    some<{ hosts: HostEntry[]; maxConnections: number; bytes: number; bandwidth: number }>({
      hosts: listOf(entry),
      maxConnections,
      bytes: networkBytes,
      bandwidth: networkBytes,
    }),
  ),
  seccomp: fc.constantFrom('default-only' as const, 'custom' as const),
  env: listOf(variables),
})

export const specs: fc.Arbitrary<SpecInput> = some({
  name: fc.constant('n'),
  limits,
  lifetime,
  minTier: fc.constantFrom(...tiers),
  user: fc.constantFrom(...userNames),
  root: fc.constantFrom(...rootModes),
  template: templates,
  driver: drivers,
  mounts: fc.uniqueArray(fc.record({ source: folder, target: fc.constantFrom('/mnt/a', '/mnt/b', '/data'), mode: fc.constantFrom(...mountModes) }), {
    selector: ({ target }) => target,
  }),
  commands: listOf(programs),
  network: fc.oneof(
    fc.constant(false as const),
    some<{ allow: HostEntry[]; block: HostEntry[]; maxConnections: number; bytes: number; bandwidth: number; terminate: boolean }>({
      allow: listOf(entry),
      block: listOf(entry),
      maxConnections,
      bytes: networkBytes,
      bandwidth: networkBytes,
      terminate: fc.boolean(),
    }),
  ),
  seccomp: fc.constant('/p.json'),
  env: fc.dictionary(variables, fc.constant('x')),
})

/** One whose defaults contradict its ceiling is refused, so defaults come from elsewhere: a preset. */
export const policies: fc.Arbitrary<PolicyInput> = some({
  extends: fc.constantFrom('default' as const, 'data' as const, 'strict' as const),
  ceiling: ceilings,
  onExceed: fc.constantFrom('refuse' as const, 'clamp' as const),
})
