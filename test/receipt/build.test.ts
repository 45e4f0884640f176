import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import type { LimitName } from '../../src/contract/limits.js'
import type { Evidence, Posture } from '../../src/contract/posture.js'
import { limitControls, type ReceiptControl, receiptSchema } from '../../src/contract/receipt.js'
import { planSandbox } from '../../src/policy/apply.js'
import { mergePolicies, parsePolicy } from '../../src/policy/policy-file.js'
import {
  buildReceipt,
  explainReceipt,
  formatReceipt,
  hashOf,
  type ProgramLook,
  type ReceiptFacts,
  signReceipt,
  verifyReceipt,
} from '../../src/receipt/index.js'
import { cellPosture, facts, policy, privateKey, programPosture, publicKey, seen, spec } from './facts.js'

type Subset = Partial<ReceiptControl>

function controlOf(given: ReceiptFacts, control: string, subject = 'cell'): Subset | undefined {
  const found = buildReceipt(given).controls.filter((each) => each.control === control && each.subject === subject)
  expect(found.length).toBeLessThanOrEqual(1)
  return found[0]
}

/** The same posture with one observation exchanged, or without it. */
function withSeen(posture: Posture, control: string, change: object | undefined): Posture {
  const observations = posture.observations.flatMap((each) => (each.control !== control ? [each] : change === undefined ? [] : [{ ...each, ...change }]))
  return { ...posture, observations }
}

function withSpec(input: object, more: Partial<ReceiptFacts['info']> = {}): ReceiptFacts {
  const { spec: planned, origins } = planSandbox(input)
  return { ...facts, origins, info: { ...facts.info, spec: planned, ...more } }
}

const bare = (given: ReceiptFacts): ReceiptFacts => ({ ...given, cell: { expectations: [], postures: [] }, programs: [] })

describe('a receipt', () => {
  test('is what its golden file says, signature included', async () => {
    await expect(formatReceipt(signReceipt(buildReceipt(facts), privateKey))).toMatchFileSnapshot('golden/receipt.json')
  })

  test('fits its own schema, and is verified', () => {
    const receipt = signReceipt(buildReceipt(facts), privateKey)
    expect(receiptSchema.parse(receipt)).toEqual(receipt)
    expect(verifyReceipt(receipt, { publicKey })).toMatchObject({ valid: true, trusted: true })
  })

  test('is the same for the same facts, in whatever order the kernel was read', () => {
    const turn = (posture: Posture): Posture => ({ ...posture, observations: posture.observations.toReversed() })
    const turned = {
      ...facts,
      cell: { ...facts.cell, postures: facts.cell.postures.map(turn) },
      programs: facts.programs.map((look) => ({ ...look, postures: look.postures.map(turn) })),
    }
    expect(buildReceipt(turned)).toEqual(buildReceipt(facts))
  })

  test('tells of every limit, expectation and observation exactly once', () => {
    const { controls } = buildReceipt(facts)
    const names = controls.map(({ control, subject }) => `${control} of ${subject}`)
    expect(new Set(names).size).toBe(names.length)
    expect(controls.filter(({ control }) => control.startsWith('limit.')).map(({ control }) => control)).toEqual(limitControls)
    const observed = [...cellPosture.observations, ...programPosture.observations].map(({ control }) => control)
    expect(observed.filter((control) => !controls.some((each) => each.control === control))).toEqual([])
  })

  test('holds no value of a variable and no command', () => {
    const text = JSON.stringify(buildReceipt(facts))
    expect(text).toContain('TOKEN')
    expect(text).not.toContain('never shown')
  })

  test('knows the whole spec by its hash', () => {
    expect(buildReceipt(facts).specHash).toBe(hashOf(spec))
    expect(hashOf({ ...spec, env: { TOKEN: 'other' } })).not.toBe(hashOf(spec))
  })

  test('holds every run that is handed in', () => {
    const [run] = facts.runs
    if (!run) throw new Error('there is one')
    const { runs } = buildReceipt({ ...facts, runs: Array.from({ length: 300 }, (_, index) => ({ ...run, number: index + 1 })) })
    expect([runs.length, runs[0]?.number, runs.at(-1)?.number]).toEqual([300, 1, 300])
  })

  test('can be made of what is no proper text', () => {
    const given = { ...facts, info: { ...facts.info, spec: { ...spec, name: 'a\ud800' } } }
    expect(signReceipt(buildReceipt(given), privateKey).sandbox.name).toBe('a\ufffd')
  })

  test('is never made of a posture that is not as demanded', () => {
    const cell = { ...facts.cell, postures: [withSeen(cellPosture, 'interfaces', { value: ['lo', 'eth0'] })] }
    expect(() => buildReceipt({ ...facts, cell })).toThrow(expect.objectContaining({ code: 'not-enforced', message: 'interfaces of cell: has eth0 besides' }))
    const programs = facts.programs.map((look) => ({ ...look, postures: [withSeen(programPosture, 'seccomp', undefined)] }))
    expect(() => buildReceipt({ ...facts, programs })).toThrow(expect.objectContaining({ code: 'not-enforced', message: 'seccomp of pid 3: was not observed' }))
  })
})

describe('a verdict', () => {
  test.each<[Evidence, string]>([
    ['kernel', 'proven'],
    ['probe', 'proven'],
    ['runtime', 'told'],
    ['asserted', 'asserted'],
  ])('by %s is %s', (evidence, verdict) => {
    const cell = { ...facts.cell, postures: [withSeen(cellPosture, 'uid-map', { evidence })] }
    expect(controlOf({ ...facts, cell }, 'uid-map')).toMatchObject({ evidence, verdict })
  })
})

describe('a limit', () => {
  const limit = (given: ReceiptFacts, name: LimitName) => controlOf(given, `limit.${name}`)

  test('that the kernel states is proven, with what was asked for beside it', () => {
    expect(limit(facts, 'memory')).toEqual({
      control: 'limit.memory',
      subject: 'cell',
      requested: 2 ** 29,
      stated: 'default',
      enforced: 2 ** 29,
      evidence: 'kernel',
      source: 'memory.limit_in_bytes',
      verdict: 'proven',
    })
  })

  test('that the driver had to round is what the kernel states, as long as the driver demanded that', () => {
    const observed = withSeen(cellPosture, 'limit.memory', { value: 2 ** 29 - 4096 })
    const demanded = facts.cell.expectations.map((each) => (each.control === 'limit.memory' ? { ...each, value: 2 ** 29 - 4096 } : each))
    expect(limit({ ...facts, cell: { expectations: demanded, postures: [observed] } }, 'memory')).toMatchObject({ enforced: 2 ** 29 - 4096, verdict: 'proven' })
    const undemanded = facts.cell.expectations.filter(({ control }) => control !== 'limit.memory')
    expect(() => buildReceipt({ ...facts, cell: { expectations: undemanded, postures: [observed] } })).toThrow(
      expect.objectContaining({ code: 'not-enforced', message: 'limit.memory of cell: is 536866816 instead of 536870912' }),
    )
  })

  test('of the engine is asserted by its timer or its count', () => {
    expect(limit(facts, 'time')).toMatchObject({ requested: 5000, stated: 'spec', enforced: 5000, verdict: 'asserted', source: "the engine's timer" })
    expect(limit(facts, 'output')).toMatchObject({ enforced: 10 * 2 ** 20, verdict: 'asserted', source: "the engine's count of what captured runs print" })
    expect(limit(withSpec({ ...spec0, limits: { cpuTime: '2s' } }), 'cpuTime')).toMatchObject({
      requested: 2000,
      enforced: 2000,
      verdict: 'asserted',
      source: "the engine's timer, and cgroup v1",
    })
  })

  test('that nobody asked for is no limit, and said to be none', () => {
    expect(limit(facts, 'readRate')).toMatchObject({ requested: null, enforced: null, verdict: 'not-asked', source: 'nobody asked for it' })
  })

  test('that each program is held to is proven by the last that was looked at', () => {
    expect(limit(facts, 'fileSize')).toMatchObject({ requested: 50 * 2 ** 20, stated: 'spec', enforced: 50 * 2 ** 20, evidence: 'kernel', verdict: 'proven' })
    expect(limit(facts, 'openFiles')).toMatchObject({ enforced: 4096, source: '/proc, for rlimits, of run 1', verdict: 'proven' })
  })

  test('that was lowered since the last program started is only asserted', () => {
    const given = withSpec({ ...spec0, limits: { openFiles: 100 } })
    expect(limit(given, 'openFiles')).toMatchObject({
      requested: 100,
      enforced: 100,
      verdict: 'asserted',
      source: 'RLIMIT_NOFILE; no program has started since it was changed',
    })
  })

  test('that programs are held to is only asserted before there is one', () => {
    expect(limit({ ...facts, programs: [] }, 'openFiles')).toMatchObject({
      enforced: 4096,
      verdict: 'asserted',
      source: 'RLIMIT_NOFILE; no program has started yet',
    })
  })

  test('of processes without cgroups is proven by what the kernel holds a program to', () => {
    const cell = { expectations: [], postures: [withSeen(cellPosture, 'limit.processes', undefined)] }
    const rlimits = { ...(programPosture.observations.find(({ control }) => control === 'rlimits')?.value as object), processes: [64, 64] }
    const programs = facts.programs.map((look) => ({ ...look, expectations: [], postures: [withSeen(programPosture, 'rlimits', { value: rlimits })] }))
    expect(limit({ ...facts, cell, programs }, 'processes')).toMatchObject({ requested: 64, enforced: 64, verdict: 'proven' })
  })

  test('that is a default which nothing enforces is told as such, whatever was observed', () => {
    const unenforced = [{ limit: 'cpus', why: 'no cgroup can be written' }] as const
    expect(limit(withSpec(spec0, { unenforced }), 'cpus')).toMatchObject({
      requested: 0.5,
      enforced: null,
      verdict: 'not-enforced',
      why: 'no cgroup can be written',
    })
    expect(limit(bare(withSpec(spec0, { unenforced })), 'cpus')).toMatchObject({ enforced: null, evidence: 'asserted', verdict: 'not-enforced' })
  })

  test('that only the driver speaks of is asserted', () => {
    expect(limit(bare(facts), 'memory')).toMatchObject({ enforced: 2 ** 29, evidence: 'asserted', source: 'cgroup v1', verdict: 'asserted' })
  })
})

describe('a limit that programs keep from when they were started', () => {
  const living = (...hard: (number | string)[]) =>
    hard.map((files, index): Posture => ({ subject: `pid ${index + 4}`, observations: [seen('rlimits', { files: [files, files] })] }))
  const lowered = withSpec({ limits: { openFiles: 99 } })
  const newest = { ...facts.programs[0], postures: [withSeen(programPosture, 'rlimits', { value: { files: [99, 99] } })], expectations: [] } as ProgramLook

  test('is not proven while one lives that may have more', () => {
    const given = { ...bare(lowered), programs: [newest], living: living(99, 4096) }
    expect(controlOf(given, 'limit.openFiles')).toMatchObject({
      requested: 99,
      enforced: 4096,
      evidence: 'asserted',
      verdict: 'asserted',
      why: 'a process that was started before it was lowered still has up to 4096',
    })
    expect(controlOf({ ...given, living: living('unlimited', 200) }, 'limit.openFiles')).toMatchObject({
      enforced: null,
      verdict: 'asserted',
      why: '2 processes that were started before it was lowered still have no limit',
    })
  })

  test('is proven once none does, by the largest that one has', () => {
    expect(controlOf({ ...bare(lowered), programs: [newest], living: living(99, 10) }, 'limit.openFiles')).toMatchObject({ enforced: 99, verdict: 'proven' })
    const smaller = { ...newest, postures: [withSeen(programPosture, 'rlimits', { value: { files: [10, 10] } })] }
    expect(controlOf({ ...bare(lowered), programs: [smaller], living: living(99) }, 'limit.openFiles')).toMatchObject({ enforced: 99, verdict: 'proven' })
  })

  test('says nothing of processes where something else counts them', () => {
    const rows: Posture[] = [{ subject: 'pid 4', observations: [seen('rlimits', { processes: [9999, 9999] })] }]
    expect(controlOf({ ...bare(facts), living: rows }, 'limit.processes')).not.toHaveProperty('why')
  })
})

describe('the policies of a receipt', () => {
  test('are all that hold, the operator’s first, each with the hash of what it says', () => {
    const operator = parsePolicy('strict')
    const { layers } = mergePolicies(operator, policy)
    const { policies } = buildReceipt({ ...facts, policies: layers })
    expect(policies.map(({ name, onExceed }) => [name, onExceed])).toEqual([
      ['strict', 'refuse'],
      ['site.json', 'refuse'],
    ])
    expect(policies[0]?.hash).toBe(hashOf({ defaults: operator.defaults, ceiling: operator.ceiling, onExceed: 'refuse' }))
    const other = parsePolicy({ name: 'strict', extends: 'strict', ceiling: { limits: { memory: '255m' } } })
    expect(buildReceipt({ ...facts, policies: other.layers }).policies[0]?.hash).not.toBe(policies[0]?.hash)
  })

  test('are told from whoever asked: what they cap, suggest or lower is theirs', () => {
    const strict = parsePolicy({ extends: 'strict', defaults: { env: { A: 'x' } }, onExceed: 'clamp' })
    const { spec: planned, origins, clamped } = planSandbox({ limits: { memory: '1g', time: '5s' }, user: 'user' }, strict)
    const receipt = buildReceipt(bare({ ...facts, origins, info: { ...facts.info, spec: planned, clamped } }))
    const stated = Object.fromEntries(receipt.controls.map((each) => [each.control, each.stated]))
    expect(stated).toMatchObject({
      'limit.memory': 'policy',
      'limit.time': 'spec',
      'limit.processes': 'policy',
      'limit.readRate': 'default',
      environment: 'policy',
      lifetime: 'policy',
      user: 'spec',
      root: 'default',
    })
    expect(receipt.clamped).toEqual([{ field: 'limits.memory', asked: 2 ** 30, given: 2 ** 28, by: 'policy' }])
  })
})

test('a limit that a policy lowered says so', () => {
  const clamped = [{ field: 'limits.memory', asked: 2 ** 31, given: 2 ** 29, policy: 'site.json' }]
  const given = withSpec(spec0, { clamped })
  expect(controlOf(given, 'limit.memory')).toMatchObject({
    requested: 2 ** 29,
    verdict: 'proven',
    why: '2147483648 was asked for, and lowered by policy site.json',
  })
  expect(explainReceipt(buildReceipt(given))).toContain('limit.memory: 2147483648 was asked for, and lowered by policy site.json')
})

const spec0 = { commands: ['python3'], mounts: [{ source: '/srv/data', target: '/data' }] }

describe('a wish', () => {
  test('for a user is proven by the ids of the last program', () => {
    expect(controlOf(facts, 'user')).toMatchObject({ requested: 'user', enforced: { name: 'user', uid: 1000, gid: 1000 }, verdict: 'proven' })
    expect(controlOf({ ...facts, programs: [] }, 'user')).toMatchObject({ enforced: 'user', verdict: 'asserted', source: 'no program has started yet' })
  })

  test('for a root that cannot be written to is proven by the mount table, and held to it', () => {
    expect(controlOf(facts, 'root')).toMatchObject({ requested: 'readonly', enforced: 'readonly', evidence: 'kernel', verdict: 'proven' })
    expect(() => buildReceipt(withSpec({ ...spec0, root: 'overlay' }))).toThrow(
      expect.objectContaining({ code: 'not-enforced', message: 'root of cell: is readonly instead of overlay' }),
    )
  })

  test('for paths of the host is proven by the mount table, but for what they show', () => {
    expect(controlOf(facts, 'host-paths')).toMatchObject({
      requested: [{ source: '/srv/data', target: '/data', mode: 'ro' }],
      stated: 'spec',
      enforced: [{ target: '/data', mode: 'ro' }],
      verdict: 'proven',
      why: 'that a target shows its source is what the driver says; the kernel was asked for the rest',
    })
    const writable = withSpec({ mounts: [{ source: '/srv/data', target: '/data', mode: 'rw' }] })
    expect(() => buildReceipt(writable)).toThrow(expect.objectContaining({ code: 'not-enforced', message: 'host-paths of cell: /data is "ro" instead of rw' }))
    const laid = withSpec({ mounts: [{ source: '/srv/data', target: '/data', mode: 'overlay' }] })
    expect(() => buildReceipt(laid)).toThrow(expect.objectContaining({ message: 'host-paths of cell: /data is "ro" instead of overlay' }))
    const row = { target: '/data', type: 'overlay', access: 'rw' }
    const rows = laid.cell.postures[0]?.observations.find(({ control }) => control === 'mounts')?.value as readonly object[]
    const expectations = laid.cell.expectations.filter(({ control }) => control !== 'mounts')
    const cell = { expectations, postures: laid.cell.postures.map((posture) => withSeen(posture, 'mounts', { value: [...rows, row] })) }
    expect(controlOf({ ...laid, cell }, 'host-paths')).toMatchObject({ enforced: [{ target: '/data', mode: 'overlay' }], verdict: 'proven' })
  })

  test('for some commands only is proven where another was tried, and asserted where not', () => {
    expect(controlOf(facts, 'commands')).toMatchObject({ requested: ['python3'], enforced: { refused: '/usr/bin/perl' }, evidence: 'probe', verdict: 'proven' })
    expect(controlOf(bare(facts), 'commands')).toMatchObject({ enforced: ['python3'], verdict: 'asserted' })
    expect(controlOf(bare(withSpec({})), 'commands')).toMatchObject({ requested: null, enforced: null, verdict: 'not-asked' })
  })

  test('for a profile is proven by the filter that the kernel holds', () => {
    expect(controlOf(facts, 'seccomp-profile')).toMatchObject({ requested: 'default', enforced: { filter: 'ab'.repeat(32) }, verdict: 'proven' })
    const unread = withSeen(programPosture, 'filter', { value: null, evidence: 'asserted', source: 'only root may read it' })
    const programs = facts.programs.map((look) => ({ ...look, postures: [unread] }))
    expect(controlOf({ ...facts, programs }, 'seccomp-profile')).toMatchObject({
      enforced: 'default',
      verdict: 'asserted',
      source: 'only root may read it, of run 1',
    })
    const profile = { defaultAction: 'SCMP_ACT_ERRNO' }
    expect(controlOf(withSpec({ ...spec0, seccomp: profile }), 'seccomp-profile')).toMatchObject({ requested: { hash: hashOf(profile) }, stated: 'spec' })
    expect(controlOf(withSpec({ ...spec0, seccomp: '/etc/profile.json' }), 'seccomp-profile')).toMatchObject({ requested: { file: '/etc/profile.json' } })
  })

  test('for variables is told by their names', () => {
    expect(controlOf(facts, 'environment')).toMatchObject({ requested: ['TOKEN'], enforced: ['HOME', 'PATH', 'TOKEN'], verdict: 'asserted' })
  })

  test('for a tier is what the driver tells', () => {
    expect(controlOf(facts, 'tier')).toMatchObject({ requested: 'process', enforced: 'process', evidence: 'runtime', verdict: 'told' })
  })

  test('is not enforced by a driver that isolates nothing', () => {
    const fake = bare({ ...facts, probe: { ...facts.probe, driver: 'fake', tier: 'none', isolates: false } })
    expect(controlOf(fake, 'root')).toMatchObject({ enforced: null, verdict: 'not-enforced', why: 'driver fake isolates nothing' })
    expect(explainReceipt(buildReceipt(fake))[0]).toBe('nothing is isolated: driver fake builds no walls')
  })
})

describe('the controls of programs', () => {
  test('are asserted before any program has started', () => {
    const controls = buildReceipt({ ...facts, programs: [] }).controls.filter(({ subject }) => subject === 'programs')
    expect(controls.map(({ control }) => control)).toEqual(['capabilities', 'descriptors', 'filter', 'ids', 'no-new-privs', 'placement', 'rlimits', 'seccomp'])
    expect(new Set(controls.map(({ verdict, source }) => `${verdict}: ${source}`))).toEqual(new Set(['asserted: no program has started yet']))
  })

  test('are told of the last program in full and the last in short, by the number of their run', () => {
    const short = { subject: 'pid 9', observations: [seen('no-new-privs', true)] }
    const programs = [
      ...facts.programs,
      { run: { number: 4, user: 'user' as const, environment: [] }, expectations: [], postures: [short, { ...short, subject: 'pid 9 thread 11' }] },
    ]
    const subjects = buildReceipt({ ...facts, programs }).controls.filter(({ control }) => control === 'no-new-privs')
    expect(subjects.map(({ subject }) => subject)).toEqual(['run 1', 'run 4', 'run 4 thread 11'])
  })
})

describe('the explanation', () => {
  test('names what is not proven and why, by reason', () => {
    const unenforced = [{ limit: 'cpus', why: 'no cgroup can be written' }] as const
    expect(explainReceipt(buildReceipt(withSpec(spec0, { unenforced })))).toEqual([
      'limit.cpus is not enforced: no cgroup can be written',
      'tier is only told, by driver bwrap',
      "limit.time, lifetime are only asserted: the engine's timer",
      "limit.output is only asserted: the engine's count of what captured runs print",
      'environment is only asserted: what the engine handed to run 1, names only',
      'host-paths: that a target shows its source is what the driver says; the kernel was asked for the rest',
    ])
  })
})

describe('the published schema', () => {
  test('is in step with the one that receipts are read by', () => {
    const script = fileURLToPath(new URL('../../scripts/schemas.mjs', import.meta.url))
    const { status, stdout, stderr } = spawnSync(process.execPath, [script, '--check'], { encoding: 'utf8' })
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: '', stderr: '' })
  })

  test('is in the package', () => {
    const { exports, files } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { exports: object; files: string[] }
    expect(exports).toHaveProperty(['./schemas/*'], './schemas/*')
    expect(files).toContain('schemas')
  })
})
