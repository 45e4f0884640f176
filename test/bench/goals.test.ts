import { describe, expect, test } from 'vitest'
import { atLeast, atMost, ratioOf } from '../../src/bench/goals.js'
import { missedGoals } from '../../src/bench/report.js'
import { report, row, table } from './report.js'

describe('a goal', () => {
  test('is met at its bound and missed beyond it', () => {
    expect([2, 2.01].map((measured) => atMost('a', measured, 2).state)).toEqual(['met', 'missed'])
    expect([0.7, 0.69].map((measured) => atLeast('a', measured, 0.7).state)).toEqual(['met', 'missed'])
  })

  test('is missed by what is no number', () => {
    expect([atMost('a', Number.NaN, 2).state, atLeast('a', Number.NaN, 2).state]).toEqual(['missed', 'missed'])
  })

  test('is missed when ours failed, and not measured when the other is absent', () => {
    expect(atMost('a', { failed: 'it broke' }, 2)).toEqual({ text: 'a', state: 'missed', why: 'it broke' })
    expect(atMost('a', { absent: 'not here' }, 2)).toEqual({ text: 'a', state: 'unmeasured', why: 'not here' })
  })

  test('that is missed is found in the report, whatever table it is in', () => {
    const [met, missed, absent] = [atMost('a', 1, 2), atMost('b', 3, 2), atMost('c', { absent: 'no' }, 2)]
    expect(missedGoals(report(table({ goals: [met, absent] }), table({ goals: [missed] })))).toEqual([missed])
    expect(missedGoals(report(table({ goals: [met, absent] })))).toEqual([])
  })
})

describe('a ratio', () => {
  const rows = [row('plain', 4), row('ours', 2, { p95: 20 })]

  test('is of the medians, or of the 95th percentiles', () => {
    expect(ratioOf({ rows, ours: 'ours', beside: 'plain' })).toBe(0.5)
    expect(ratioOf({ rows, ours: 'ours', beside: 'plain', at: 'p95' })).toBe(2.5)
  })

  test('without our row is a failure, without the other an absence', () => {
    expect(ratioOf({ rows, ours: 'gone', beside: 'plain' })).toEqual({ failed: 'gone was not measured' })
    expect(ratioOf({ rows, ours: 'ours', beside: 'docker' })).toEqual({ absent: 'docker was not measured' })
  })
})
