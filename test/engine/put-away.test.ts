import { existsSync, mkdtempSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createPlatform } from '../../src/compose.js'
import type { SandboxEvent } from '../../src/contract/lifetimes.js'
import type { Platform } from '../../src/contract/platform.js'
import type { SpecInput } from '../../src/contract/spec.js'
import { Sandbox } from '../../src/sandbox/index.js'
import { createHostView } from '../../src/verify/host-view.js'
import { leftoversOf } from '../../src/conformance/leftovers.js'
import { statePlace } from '../../src/sys/places.js'
import { rejectionOf } from './collect.js'
import { isRunning, markedSleep, waitUntil } from './processes.js'

const top = mkdtempSync(join(tmpdir(), 'gbx-put-away-'))
afterAll(() => rmSync(top, { recursive: true, force: true }))

const probing = createPlatform()
// Programs of gVisor are processes of its own kernel, which nobody sees from outside.
const drivers = (await probing.probe()).filter(({ available, tier }) => available && tier !== 'gvisor').map(({ driver }) => driver)
await probing[Symbol.asyncDispose]()

let store: string
let platform: Platform

beforeEach(() => {
  store = mkdtempSync(join(top, 'store-'))
  platform = createPlatform({ snapshotDir: store, bounds: { maxPausedMs: 60_000 } })
})
afterEach(async () => {
  await platform[Symbol.asyncDispose]()
  expect(aside()).toEqual([])
})

function aside(): string[] {
  return existsSync(join(store, 'drafts')) ? readdirSync(join(store, 'drafts')) : []
}

async function gather(id: string): Promise<SandboxEvent[]> {
  const events = []
  for await (const event of platform.life.events(id)) events.push(event)
  return events
}

describe.each(drivers)('%s: a sandbox that is paused without its memory', (driver) => {
  const create = (spec: SpecInput = {}): Promise<Sandbox> => Sandbox.create({ driver, minTier: 'none', ...spec, platform })

  test('keeps its id, variables, limits and files; its programs end and are told of; nothing else of it is left', async () => {
    await using host = await createHostView({ ownFolders: [], sharedFolders: [statePlace()] })
    // From the second cell on a launcher stays for a while; it is there by the third.
    for (let n = 0; n < 3; n++) await (await create()).close()
    const before = await host.snapshot()
    const sandbox = await create({ env: { COLOR: 'green' }, metadata: { for: 'test' } })
    const events = gather(sandbox.id)
    await sandbox.run('echo kept > a; mkdir -m 700 d; ln -s a link; (setsid sleep 1000 > /dev/null 2>&1 &)')
    await sandbox.limit({ output: '1m' })
    const server = await sandbox.spawn('echo up; sleep 1000', { tag: 'server' })
    const { marker, command } = markedSleep()
    const running = sandbox.run(command)
    await waitUntil(() => isRunning(marker))
    const { state, id, spec } = await sandbox.pause({ memory: false })
    expect({ state, id }).toEqual({ state: 'paused', id: sandbox.id })
    expect((await running).outcome).toEqual({ kind: 'killed', reason: 'its sandbox was paused without its memory' })
    expect((await server.wait()).outcome).toMatchObject({ kind: 'killed' })
    expect(leftoversOf(before, await host.snapshot())).toEqual([])
    expect(aside()).toHaveLength(1)
    expect(await platform.snapshots.list()).toEqual([])
    expect(await sandbox.usage()).toMatchObject({ runs: 3, memoryBytes: 0, processes: 0 })
    const refused = [sandbox.run('true'), sandbox.files.read('a'), sandbox.snapshot(), sandbox.receipt(), sandbox.limit({ output: '2m' })]
    for (const rejection of await Promise.all(refused.map(rejectionOf))) {
      expect(rejection).toMatchObject({ code: 'conflict', message: expect.stringContaining('resume it first') as string })
    }

    const again = await Sandbox.connect(sandbox.id, { platform, resume: true })
    expect(await platform.info(sandbox.id)).toMatchObject({ state: 'running', spec })
    expect((await again.run('cat a link; stat -c %a d; echo $COLOR')).stdout).toBe('kept\nkept\n700\ngreen\n')
    expect(aside()).toEqual([])
    expect(await sandbox.files.read('a')).toBe('kept\n')
    expect((await again.usage()).runs).toBe(4)
    expect(await again.receipt()).toMatchObject({ state: 'running', sandbox: { id } })
    await sandbox.close()
    const told = (await events).map(({ type }) => type).filter((type) => type !== 'limited')
    expect(told).toEqual(['exit', 'exit', 'exit', 'paused', 'resumed', 'exit', 'closed'])
  })

  test('pauses and resumes again and again, with what was written in between', async () => {
    const sandbox = await create()
    for (let round = 0; round < 3; round += 1) {
      await sandbox.run(`echo ${round} >> log`)
      await sandbox.pause({ memory: false })
      await sandbox.pause({ memory: false })
      await sandbox.pause()
      await sandbox.resume()
    }
    expect(await sandbox.files.read('log')).toBe('0\n1\n2\n')
  })

  test('leaves nothing when it is closed, expires, or its platform is closed', async () => {
    const closed = await create()
    await closed.run('echo x > a')
    await closed.pause({ memory: false })
    await closed.close()
    expect(aside()).toEqual([])
    expect(await rejectionOf(closed.resume())).toMatchObject({ code: 'closed' })

    const brief = createPlatform({ snapshotDir: store, bounds: { maxPausedMs: 200 } })
    const expiring = await Sandbox.create({ driver, minTier: 'none', platform: brief })
    await expiring.pause({ memory: false })
    while (aside().length > 0) await sleep(10)
    expect(await rejectionOf(expiring.info())).toMatchObject({ code: 'expired', message: expect.stringContaining('it was paused for 200ms') as string })

    const last = await Sandbox.create({ driver, minTier: 'none', platform: brief })
    await last.pause({ memory: false })
    await brief[Symbol.asyncDispose]()
    expect(aside()).toEqual([])
  })

  test('can be closed at any moment of a pause or a resume', async () => {
    for (const afterMs of [0, 5, 20, 60, 150]) {
      const pausing = await create()
      await pausing.run('head -c 3000000 /dev/zero > big; echo > a')
      const paused = rejectionOf(pausing.pause({ memory: false })).catch(() => undefined)
      await sleep(afterMs)
      await pausing.close()
      await paused
      expect(aside()).toEqual([])

      const resuming = await create()
      await resuming.run('head -c 3000000 /dev/zero > big; echo > a')
      await resuming.pause({ memory: false })
      const resumed = rejectionOf(resuming.resume()).catch(() => undefined)
      await sleep(afterMs)
      await resuming.close()
      await resumed
      expect(aside()).toEqual([])
    }
  })

  test('ends what an operation on files is in the middle of', async () => {
    const sandbox = await create()
    await sandbox.run('head -c 5000000 /dev/zero > big')
    const watch = rejectionOf(
      (async () => {
        for await (const _ of sandbox.files.watch('.')) continue
      })(),
    )
    await sleep(200)
    await sandbox.pause({ memory: false })
    expect(await watch).toMatchObject({ code: 'conflict' })
    await sandbox.resume()
    expect(await sandbox.files.stat('big')).toMatchObject({ size: 5_000_000 })
  })

  test('with unread output is put away all the same', async () => {
    const sandbox = await create()
    const program = await platform.start(sandbox.id, { command: 'yes' })
    await sleep(100)
    await sandbox.pause({ memory: false })
    expect((await program.ended).outcome).toMatchObject({ kind: 'killed' })
    await sandbox.resume()
  })

  test('is told apart from one that is paused with it', async () => {
    const sandbox = await create()
    if ((await rejectionOf(sandbox.pause()).catch(() => undefined)) !== undefined) return
    expect(await rejectionOf(sandbox.pause({ memory: false }))).toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('paused with its memory') as string,
    })
    expect(await sandbox.receipt()).toMatchObject({ state: 'paused' })
  })
})

test.runIf(drivers.includes('bwrap'))('a mount that leads elsewhere when it is resumed is refused, and it stays paused', async () => {
  const [source, other] = [join(top, 'source'), join(top, 'other')]
  mkdirSync(source)
  mkdirSync(other)
  const sandbox = await Sandbox.create({ driver: 'bwrap', mounts: [{ source, target: '/data', mode: 'ro' }], platform })
  await sandbox.pause({ memory: false })
  renameSync(source, `${source}-moved`)
  symlinkSync(other, source)
  expect(await rejectionOf(sandbox.resume())).toMatchObject({ code: 'conflict', message: expect.stringContaining('leads elsewhere') as string })
  expect(await sandbox.info()).toMatchObject({ state: 'paused' })
  rmSync(source)
  renameSync(`${source}-moved`, source)
  expect(await sandbox.resume()).toMatchObject({ state: 'running' })
})
