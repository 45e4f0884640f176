import { describe, expect, test } from 'vitest'
import { SandboxError } from '../../src/contract/errors.js'
import { sampleInterleaved, sampleSeries } from '../../src/bench/sampling.js'
import { measureThroughput } from '../../src/bench/throughput.js'

const { signal } = new AbortController()

function noting(notes: string[], name: string, failAt = Number.POSITIVE_INFINITY) {
  let calls = 0
  const run = (): Promise<void> => {
    calls += 1
    notes.push(name)
    return calls >= failAt ? Promise.reject(new Error(`${name} broke`)) : Promise.resolve()
  }
  return { name, run }
}

describe('samples', () => {
  test('are taken in turns that begin with another each round, warm-ups not counted', async () => {
    const notes: string[] = []
    const { rows, missing } = await sampleInterleaved([noting(notes, 'a'), noting(notes, 'b')], { rounds: 2, warmups: 1, signal })
    expect(notes.join('')).toBe('baabba')
    expect(rows.map(({ name, samples }) => [name, samples])).toEqual([
      ['a', 2],
      ['b', 2],
    ])
    expect(missing).toEqual([])
  })

  test('of one that fails are left out and told with the reason; the others go on', async () => {
    const notes: string[] = []
    const { rows, missing } = await sampleInterleaved([noting(notes, 'a'), noting(notes, 'b', 2), noting(notes, 'c')], { rounds: 3, warmups: 0, signal })
    expect(rows.map(({ name, samples }) => [name, samples])).toEqual([
      ['a', 3],
      ['c', 3],
    ])
    expect(missing).toEqual([{ name: 'b', why: 'b broke' }])
  })

  test('without the first, which all are compared with, are none', async () => {
    await expect(sampleInterleaved([noting([], 'a', 1), noting([], 'b')], { rounds: 2, signal })).rejects.toThrow('a broke')
  })

  test('say when something cannot be had, which is no failure', async () => {
    const unsupported = { name: 'b', run: () => Promise.reject(new SandboxError('unsupported', 'no liners')) }
    const { missing } = await sampleInterleaved([noting([], 'a'), unsupported], { rounds: 1, signal })
    expect(missing).toEqual([{ name: 'b', why: 'no liners', isUnsupported: true }])
  })

  test('stop when they are called off', async () => {
    const stop = new AbortController()
    const notes: string[] = []
    const stopping = { name: 'b', run: () => Promise.resolve(stop.abort(new Error('enough'))) }
    await expect(sampleInterleaved([noting(notes, 'a'), stopping], { rounds: 9, warmups: 0, signal: stop.signal })).rejects.toThrow('enough')
    expect(notes).toEqual(['a'])
  })

  test('do not count what follows one', async () => {
    const order: string[] = []
    const subject = {
      name: 'a',
      run: () => Promise.resolve(order.push('run')),
      after: (result: unknown) => Promise.resolve(order.push(`after ${String(result)}`)),
    }
    await sampleInterleaved([subject], { rounds: 1, warmups: 0, signal })
    expect(order).toEqual(['run', 'after 1'])
  })

  test('of series are means of as many calls', async () => {
    const notes: string[] = []
    const { rows } = await sampleSeries([noting(notes, 'a')], { rounds: 2, length: 5, signal })
    expect([rows[0]?.name, rows[0]?.samples, notes.length]).toEqual(['a, 5 in a row', 2, 15])
  })
})

describe('throughput', () => {
  test('has as many callers at once as it says, and never more', async () => {
    let now = 0
    let most = 0
    const run = async (): Promise<void> => {
      most = Math.max(most, ++now)
      await new Promise((resolve) => setTimeout(resolve, 2))
      now -= 1
    }
    const { figures, perSecond } = await measureThroughput([{ name: 'a', run }], { concurrency: 4, rounds: 1, sliceMs: 30, signal })
    expect(most).toBe(4)
    expect(figures.map(({ name, unit }) => [name, unit])).toEqual([['a, 4 at once', 'runs/s']])
    expect(perSecond.get('a')).toBeGreaterThan(0)
  })

  test('is paid for what has to be put back afterwards', async () => {
    const run = () => new Promise((resolve) => setTimeout(resolve, 1))
    const after = () => new Promise((resolve) => setTimeout(resolve, 400))
    const { perSecond } = await measureThroughput([{ name: 'a', run, after }], { concurrency: 1, rounds: 1, sliceMs: 20, signal })
    // Twenty at most, in no less than 420 ms; a slice that ended before it would tell of many hundred.
    expect(perSecond.get('a')).toBeLessThan(60)
  })

  test('of one that fails is told with the reason; the others go on', async () => {
    const steady = { name: 'b', run: () => new Promise((resolve) => setTimeout(resolve, 1)) }
    const { perSecond, missing } = await measureThroughput([noting([], 'a', 3), steady], { concurrency: 2, rounds: 1, sliceMs: 10, signal })
    expect([...perSecond.keys()]).toEqual(['b'])
    expect(missing).toEqual([{ name: 'a, 2 at once', why: 'a broke' }])
  })
})
