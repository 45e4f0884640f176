/** Requests made of the description by a generator with a seed, sent as decent programs send them and as others do. */
import { readdirSync } from 'node:fs'
import { Agent } from 'node:http'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { type Manner, mannerNames, sendIn } from './fuzz-sending.js'
import { RequestMaker } from './fuzz-requests.js'
import { type OwnServer, ownServer, plain } from './own-server.js'
import { isDeep, randomOf, seed } from './random.js'

const total = isDeep ? 10_000 : 1000
const rounds = 10
const atOnce = 32
/** Of the others each has as much as the rest leaves. */
const plainShare = 0.75

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

class Fuzzing {
  readonly statuses = new Map<string, number>()
  readonly failures: string[] = []
  readonly #own: OwnServer
  readonly #maker = new RequestMaker(randomOf(seed))
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 2 * atOnce })

  constructor(own: OwnServer) {
    this.#own = own
  }

  /** Each with a sandbox and a key that hold at its beginning; what was made is gone at its end. */
  async round(count: number): Promise<void> {
    const key = await this.#own.key('red', 'admin')
    await using client = this.#own.client(key)
    const { id } = await client.create(plain)
    let begun = 0
    const lane = async (): Promise<void> => {
      while (begun++ < count) await this.#one(id, key)
    }
    await Promise.all(Array.from({ length: atOnce }, lane))
    const fresh = await this.#own.key('red', 'admin')
    await using sweeper = this.#own.client(fresh)
    await sweeper.closeAll()
    const pools = (await this.#own.ask('/v1/pools?limit=1000', { key: fresh })).json().items as { id: string }[]
    for (const { id: pool } of pools) await sweeper.pools.close(pool)
  }

  count(status: number): number {
    return mannerNames.reduce((sum, manner) => sum + (this.statuses.get(`${manner} ${status}`) ?? 0), 0)
  }

  end(): void {
    this.#agent.destroy()
  }

  async #one(id: string, key: string): Promise<void> {
    const maker = this.#maker
    const manner: Manner = maker.chance(plainShare) ? 'plain' : maker.pick(mannerNames)
    const wanted = maker.make({ id, key })
    const target = { port: this.#own.port, agent: this.#agent }
    for (const { status, text } of await sendIn(manner, { wanted, target, maker })) {
      this.statuses.set(`${manner} ${status}`, (this.statuses.get(`${manner} ${status}`) ?? 0) + 1)
      maker.learn(text)
      // That a driver without walls cannot do something is an answer, and the right one.
      if (status < 500 || (status === 501 && (text === '' || text.includes('"unsupported"')))) continue
      const defect = this.#own.lines.findLast((line) => line.defect)?.defect
      this.failures.push(`${manner} ${status} ${wanted.method} ${wanted.target} ${wanted.body?.slice(0, 300)} ${text.slice(0, 300)} ${defect}`)
    }
  }
}

function heapBytes(): number {
  collect()
  return process.memoryUsage().heapUsed
}

const descriptors = (): number => readdirSync('/proc/self/fd').length

test(`S-04 ${total} requests, malformed, oversized, slow, duplicated and out of order: nothing fails on our side, and nothing grows`, {
  timeout: 900_000,
}, async () => {
  await using own = await ownServer({ bounds: { mostJsonBytes: 1 << 18, idleMs: 500 } })
  const fuzzing = new Fuzzing(own)
  console.info(`seed ${seed}`)
  const each = Math.ceil(total / rounds)
  await fuzzing.round(each)
  await fuzzing.round(each)
  own.lines.length = 0
  const before = { heap: heapBytes(), descriptors: descriptors() }
  for (let round = 2; round < rounds; round += 1) {
    await fuzzing.round(each)
    expect(fuzzing.failures, `seed ${seed}`).toEqual([])
    own.lines.length = 0
  }
  fuzzing.end()
  const least = [200, 400, 401, 404, 431, ...(isDeep ? [408, 413, 415] : [])].map((status) => [status, fuzzing.count(status) > 0])
  expect([least.filter(([, isMet]) => !isMet), fuzzing.count(200) > total / 50]).toEqual([[], true])
  await expect.poll(() => own.server.connections).toBe(0)
  await expect.poll(() => descriptors() - before.descriptors).toBeLessThanOrEqual(8)
  await expect.poll(() => Math.round((heapBytes() - before.heap) / 2 ** 20), { message: `MiB more than after ${2 * each}; seed ${seed}` }).toBeLessThan(16)
  expect((await own.ask('/v1/health')).status).toBe(200)
})
