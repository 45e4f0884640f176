// A one-shot that is to begin only once something else has come about: everything is found for it meanwhile, and nothing of it runs before.
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { createPlatform } from '../../src/index.js'
import type { Fresh } from '../../src/contract/pools.js'
import type { SpecInput } from '../../src/contract/spec.js'
import { collect } from './collect.js'

const command = ['/bin/date', '+%s%N']

describe.each<Fresh>(['liner', 'cell'])('a one-shot in a fresh %s', (fresh) => {
  test('runs after what it is to run after, also when a place for it waits already', async () => {
    await using platform = createPlatform()
    for (let round = 0; round < 3; round++) {
      let fulfilledAt = Infinity
      const after = sleep(50).then(() => {
        fulfilledAt = Date.now()
      })
      const shot = await platform.pools.run({ spec: {} }, { command, output: {} }, { fresh, after })
      const { stdout } = await collect(shot.program)
      await shot.release()
      expect(Number(BigInt(stdout.trim()) / 1_000_000n)).toBeGreaterThanOrEqual(fulfilledAt)
    }
  })

  test('without a network it begins after what is for those that are confined, with one after what is for all', async () => {
    await using platform = createPlatform()
    let isOnDisk = false
    const after = sleep(400).then(() => {
      isOnDisk = true
    })
    const call = { fresh, after, afterIfConfined: Promise.resolve() }
    const begin = async (spec: SpecInput): Promise<boolean> => {
      const shot = await platform.pools.run({ spec }, { command, output: {} }, call)
      const wasOnDisk = isOnDisk
      await collect(shot.program)
      await shot.release()
      return wasOnDisk
    }
    await platform.pools.run({ spec: {} }, { command, output: {} }, { fresh }).then((shot) => shot.release())
    const [confined, connected] = await Promise.all([begin({}), begin({ network: { allow: [] } })])
    expect({ confined, connected }).toEqual({ confined: fresh === 'cell', connected: true })
  })

  test('never runs when that fails, which is then its answer, and the next one does', async () => {
    await using platform = createPlatform()
    const refusal = new Error('it could not be written down')
    for (let round = 0; round < 3; round++) {
      await expect(platform.pools.run({ spec: {} }, { command, output: {} }, { fresh, after: Promise.reject(refusal) })).rejects.toBe(refusal)
      const shot = await platform.pools.run({ spec: {} }, { command, output: {} }, { fresh })
      expect((await collect(shot.program)).stdout).toMatch(/^\d+\n$/)
      await shot.release()
    }
  })
})
