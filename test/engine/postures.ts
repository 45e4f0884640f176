import { createHash } from 'node:crypto'
import type { PostureSubject, Probe } from '../../src/contract/driver.js'
import type { Expectation, Json, Observation, Posture } from '../../src/contract/posture.js'
import { type PlainDriver, plainProbe } from './plain-driver.js'

/** Lets everything pass; one instruction. */
export const allowAll = new Uint8Array([0x06, 0, 0, 0, 0, 0, 0xff, 0x7f])

export const isolatingProbe: Probe = { ...plainProbe, isolates: true, filtersSyscalls: true }

const [uid, gid] = [process.getuid?.() ?? 0, process.getgid?.() ?? 0]
const none = { effective: '0', permitted: '0', inheritable: '0', bounding: '0', ambient: '0' }

const goodCell: Readonly<Record<string, Json>> = {
  namespaces: { net: 'own', pid: 'own' },
  warden: { filters: 1, seccomp: 2, cgroup: 'none' },
}

export const goodProgram: Readonly<Record<string, Json>> = {
  ids: { uid, gid, groups: [] },
  capabilities: none,
  'no-new-privs': true,
  seccomp: { mode: 2, filters: 2 },
  placement: { namespaces: 'cell', cgroup: 'none' },
  rlimits: { core: [0, 0], files: [1024, 4096], fileSize: [104_861_696, 104_861_696], cpu: ['unlimited', 'unlimited'] },
}

const fullProgram: Readonly<Record<string, Json>> = {
  ...goodProgram,
  filter: createHash('sha256').update(allowAll).digest('hex'),
  descriptors: [0, 1, 2],
}

const cellExpectations: readonly Expectation[] = [{ control: 'namespaces', value: { net: 'own', pid: 'own' } }]

export function posture(subject: string, values: Readonly<Record<string, Json>>, evidence: Observation['evidence'] = 'kernel'): Posture {
  return { subject, observations: Object.entries(values).map(([control, value]) => ({ control, value, evidence, source: 'a test' })) }
}

/** What a kernel would say of a cell that is as it should be, but for what is changed; every question is kept. */
export function answer(driver: PlainDriver, change: (subject: PostureSubject) => Readonly<Record<string, Json>> = () => ({})): PostureSubject[] {
  const asked: PostureSubject[] = []
  driver.probeResult = isolatingProbe
  driver.expects = cellExpectations
  driver.posture = (subject) => {
    asked.push(subject)
    const values = subject.kind === 'cell' ? goodCell : subject.kind === 'program' && subject.depth === 'full' ? fullProgram : goodProgram
    const found = posture(subject.kind === 'cell' ? 'cell' : 'pid 7', { ...values, ...change(subject) })
    return Promise.resolve(subject.kind === 'everything' ? [found, posture('cell', { complete: true })] : [found])
  }
  return asked
}
