import { expect, test } from 'vitest'
import { timerLength } from '../../src/contract/timer-length.js'

test('a wait of up to a second is one timer', () => {
  for (const restMs of [-3, 0, 0.5, 1, 999.9, 1024]) expect(timerLength(restMs)).toBe(restMs)
})

test('longer ones have few lengths, however many there are', () => {
  const lengths = new Set(Array.from({ length: 200_000 }, (_, index) => timerLength(1025 + index * 18.01)))
  expect(lengths.size).toBeLessThanOrEqual(4 * 12)
})

test('a wait is over after few timers and exactly its time', () => {
  for (const restMs of [1025, 60_000, 299_999.7, 3_600_000, 2 ** 30]) {
    let left = restMs
    let timers = 0
    for (; left > 0; timers += 1) left -= timerLength(left)
    expect(left).toBe(0)
    expect(timers).toBeLessThanOrEqual(12)
  }
})

test('none is longer than Node can wait', () => {
  expect(timerLength(2 ** 40)).toBe(2 ** 30)
})
