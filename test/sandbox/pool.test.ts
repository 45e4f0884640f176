// Pools and one-shots as users of the library hold them, on a driver without walls: what walls change is in pool-bwrap.test.ts.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createPlatform } from '../../src/compose.js'
import type { SandboxError } from '../../src/contract/errors.js'
import type { Platform } from '../../src/contract/platform.js'
import { Sandbox, SandboxPool } from '../../src/sandbox/index.js'

const timeout = 60_000
const plain = { driver: 'fake', minTier: 'none' } as const
let platform: Platform

beforeAll(() => {
  platform = createPlatform()
})
afterAll(() => platform[Symbol.asyncDispose]())

const rejectionOf = (promise: PromiseLike<unknown>): Promise<SandboxError> =>
  Promise.resolve(promise).then(
    () => Promise.reject(new Error('it resolved')),
    (error: SandboxError) => error,
  )

async function ids(): Promise<string[]> {
  const found: string[] = []
  for await (const { id } of platform.list()) found.push(id)
  return found
}

describe('Sandbox.run', { timeout }, () => {
  const options = () => ({ sandbox: plain, platform })

  test('gives what a run gives, and its sandbox is gone', async () => {
    const { stdout, stderr, exitCode, driver, receipt } = await Sandbox.run('echo out; echo err >&2; exit 3', options())
    expect({ stdout, stderr, exitCode, driver, receipt }).toEqual({ stdout: 'out\n', stderr: 'err\n', exitCode: 3, driver: 'fake', receipt: undefined })
    expect(await ids()).toEqual([])
  })

  test('is fed, is iterated, and has a receipt when one is asked for', async () => {
    expect((await Sandbox.run(['cat'], { ...options(), stdin: 'fed' })).stdout).toBe('fed')
    const types: string[] = []
    for await (const event of Sandbox.run('echo one; exit 4', { ...options(), receipt: true })) {
      types.push(event.type)
      if (event.type === 'exit') expect([event.exitCode, event.receipt?.fresh, event.receipt?.runs.length]).toEqual([4, 'cell', 1])
    }
    expect(types).toEqual(['stdout', 'exit'])
    const { receipt } = await Sandbox.run(['true'], { ...options(), receipt: true })
    expect(receipt?.runs[0]?.outcome).toEqual({ kind: 'exited', code: 0 })
    expect(await ids()).toEqual([])
  })

  test('left early leaves nothing', async () => {
    for await (const _ of Sandbox.run('yes', options())) break
    expect(await ids()).toEqual([])
  })

  test('called off while it runs leaves nothing, awaited or iterated', async () => {
    const iterated = new AbortController()
    const read = async (): Promise<void> => {
      for await (const _ of Sandbox.run('echo started; sleep 600', { ...options(), signal: iterated.signal })) iterated.abort(new Error('enough'))
    }
    expect((await rejectionOf(read())).message).toBe('enough')
    const awaited = new AbortController()
    const run = Sandbox.run('sleep 600', { ...options(), signal: awaited.signal })
    await expect.poll(ids).toHaveLength(1)
    awaited.abort(new Error('enough'))
    expect((await rejectionOf(run)).message).toBe('enough')
    await expect.poll(ids).toEqual([])
  })

  test('that fails to start tells why and leaves nothing', async () => {
    expect((await rejectionOf(Sandbox.run('true', { ...options(), cwd: '/nowhere' }))).code).toBe('invalid')
    expect((await Sandbox.run(['no-such-program'], options())).outcome).toMatchObject({ kind: 'not-started', code: 127 })
    expect((await rejectionOf(Sandbox.run('true', { ...options(), signal: AbortSignal.abort(new Error('enough')) }))).message).toBe('enough')
    expect(await ids()).toEqual([])
  })

  test('refuses what it does not know or cannot have', async () => {
    const wrong: readonly (readonly [object, string, RegExp])[] = [
      [{ fresh: 'new' }, 'invalid', /^fresh: expected one of 'cell', 'liner'/],
      [{ fresh: 'liner' }, 'unsupported', /^fresh: 'liner' cannot be had here/],
      [{ fresh: 'liner', pool: false }, 'invalid', /^pool: cannot be false/],
      [{ pool: 'no' }, 'invalid', /^pool: expected true or false, got/],
      [{ receipt: 1 }, 'invalid', /^receipt: expected true or false, got/],
      [{ tag: 'x' }, 'invalid', /^tag: is not a known field/],
      [{ output: 'x' }, 'invalid', /^output: /],
      [{ sandbox: null }, 'invalid', /^sandbox: expected a plain object, got null/],
      [{ sandbox: 'python' }, 'invalid', /^sandbox: expected a plain object, got a string/],
    ]
    for (const [given, code, message] of wrong) {
      const error = await rejectionOf(Sandbox.run('true', { ...options(), ...given }))
      expect([error.code, error.message]).toEqual([code, expect.stringMatching(message)])
    }
  })

  test('and Sandbox.code name what is no sandbox', async () => {
    for (const sandbox of [null, 'python', []]) {
      const error = await rejectionOf(Sandbox.code('1', { platform, sandbox: sandbox as object }))
      expect([error.code, error.message]).toEqual(['invalid', expect.stringMatching(/^sandbox: expected a plain object, got /)])
    }
    expect((await rejectionOf(platform.pools.take(null as unknown as object))).code).toBe('invalid')
  })

  test('many at once keep out of each other’s way', async () => {
    const said = await Promise.all(Array.from({ length: 12 }, (_, n) => Sandbox.run(`test ! -e mark && echo ${n} > mark && cat mark`, options())))
    expect(said.map(({ stdout }) => stdout)).toEqual(Array.from({ length: 12 }, (_, n) => `${n}\n`))
    expect(await ids()).toEqual([])
  })
})

describe('a SandboxPool', { timeout }, () => {
  test('hands out sandboxes that nobody has used, and closes what is given back', async () => {
    await using pool = await SandboxPool.create({ ...plain, platform, size: 1, max: 2 })
    const first = await pool.acquire({ name: 'one' })
    await first.files.write('mark', 'x')
    expect((await first.info()).spec.name).toBe('one')
    await pool.release(first)
    expect((await rejectionOf(first.run('true'))).code).toBe('closed')
    {
      await using second = await pool.acquire()
      expect([second.id === first.id, await second.files.exists('mark')]).toEqual([false, false])
      expect(await pool.status()).toMatchObject({ inUse: 1, waiting: 0 })
    }
    expect((await pool.status()).inUse).toBe(0)
  })

  test('refuses what is not its own', async () => {
    await using pool = await SandboxPool.create({ ...plain, platform, size: 0 })
    await using stranger = await Sandbox.create({ ...plain, platform })
    expect((await rejectionOf(pool.release(stranger))).message).toBe(`sandbox: ${stranger.id} is not of this pool`)
    expect((await stranger.run('true')).exitCode).toBe(0)
    expect((await rejectionOf(SandboxPool.create({ ...plain, platform, size: -1 }))).message).toMatch(/^size: /)
    expect((await rejectionOf(SandboxPool.create({ ...plain, platform, sise: 1 } as object))).message).toMatch(/^sise: is not a known field/)
  })

  test('runs commands and code, each in a sandbox of its own', async () => {
    await using pool = await SandboxPool.create({ ...plain, platform, size: 2 })
    expect((await pool.run('echo a > mark; ls')).stdout).toBe('mark\n')
    const { stdout, receipt } = await pool.run('ls', { receipt: true })
    expect([stdout, receipt?.pooled]).toEqual(['', true])
    expect((await pool.code('x = 6 * 7\nx')).text).toBe('42')
    expect((await pool.code('x')).error?.name).toBe('NameError')
  })

  test('cannot be had of a platform that was disposed of', async () => {
    const over = createPlatform()
    await over[Symbol.asyncDispose]()
    for (const size of [0, 1]) expect((await rejectionOf(SandboxPool.create({ ...plain, platform: over, size }))).code).toBe('closed')
  })

  test('closed, it leaves nothing and says so', async () => {
    const pool = await SandboxPool.create({ ...plain, platform, size: 1 })
    const sandbox = await pool.acquire()
    await pool.close()
    await pool.close()
    expect((await rejectionOf(sandbox.run('true'))).code).toBe('closed')
    expect((await rejectionOf(pool.acquire())).code).toBe('not-found')
    expect(await ids()).toEqual([])
  })
})
