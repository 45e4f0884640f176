import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createPlatform } from '../../src/compose.js'
import type { Platform, SandboxInfo } from '../../src/contract/platform.js'
import { rejectionOf } from './collect.js'

let folder: string
let platform: Platform
let snapshot: string

const plain = { driver: 'fake', minTier: 'none' } as const

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gbx-create-from-'))
  platform = createPlatform({ snapshotDir: join(folder, 'store') })
  const { id } = await platform.create(plain)
  snapshot = (await platform.snapshots.take(id, { name: 'base' })).id
  await platform.close(id)
})
afterEach(async () => {
  await platform[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

const createFrom = (signal?: AbortSignal): Promise<SandboxInfo> => platform.create({ ...plain, from: snapshot, name: 'mine' }, { ...(signal && { signal }) })

async function names(): Promise<(string | undefined)[]> {
  const found: (string | undefined)[] = []
  for await (const { spec } of platform.list()) found.push(spec.name)
  return found
}

test.each([undefined, { name: 'mine' }])('closing all while the snapshot is looked for calls the sandbox off: %j', async (filter) => {
  const creating = rejectionOf(createFrom())
  expect(await platform.closeAll(filter)).toBe(0)
  expect(await creating).toMatchObject({ code: 'closed', message: 'the sandbox was closed while it was created' })
  expect(await names()).toEqual([])
})

test('closing others meanwhile does not', async () => {
  const creating = createFrom()
  expect(await platform.closeAll({ name: 'other' })).toBe(0)
  await creating
  expect(await names()).toEqual(['mine'])
})

test('aborting while the snapshot is looked for leaves no sandbox', async () => {
  const controller = new AbortController()
  const creating = rejectionOf(createFrom(controller.signal))
  controller.abort(new Error('changed my mind'))
  expect(await creating).toMatchObject({ message: 'changed my mind' })
  expect(await names()).toEqual([])
})
