import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createPlatform } from '../../src/compose.js'
import type { Platform } from '../../src/contract/platform.js'
import type { SpecInput } from '../../src/contract/spec.js'
import { Sandbox } from '../../src/sandbox/index.js'
import { rejectionOf } from './collect.js'

let folder: string
let platform: Platform
let sandbox: Sandbox
let id: string

const create = (spec: SpecInput = {}): Promise<Sandbox> => Sandbox.create({ driver: 'fake', minTier: 'none', ...spec, platform })

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gbx-damaged-snapshots-'))
  platform = createPlatform({ snapshotDir: join(folder, 'store') })
  sandbox = await create()
  await sandbox.run(`echo one > one; mkdir ${'long-'.repeat(40)}; echo two > ${'long-'.repeat(40)}/two`)
  id = (await sandbox.snapshot({ name: 'hurt' })).id
})
afterEach(async () => {
  await platform[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

const pathOf = (name: string): string => join(folder, 'store/objects', id.slice(7), name)

function change(name: string, act: (bytes: Buffer) => Buffer): void {
  const bytes = act(readFileSync(pathOf(name)))
  chmodSync(pathOf(name), 0o600)
  writeFileSync(pathOf(name), bytes)
}

const flip =
  (at: number | string) =>
  (bytes: Buffer): Buffer => {
    const index = typeof at === 'number' ? at : bytes.indexOf(at)
    bytes[index] = (bytes[index] ?? 0) ^ 1
    return bytes
  }

const damages: [string, () => void][] = [
  ['a byte of a header is another', () => change('archive.tar', flip(0))],
  ['a path in an extended header leads elsewhere', () => change('archive.tar', flip('workspace/long-'))],
  ['the archive ends too early', () => change('archive.tar', (bytes) => bytes.subarray(0, 700))],
  ['the archive is gone', () => rmSync(pathOf('archive.tar'))],
  ['a byte of the manifest is another', () => change('manifest', flip(20))],
  ['a line of the manifest is missing', () => change('manifest', (bytes) => bytes.subarray(0, bytes.lastIndexOf('{')))],
  ['the manifest is gone', () => rmSync(pathOf('manifest'))],
  ['its facts are gone', () => rmSync(pathOf('about.json'))],
]

test.each(damages)('a snapshot of which %s is told as damaged by its id, and no sandbox is left of it', async (_what, damage) => {
  damage()
  const message = expect.stringMatching(new RegExp(`^snapshot ${id} is damaged: `)) as string
  for (const from of [id, 'hurt']) {
    expect(await rejectionOf(create({ from }))).toMatchObject({ code: 'broken', message, hint: `glovebox snapshots remove ${id}` })
  }
  const left: string[] = []
  for await (const info of platform.list()) left.push(info.id)
  expect(left).toEqual([sandbox.id])
  expect((await platform.snapshots.list()).map((info) => info.id)).toEqual([id])
})

test.each(damages)('when %s, keeping the same content again mends it', async (_what, damage) => {
  damage()
  expect((await sandbox.snapshot()).id).toBe(id)
  const begun = await create({ from: 'hurt' })
  expect((await begun.run('cat one long-*/two')).stdout).toBe('one\ntwo\n')
  expect(readdirSync(join(folder, 'store/drafts'))).toEqual([])
})
