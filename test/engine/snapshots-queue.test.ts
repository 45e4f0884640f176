import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createPlatform } from '../../src/compose.js'
import type { Platform } from '../../src/contract/platform.js'
import { Sandbox } from '../../src/sandbox/index.js'
import { rejectionOf } from './collect.js'

const probing = createPlatform()
const drivers = (await probing.probe()).filter(({ available }) => available).map(({ driver }) => driver)
await probing[Symbol.asyncDispose]()

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

describe.each(drivers)('%s: what is asked for in one breath with a pause without memory and a resume', (driver) => {
  let put: Sandbox
  beforeEach(async () => {
    put = await Sandbox.create({ driver, minTier: 'none', platform })
    await put.run('echo one > one')
  })

  test.each([
    ['a snapshot', async () => (await put.snapshot()).id],
    ['a fork', async () => Promise.all((await put.fork(1)).map(async (fork) => (await fork.run('cat one')).stdout))],
    ['a comparison', async () => (await put.diff()).map(({ type, path }) => `${type} ${path.slice(-3)}`)],
    [
      'an export',
      async () => {
        let bytes = 0
        for await (const piece of await put.export()) bytes += piece.length
        return bytes
      },
    ],
  ])('%s comes in its turn, and sees the new cell', async (_what, ask) => {
    const before = await ask()
    const [paused, resumed, after] = await Promise.all([put.pause({ memory: false }), put.resume(), ask()])
    expect([paused.id, resumed.id, after]).toEqual([put.id, put.id, before])
    expect((await put.run('cat one')).stdout).toBe('one\n')
  })

  test('a snapshot before the resume is told that it is paused', async () => {
    const first = await put.snapshot()
    const [, refused, , taken] = await Promise.all([put.pause({ memory: false }), rejectionOf(put.snapshot()), put.resume(), put.snapshot()])
    expect(refused).toMatchObject({ code: 'conflict', message: expect.stringContaining('resume it first') })
    expect(taken.id).toBe(first.id)
  })
})
