import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { SandboxError } from '../../src/contract/errors.js'
import type { Json } from '../../src/contract/posture.js'
import type { Engine } from '../../src/engine/engine.js'
import { collect, rejectionOf } from './collect.js'
import { createPlainEngine, PlainDriver } from './plain-driver.js'
import { allowAll, answer, goodProgram, isolatingProbe, posture } from './postures.js'

let driver: PlainDriver
let engine: Engine

beforeEach(() => {
  driver = new PlainDriver()
  engine = createPlainEngine(driver, { filter: () => Promise.resolve(allowAll) })
})

afterEach(async () => {
  await engine[Symbol.asyncDispose]()
  expect(driver.openCells).toBe(0)
})

async function said(id: string, command: string): Promise<string> {
  return (await collect(await engine.start(id, { command }))).stdout
}

describe('a cell', () => {
  test('is looked at before anyone gets it, and its programs before they run', async () => {
    const asked = answer(driver)
    const { id } = await engine.create({})
    expect(asked).toEqual([{ kind: 'cell' }])
    expect(await said(id, 'echo one')).toBe('one\n')
    expect(await said(id, 'echo two')).toBe('two\n')
    expect(asked.slice(1, 3).map((subject) => subject.kind === 'program' && subject.depth)).toEqual(['full', 'short'])
  })

  test('that is not as demanded is closed before anyone gets it', async () => {
    answer(driver, ({ kind }) => (kind === 'cell' ? { namespaces: { net: 'host', pid: 'own' } } : {}))
    expect(await rejectionOf(engine.create({}))).toMatchObject({ code: 'not-enforced', message: 'namespaces of cell: net is host instead of own' })
    expect(driver.openCells).toBe(0)
  })

  test('of which nothing is told is not as demanded', async () => {
    answer(driver)
    driver.posture = () => Promise.resolve([])
    expect(await rejectionOf(engine.create({}))).toMatchObject({ code: 'not-enforced', message: 'namespaces of anything: was not observed' })
  })

  test('that isolates nothing is not looked at', async () => {
    answer(driver, () => ({ 'no-new-privs': false }))
    driver.probeResult = { ...isolatingProbe, isolates: false }
    const { id } = await engine.create({})
    expect(await said(id, 'echo one')).toBe('one\n')
  })

  test('is not looked at when the price of looking is measured', async () => {
    const asked = answer(driver, () => ({ 'no-new-privs': false }))
    const blind = createPlainEngine(driver, { filter: () => Promise.resolve(allowAll), inspect: false })
    const { id } = await blind.create({})
    expect((await collect(await blind.start(id, { command: 'exit 3' }))).outcome).toEqual({ kind: 'exited', code: 3 })
    expect(asked).toEqual([])
    await blind[Symbol.asyncDispose]()
  })
})

const planted: readonly (readonly [control: string, found: Json, message: string])[] = [
  ['ids', { uid: 99, gid: process.getgid?.() ?? 0, groups: [] }, `ids of pid 7: uid is 99 instead of ${process.getuid?.()}`],
  ['ids', { ...(goodProgram.ids as object), groups: [27] }, 'ids of pid 7: groups has 27 besides'],
  ['capabilities', { ...(goodProgram.capabilities as object), effective: '1' }, 'capabilities of pid 7: effective is 1 instead of 0'],
  ['capabilities', { ...(goodProgram.capabilities as object), bounding: '1ff' }, 'capabilities of pid 7: bounding is 1ff instead of 0'],
  ['no-new-privs', false, 'no-new-privs of pid 7: is false instead of true'],
  ['seccomp', { mode: 0, filters: 0 }, 'seccomp of pid 7: mode is 0 instead of 2; filters is 0 instead of 2'],
  ['filter', 'ff', expect.stringMatching(/^filter of pid 7: is ff instead of [0-9a-f]{64}$/) as never],
  ['placement', { namespaces: 'other net', cgroup: 'none' }, 'placement of pid 7: namespaces is other net instead of cell'],
  ['rlimits', { core: ['unlimited', 'unlimited'] }, expect.stringMatching(/^rlimits of pid 7: core .*unlimited/) as never],
  ['descriptors', [0, 1, 2, 9], 'descriptors of pid 7: has 9 besides'],
]

describe('a program', () => {
  test.each(planted)('whose %s is %j never runs, and its cell is closed', async (control, found, message) => {
    answer(driver, ({ kind }) => (kind === 'program' ? { [control]: found } : {}))
    const { id } = await engine.create({})
    const error = (await rejectionOf(engine.start(id, { command: 'touch ran' }))) as SandboxError
    expect([error.code, error.message]).toEqual(['not-enforced', message])
    expect(driver.openCells).toBe(0)
    expect(await rejectionOf(engine.info(id))).toMatchObject({ code: 'not-enforced' })
  })

  test('waits at its gate while it is looked at', async () => {
    answer(driver)
    const { id } = await engine.create({})
    const look = driver.posture
    let seen: string[] = []
    driver.posture = async (subject) => {
      await new Promise((resolve) => setTimeout(resolve, 100))
      seen = (await import('node:fs')).readdirSync(driver.cells[0]?.workdir ?? '')
      return look(subject)
    }
    await said(id, 'touch ran')
    expect([seen, await said(id, 'ls')]).toEqual([[], 'ran\n'])
  })

  test('whose limits another lowered is started again, and in the end that is told; the sandbox lives', async () => {
    let lowered = 3
    answer(driver, ({ kind }) => {
      if (kind !== 'program') return {}
      lowered -= 1
      return lowered < 0 ? {} : { rlimits: { ...(goodProgram.rlimits as object), files: [1, 4096] } }
    })
    const { id } = await engine.create({})
    expect(await said(id, 'echo one')).toBe('one\n')
    lowered = 100
    expect(await rejectionOf(engine.start(id, { command: 'touch ran' }))).toMatchObject({ code: 'conflict', message: expect.stringContaining('lowered') })
    lowered = 0
    expect(await said(id, 'ls')).toBe('')
  })

  test('whose limits are partly lower and partly higher is not as demanded', async () => {
    answer(driver, ({ kind }) => (kind === 'program' ? { rlimits: { ...(goodProgram.rlimits as object), files: [1, 4097] } } : {}))
    const { id } = await engine.create({})
    expect(await rejectionOf(engine.start(id, { command: 'true' }))).toMatchObject({ code: 'not-enforced', message: expect.stringContaining('files') })
  })

  test('that vanished at its gate breaks its cell', async () => {
    answer(driver)
    const { id } = await engine.create({})
    driver.posture = () => Promise.reject(new Error('it is gone'))
    expect(await rejectionOf(engine.start(id, { command: 'touch ran' }))).toMatchObject({
      code: 'broken',
      message: `the cell of sandbox ${id} ended: it is gone`,
    })
  })

  test('what is only asserted of it is no mismatch', async () => {
    answer(driver)
    const { id } = await engine.create({})
    const look = driver.posture
    driver.posture = async (subject) =>
      (await look(subject)).map(({ observations, ...rest }) => ({
        ...rest,
        observations: observations.map((each) => (each.control === 'filter' ? { ...each, value: null, evidence: 'asserted' as const } : each)),
      }))
    expect(await said(id, 'echo one')).toBe('one\n')
  })
})

describe('a receipt', () => {
  test('looks at the cell and at every process again', async () => {
    const asked = answer(driver)
    const { id } = await engine.create({ name: 'audited' })
    await said(id, 'echo one')
    const receipt = await engine.receipt(id)
    expect(asked.map(({ kind }) => kind)).toEqual(['cell', 'program', 'cell', 'everything'])
    expect(receipt).toMatchObject({
      sandbox: { id, name: 'audited' },
      glovebox: '0.0.0',
      inspected: { processes: 1, threads: 1, complete: true },
      usage: { runs: 1 },
    })
    const proven = receipt.controls.filter(({ subject, verdict }) => subject === 'run 1' && verdict === 'proven').map(({ control }) => control)
    expect(proven.sort()).toEqual(['capabilities', 'descriptors', 'filter', 'ids', 'no-new-privs', 'placement', 'rlimits', 'seccomp'])
  })

  test.each([
    ['cell', { namespaces: { net: 'host', pid: 'own' } }, 'namespaces of cell: net is host instead of own'],
    ['everything', { 'no-new-privs': false }, 'no-new-privs of pid 7: is false instead of true'],
    ['everything', { seccomp: { mode: 2, filters: 1 } }, 'seccomp of pid 7: filters is 1 instead of 2'],
    ['everything', { capabilities: { effective: '2' } }, expect.stringContaining('capabilities of pid 7: effective is 2 instead of 0')],
    ['everything', { ids: { uid: 12_345, gid: 0, groups: [] } }, expect.stringContaining('ids of pid 7: uid is 12345')],
  ])('of a sandbox that is not as demanded any more (%s, %j) is none: it is closed', async (kind, found, message) => {
    let isChanged = false
    answer(driver, (subject) => (isChanged && subject.kind === kind ? (found as Readonly<Record<string, Json>>) : {}))
    const { id } = await engine.create({})
    isChanged = true
    expect(await rejectionOf(engine.receipt(id))).toMatchObject({ code: 'not-enforced', message })
    expect(driver.openCells).toBe(0)
    expect(await rejectionOf(engine.start(id, { command: 'true' }))).toMatchObject({ code: 'not-enforced' })
  })

  test('is given of programs that have narrowed themselves', async () => {
    answer(driver, ({ kind }) => (kind === 'everything' ? { seccomp: { mode: 2, filters: 5 }, rlimits: { files: [3, 3] } } : {}))
    const { id } = await engine.create({})
    expect((await engine.receipt(id)).inspected).toEqual({ processes: 1, threads: 1, complete: true })
  })

  test('counts threads apart from processes', async () => {
    answer(driver)
    const { id } = await engine.create({})
    const look = driver.posture
    driver.posture = async (subject) =>
      subject.kind === 'everything' ? ['pid 7', 'pid 7 thread 8', 'pid 9 thread 11'].map((name) => posture(name, goodProgram)) : look(subject)
    expect((await engine.receipt(id)).inspected).toEqual({ processes: 2, threads: 3, complete: false })
  })

  test('tells of a driver that isolates nothing what it does not enforce', async () => {
    const plain = createPlainEngine(driver)
    const { id } = await plain.create({})
    await collect(await plain.start(id, { command: 'exit 4', env: { SECRET: 'never-told' } }))
    const receipt = await plain.receipt(id)
    expect(receipt.runs).toMatchObject([{ number: 1, posture: 'none', outcome: { kind: 'exited', code: 4 } }])
    expect(receipt.runs[0]?.environment).toContain('SECRET')
    expect(JSON.stringify(receipt)).not.toContain('never-told')
    expect(receipt.controls.find(({ control }) => control === 'limit.memory')).toMatchObject({
      enforced: null,
      verdict: 'not-enforced',
      why: 'there are no walls',
    })
    await plain[Symbol.asyncDispose]()
  })

  test('keeps the latest hundred runs and counts all', async () => {
    const plain = createPlainEngine(driver)
    const { id } = await plain.create({})
    for (let n = 0; n < 103; n += 1) await collect(await plain.start(id, { command: ['true'] }))
    const { runs, usage } = await plain.receipt(id)
    expect([runs.length, runs[0]?.number, runs.at(-1)?.number, usage.runs]).toEqual([100, 4, 103, 103])
    await plain[Symbol.asyncDispose]()
  })
})
