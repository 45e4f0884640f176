import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { percentile, summarise, withRatios } from '../../src/bench/statistics.js'
import { row } from './report.js'

describe('percentiles', () => {
  test('of a hundred samples are the 51st, the 96th and the 100th', () => {
    const samples = Array.from({ length: 100 }, (_, index) => index + 1)
    expect(summarise('a', [...samples].reverse())).toEqual({ name: 'a', samples: 100, p50: 51, p95: 96, p99: 100 })
  })

  test('of one sample are that sample, of none are no number', () => {
    expect(summarise('a', [7])).toEqual({ name: 'a', samples: 1, p50: 7, p95: 7, p99: 7 })
    expect(percentile([], 0.5)).toBeNaN()
  })

  test('are samples that were taken, and never fall as the share grows', () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0, max: 1e6, noNaN: true }), { minLength: 1 }), (samples) => {
        const { p50, p95, p99 } = summarise('a', samples)
        expect(samples).toEqual(expect.arrayContaining([p50, p95, p99]))
        expect(p50 <= p95 && p95 <= p99).toBe(true)
      }),
    )
  })
})

test('ratios are those of the medians to the first', () => {
  expect(withRatios([row('plain', 4), row('ours', 2), row('other', 10)]).map(({ ratio }) => ratio)).toEqual([1, 0.5, 2.5])
  expect(withRatios([])).toEqual([])
})
