import { expect, test } from 'vitest'
import { type Answer, json } from '../../src/server/answers.js'
import { Idempotency } from '../../src/server/idempotency.js'

test('many keys of one tenant make those of another neither forgotten nor made twice', async () => {
  const kept = new Idempotency()
  let made = 0
  const run = (tenant: string, key: string): Promise<Answer> =>
    kept.run({ tenant, key, asked: 'the same', isSecret: false }, () => Promise.resolve(json((made += 1))))
  const first = await run('quiet', 'mine')
  for (let count = 0; count < 20_000; count += 1) await run('noisy', `key-${count}`)
  expect(await run('quiet', 'mine')).toBe(first)
  expect(made).toBe(20_001)
})
