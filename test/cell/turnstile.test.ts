import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createTurnstile } from '../../src/cell/turnstile.js'

test('so many go on at once and the others follow in their order, also after one that fails', async () => {
  const inTurn = createTurnstile(2)
  const told: string[] = []
  let going = 0
  let most = 0
  const act = (name: number) => async (): Promise<number> => {
    going += 1
    most = Math.max(most, going)
    told.push(`begins ${name}`)
    await turn()
    going -= 1
    if (name === 1) throw new Error('one fails')
    return name
  }
  const results = await Promise.allSettled([0, 1, 2, 3, 4].map((name) => inTurn(act(name))))
  expect(results.map((result) => (result.status === 'fulfilled' ? result.value : 'failed'))).toEqual([0, 'failed', 2, 3, 4])
  expect([most, told]).toEqual([2, [0, 1, 2, 3, 4].map((name) => `begins ${name}`)])
  expect(await inTurn(() => Promise.resolve('later'))).toBe('later')
})
