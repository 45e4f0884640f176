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

test('what has a long answer is done once, and told to those who waited for it', async () => {
  const kept = new Idempotency()
  let made = 0
  const run = (): Promise<Answer> => {
    const make = (): Promise<Answer> => Promise.resolve(json({ count: (made += 1), text: 'x'.repeat(70_000) }))
    return kept.run({ tenant: 'red', key: 'one', asked: 'the same', isSecret: false }, make)
  }
  const [first, second] = await Promise.all([run(), run()])
  expect([first === second, made]).toEqual([true, 1])
  await expect(run()).rejects.toMatchObject({ code: 'conflict' })
  expect(made).toBe(1)
})
