import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createPlatform } from '../../src/compose.js'
import type { Platform } from '../../src/contract/platform.js'
import { Sandbox } from '../../src/sandbox/index.js'
import { rejectionOf } from './collect.js'

let folder: string
let platform: Platform
let sandbox: Sandbox
let id: string

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gbx-snapshot-queue-'))
  platform = createPlatform({ snapshotDir: join(folder, 'store') })
  sandbox = await Sandbox.create({ driver: 'fake', minTier: 'none', platform })
  await sandbox.run('echo one > one')
  id = (await sandbox.snapshot()).id
})
afterEach(async () => {
  await platform[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

test.each([
  ['a snapshot', () => sandbox.snapshot()],
  ['a fork', () => sandbox.fork(1)],
  ['a comparison', () => sandbox.diff({ since: id })],
  ['an export', () => sandbox.export({ since: id })],
])('a pause that is asked for right after %s waits for it', async (_what, begin) => {
  const begun = begin()
  const info = await sandbox.pause()
  await begun
  expect(info.state).toBe('paused')
})

test('a snapshot that is asked for right after a pause is told that it is paused', async () => {
  const pausing = sandbox.pause()
  expect(await rejectionOf(sandbox.snapshot())).toMatchObject({ code: 'conflict', message: `sandbox ${sandbox.id} is paused; resume it first` })
  await pausing
})

test('a snapshot that was asked for before its sandbox got another cell is a conflict, and the next is taken', async () => {
  const acts = [sandbox.pause({ memory: false }), sandbox.resume()]
  expect(await rejectionOf(sandbox.snapshot())).toMatchObject({
    code: 'conflict',
    message: `sandbox ${sandbox.id} was paused without its memory meanwhile; ask again`,
  })
  await Promise.all(acts)
  expect((await sandbox.snapshot()).id).toBe(id)
})
