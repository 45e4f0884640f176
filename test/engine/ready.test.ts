import { execFileSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Engine } from '../../src/engine/engine.js'
import { collect, rejectionOf } from './collect.js'
import { createPlainEngine, PlainDriver } from './plain-driver.js'
import { allowAll, answer } from './postures.js'
import { childrenOf, waitUntil } from './processes.js'

let driver: PlainDriver
let engine: Engine
let id: string
let asked: ReturnType<typeof answer>

beforeEach(async () => {
  driver = new PlainDriver()
  engine = createPlainEngine(driver, { filter: () => Promise.resolve(allowAll) })
  asked = answer(driver)
  id = (await engine.create({})).id
})

afterEach(async () => {
  await engine[Symbol.asyncDispose]()
  expect([driver.openCells, driver.cells[0]?.openRuns]).toEqual([0, 0])
})

const said = async (command: string, more: object = {}): Promise<string> => (await collect(await engine.start(id, { command, ...more }))).stdout
const looks = (): number => asked.filter(({ kind }) => kind === 'program').length
/** Programs that wait at their gate, seen from outside: children of keepers. */
const waiting = (): number[] => childrenOf(driver.cells[0]?.child.pid as number).flatMap(childrenOf)

const isLookedAt = (wanted?: number): boolean => wanted !== undefined && asked.some((subject) => subject.kind === 'program' && subject.pid === wanted)

/** Two of a kind, so that a third is ready. */
async function warmUp(more: object = {}): Promise<number> {
  await said('true', more)
  await said('true', more)
  await waitUntil(() => waiting().length === 1 && isLookedAt(waiting()[0]))
  return waiting()[0] as number
}

describe('the next program', () => {
  test('is ready once two of its kind were run, and is the one that runs', async () => {
    const pid = await warmUp()
    const before = looks()
    expect(await said('echo $$')).toBe(`${pid}\n`)
    await waitUntil(() => looks() === before + 1)
  })

  test('is counted from when it becomes a program: what others met while it waited is not of it', async () => {
    await warmUp()
    const counted = (): number | undefined => driver.cells[0]?.countedAnew
    // The first of the sandbox was made ready too.
    expect(counted()).toBe(1)
    await said('true')
    expect(counted()).toBe(2)
  })

  test('is not made for a single one', async () => {
    await said('true')
    await sleep(100)
    expect([looks(), waiting()]).toEqual([1, []])
  })

  test('has the folder, the arguments and the environment of its own call', async () => {
    await warmUp()
    await said('mkdir sub')
    await warmUp()
    const cwd = `${driver.cells[0]?.workdir}/sub`
    expect(await said('pwd -P; echo $OWN', { cwd, env: { OWN: 'yes' } })).toMatch(/\/sub\nyes\n$/)
    await warmUp()
    expect(await rejectionOf(engine.start(id, { command: 'true', cwd: '/nowhere' }))).toMatchObject({ code: 'invalid' })
    await warmUp()
    const unknown = await engine.start(id, { command: ['no-such-program'] })
    expect((await unknown.ended).outcome.kind).toBe('not-started')
    expect(await said('echo next')).toBe('next\n')
  })

  test('of another kind is made anew, and then that kind is ready', async () => {
    const pid = await warmUp()
    const fed = async (): Promise<string> => {
      const program = await engine.start(id, { command: 'echo $$; cat', stdin: true })
      await program.write(Buffer.from('fed'))
      await program.endInput()
      return (await collect(program)).stdout
    }
    expect(await fed()).not.toBe(`${pid}\nfed`)
    // One that has ended is there for a moment longer.
    await waitUntil(() => waiting().length === 1 && waiting()[0] === pid)
    await fed()
    await waitUntil(() => waiting().length === 1 && waiting()[0] !== pid)
    const [other] = waiting()
    expect(await fed()).toBe(`${other}\nfed`)
  })

  test('that was killed, or is told more than it can be, is made anew', async () => {
    process.kill(await warmUp(), 'SIGKILL')
    await waitUntil(() => waiting().length === 0)
    expect(await said('echo anew')).toBe('anew\n')
    const pid = await warmUp()
    expect(await said('echo ${#BIG}', { env: { BIG: 'x'.repeat(40_000) } })).toBe('40000\n')
    await waitUntil(() => waiting()[0] !== pid)
  })

  test('that was stopped goes on when it is released', async () => {
    const pid = await warmUp()
    process.kill(pid, 'SIGSTOP')
    expect(await said('echo $$')).toBe(`${pid}\n`)
  })

  test('whose limits another lowered is made anew', async () => {
    const pid = await warmUp()
    execFileSync('prlimit', ['--nofile=9:9', '--pid', `${pid}`])
    expect(await said('echo $$ $(ulimit -n)')).not.toMatch(new RegExp(`^${pid} |9$`))
  })

  test('that is not as demanded ends its sandbox before anything runs', async () => {
    await said('true')
    // Nothing of the first is still to be done.
    await sleep(10)
    const look = driver.posture
    let count = 0
    driver.posture = async (subject) => {
      count += 1
      return count < 2 ? look(subject) : (await look(subject)).map(({ subject: who }) => ({ subject: who, observations: [] }))
    }
    await said('true')
    const ran: string[] = []
    const running = async (): Promise<void> => {
      for (;;) ran.push(await said('echo ran'))
    }
    expect(await rejectionOf(running())).toMatchObject({ code: 'not-enforced', message: expect.stringContaining('was not observed') })
    expect([ran, count > 1]).toEqual([[], true])
  })

  test('is none while a receipt is written, and is told as a run once it is one', async () => {
    const pid = await warmUp()
    const { controls, usage } = await engine.receipt(id)
    expect(waiting()).toEqual([])
    expect([usage.runs, controls.filter(({ subject }) => subject === 'run 3').length]).toEqual([2, 0])
    const next = await warmUp()
    expect(next).not.toBe(pid)
    await said('true')
    const proven = (await engine.receipt(id)).controls
      .filter(({ subject, verdict }) => subject === 'run 5' && verdict === 'proven')
      .map(({ control }) => control)
    expect(proven.sort()).toEqual(['capabilities', 'ids', 'no-new-privs', 'placement', 'rlimits', 'seccomp'])
  })

  /** Made, but never to become ready: as if another of its id had stopped it on its way. */
  async function stall(): Promise<number> {
    await warmUp()
    const look = driver.posture
    const stalled = new Promise<number>((resolve) => {
      driver.posture = (subject) => {
        if (subject.kind !== 'program') return look(subject)
        resolve(subject.pid)
        return new Promise(() => {})
      }
    })
    await said('true')
    const pid = await stalled
    driver.posture = look
    return pid
  }

  test('that never becomes ready keeps neither a run, nor a receipt, nor a pause waiting, and is not left behind', async () => {
    const pid = await stall()
    expect(await said('echo $$')).not.toBe(`${pid}\n`)
    await waitUntil(() => !waiting().includes(pid))
    await stall()
    await engine.receipt(id)
    expect(waiting()).toEqual([])
    await stall()
    await engine.life.pause(id)
    expect(waiting()).toEqual([])
    await engine.life.resume(id)
    expect(await said('echo on')).toBe('on\n')
  })

  test('does not wait over a pause', async () => {
    await warmUp()
    await engine.life.pause(id)
    expect(waiting()).toEqual([])
    await engine.life.resume(id)
    expect(await said('echo on')).toBe('on\n')
  })

  test('is held to the signal and the time of its call', async () => {
    await warmUp()
    const reason = new Error('enough')
    expect(await rejectionOf(engine.start(id, { command: 'true' }, { signal: AbortSignal.abort(reason) }))).toBe(reason)
    expect(await said('echo after')).toBe('after\n')
    await warmUp()
    expect((await collect(await engine.start(id, { command: 'sleep 20', timeout: '200ms' }))).outcome).toMatchObject({ kind: 'timed-out', by: 'wall' })
  })
})
