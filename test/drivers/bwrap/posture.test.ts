import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Json, Observation, Posture } from '../../../src/contract/posture.js'
import { judge } from '../../../src/receipt/judge.js'
import { detectCgroups } from '../../../src/sys/cgroups.js'
import { testUnless } from '../../unless.js'
import { fullProgramExpectations } from '../../../src/engine/program-expectations.js'
import { defaultFilter, defaultRlimits, type PosedCell, poseCell } from './posture-cell.js'

const isRoot = process.getuid?.() === 0
const hasCgroups = !('unavailable' in detectCgroups())
let guest: PosedCell

beforeAll(async () => {
  guest = await poseCell({ limits: { memoryBytes: 64 * 2 ** 20 + 1000, diskBytes: 2 ** 20 + 1, inodes: 500, cpus: 0.25, processes: 20 } })
})

afterAll(() => guest[Symbol.asyncDispose]())

function observed({ observations }: Posture, control: string): Observation {
  const found = observations.filter((observation) => observation.control === control)
  expect(found).toHaveLength(1)
  return found[0] as Observation
}

async function cellPosture(): Promise<Posture> {
  const [posture, ...others] = await guest.cell.posture({ kind: 'cell' })
  expect(others).toEqual([])
  return posture as Posture
}

function demanded(control: string): Json {
  return guest.cell.expects.find((expectation) => expectation.control === control)?.value ?? null
}

describe('a cell as it should be', () => {
  test('is in every way what its plan demands', async () => {
    expect(judge({ expectations: guest.cell.expects, posture: await cellPosture() })).toEqual([])
  })

  test('is known by the kernel alone', async () => {
    const { subject, observations } = await cellPosture()
    expect([subject, new Set(observations.map(({ evidence }) => evidence))]).toEqual(['cell', new Set(['kernel'])])
  })

  test('has nothing of the host’s namespaces and no interface but a loopback', async () => {
    const posture = await cellPosture()
    expect(observed(posture, 'namespaces').value).toEqual({ cgroup: 'own', ipc: 'own', mnt: 'own', net: 'own', pid: 'own', user: 'own', uts: 'own' })
    expect(observed(posture, 'interfaces').value).toEqual(['lo'])
  })

  test('is demanded to have each limit that is held here, in whole pages', () => {
    expect([demanded('limit.disk'), demanded('limit.inodes')]).toEqual([2 ** 20 + 4096, 500])
    if (hasCgroups) expect([demanded('limit.memory'), demanded('limit.cpus'), demanded('limit.processes')]).toEqual([64 * 2 ** 20, 0.25, 20])
  })

  test('has a mount for all that is masked here, each of which leads nowhere', async () => {
    const rows = observed(await cellPosture(), 'mounts').value as { target: string; access: string }[]
    const masks = rows.filter(({ target }) => /^\/proc\/(kallsyms|keys|interrupts|acpi|timer_list)$/.test(target))
    expect(masks.length).toBeGreaterThan(1)
    expect(masks.every(({ access }) => access === 'ro')).toBe(true)
  })

  testUnless(!hasCgroups && 'no cgroups can be made here')('follows limits that are changed while it lives', async () => {
    const { memoryBytes, ...others } = guest.spec.limits
    await guest.cell.limit({ ...others, memoryBytes: 2 * memoryBytes })
    expect(demanded('limit.memory')).toBe(128 * 2 ** 20)
    expect(judge({ expectations: guest.cell.expects, posture: await cellPosture() })).toEqual([])
  })
})

interface Seen {
  readonly posture: Posture
  readonly said: string
}

async function seenAtGate(script: string, options: { readonly user?: 'user' | 'root'; readonly depth?: 'full' | 'short' } = {}): Promise<Seen> {
  const seen: Posture[] = []
  const said = await guest.script(script, { ...options, atGate: (posture) => void seen.push(posture) })
  expect(seen).toHaveLength(1)
  return { posture: seen[0] as Posture, said }
}

const warden = { filters: 1, hasCgroup: hasCgroups }

function keptGroups(): readonly number[] {
  return guest.cell.users[0]?.groups ?? []
}

describe('a program at its gate', () => {
  test('is in every way what its start demands, and goes on as if nothing had been', async () => {
    const { posture, said } = await seenAtGate('id -u; ls /proc/self/fd | wc -l')
    const request = { uid: 1000, gid: 1000, capabilities: 0n, rlimits: defaultRlimits }
    const { hash } = await defaultFilter()
    expect(judge({ expectations: fullProgramExpectations({ request, groups: keptGroups(), filterHash: hash, warden }), posture })).toEqual([])
    expect(said).toBe('1000\n4\n')
  })

  testUnless(!isRoot && 'only root can give a cell more than one id')('as root of the cell has exactly its five capabilities', async () => {
    const { posture } = await seenAtGate('true', { user: 'root' })
    const five = '41b'
    expect(observed(posture, 'ids').value).toEqual({ uid: 0, gid: 0, groups: [] })
    expect(observed(posture, 'capabilities').value).toEqual({ effective: five, permitted: five, inheritable: '0', bounding: five, ambient: '0' })
  })

  testUnless(!isRoot && 'only root may read the filter of a process')('is under exactly the filter that was sent', async () => {
    expect(observed((await seenAtGate('true')).posture, 'filter')).toMatchObject({ value: (await defaultFilter()).hash, evidence: 'kernel' })
  })

  testUnless(isRoot && 'root may read the filter of a process')('is only asserted to be under the filter that was sent', async () => {
    const filter = observed((await seenAtGate('true')).posture, 'filter')
    expect(filter).toEqual({ control: 'filter', value: null, evidence: 'asserted', source: 'only root may read the filter of a process' })
  })

  test('keeps no descriptor but its three through execve', async () => {
    expect(observed((await seenAtGate('true')).posture, 'descriptors')).toEqual({
      control: 'descriptors',
      value: [0, 1, 2],
      evidence: 'kernel',
      source: '/proc/PID/fdinfo',
    })
  })

  test('is told of in short without what takes long to read', async () => {
    const { posture } = await seenAtGate('true', { depth: 'short' })
    expect(posture.observations.map(({ control }) => control)).toEqual(['ids', 'capabilities', 'no-new-privs', 'seccomp', 'placement', 'rlimits'])
    expect(posture.subject).toMatch(/^pid \d+$/)
  })

  test('that is not there is broken, not fine', async () => {
    await expect(guest.cell.posture({ kind: 'program', pid: 4711, depth: 'short', group: undefined })).rejects.toMatchObject({
      code: 'broken',
      message: 'the program with pid 4711 is gone',
    })
  })
})

describe('everything in a cell', () => {
  const nothingElse: Posture = { subject: 'cell', observations: [{ control: 'complete', value: true, evidence: 'kernel', source: '/proc' }] }

  test('is each process and each thread of its guests, and neither warden nor keepers', async () => {
    expect(await guest.cell.posture({ kind: 'everything' })).toEqual([nothingElse])
    const threads = 'import threading, time; [threading.Thread(target=time.sleep, args=(60,)).start() for _ in range(2)]'
    const script = guest.script(`sleep 60 & a=$!; python3 -c '${threads}' & b=$!; until [ -e /tmp/seen ]; do sleep 0.05; done; kill -9 $a $b; wait`, {
      atGate: () => undefined,
    })
    let postures: readonly Posture[] = []
    while (postures.filter(({ subject }) => subject.includes('thread')).length < 2) {
      await sleep(20)
      postures = (await guest.cell.posture({ kind: 'everything' })).filter(({ subject }) => subject !== 'cell')
    }
    const threadCount = postures.filter(({ subject }) => subject.includes('thread')).length
    expect([postures.length >= 5, threadCount]).toEqual([true, 2])
    const demands = [
      { control: 'no-new-privs', value: true },
      { control: 'seccomp', value: { mode: 2, filters: 2 } },
      { control: 'ids', value: { uid: 1000, gid: 1000, groups: keptGroups() } },
      { control: 'placement', value: { namespaces: 'cell', cgroup: hasCgroups ? 'run' : 'none' } },
    ]
    expect(judge({ expectations: demands, posture: postures })).toEqual([])
    await guest.script('touch /tmp/seen', { atGate: () => undefined })
    await script
    expect(await guest.cell.posture({ kind: 'everything' })).toEqual([nothingElse])
  })
})

test('a cell that is closed has no posture', async () => {
  const posed = await poseCell()
  await posed[Symbol.asyncDispose]()
  await expect(posed.cell.posture({ kind: 'cell' })).rejects.toMatchObject({ code: 'broken' })
})
