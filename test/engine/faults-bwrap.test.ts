import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { leftoversOf } from '../../src/conformance/index.js'
import type { FaultPoint } from '../../src/contract/faults.js'
import { statePlace } from '../../src/sys/places.js'
import { createPlatform } from '../../src/index.js'
import { createHostView, type PlantedHostView } from '../../src/verify/host-view.js'
import { processesWith } from '../cli/cli.js'
import { createFaultyEngine, endless, failAt, type FaultyEngine, Injected, pointsOf } from './fault-scenarios.js'

const probing = createPlatform()
const probes = await probing.probe()
await probing[Symbol.asyncDispose]()

/** What a sandbox may be over with when something of ours failed in it; all else is told as it is. */
const told = /injected|ended|closed|gone/

describe.each(['bwrap', 'oci:runc'])('%s', (driver) => {
  const probe = probes.find((each) => each.driver === driver)
  const reason = probe?.available === true ? undefined : `${driver} is not available here`
  let home: string
  let subject: FaultyEngine
  let host: PlantedHostView

  beforeAll(async () => {
    home = realpathSync(mkdtempSync(join(tmpdir(), 'gbx-faults-')))
    for (const name of ['tmp', 'snapshots']) mkdirSync(join(home, name), { mode: 0o700 })
    vi.stubEnv('TMPDIR', join(home, 'tmp'))
    host = await createHostView({ ownFolders: [join(home, 'tmp'), join(home, 'snapshots')], sharedFolders: [statePlace()] })
    subject = createFaultyEngine(driver, join(home, 'snapshots'))
    if (reason !== undefined) return
    // Whatever is made once, and stays: the store of snapshots, a launcher that stays, the authority of the way out.
    for (const point of ['close/gone', 'create/restored', 'fork/made', 'create/joined'] as const) await failAt(subject, point, () => undefined)
    await subject.engine.closeAll()
    for (const { id } of await subject.engine.snapshots.list()) await subject.engine.snapshots.remove(id)
  })
  afterAll(async () => {
    await subject[Symbol.asyncDispose]()
    await host[Symbol.asyncDispose]()
    vi.unstubAllEnvs()
    rmSync(home, { recursive: true })
  })

  const leftOver = async (before: Awaited<ReturnType<typeof host.snapshot>>): Promise<string[]> => leftoversOf(before, await host.snapshot())

  test.for(pointsOf(driver))('a failure after %s leaves nothing', async (point: FaultPoint, { skip }) => {
    if (reason !== undefined) skip(reason)
    const before = await host.snapshot()
    const settled = await failAt(subject, point, () => {
      throw new Injected(`injected after ${point}`)
    })
    expect([point, subject.hits > 0]).toEqual([point, true])
    if (settled.status === 'rejected') expect(String(settled.reason)).toMatch(told)
    // The end of a close is the only thing that is known before all is over.
    else expect(point).toBe('close/gone')
    if (point.startsWith('run/')) await expect.poll(() => processesWith(endless)).toEqual([])
    // Whoever closes again, or all, finishes what was begun.
    await subject.engine.closeAll()
    for (const { id } of await subject.engine.snapshots.list()) if (point !== 'snapshot/placed') await subject.engine.snapshots.remove(id)
    await expect.poll(() => leftOver(before)).toEqual([])
  })

  test('and the next sandbox works', async ({ skip }) => {
    if (reason !== undefined) skip(reason)
    subject.arm(undefined)
    const { id } = await subject.engine.create({ driver })
    expect((await (await subject.engine.start(id, { command: ['true'] })).ended).outcome).toMatchObject({ kind: 'exited' })
    await subject.engine.close(id)
  })
})
