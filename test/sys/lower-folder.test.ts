import { chmodSync, mkdirSync, mkdtempSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createHash } from 'node:crypto'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { LowerFolder, type LowerFolderOrder } from '../../src/sys/lower-folder.js'
import { rejectionOf } from '../engine/collect.js'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gbx-lower-'))
  chmodSync(folder, 0o755)
  mkdirSync(join(folder, 'open/in'), { recursive: true })
  mkdirSync(join(folder, 'closed'))
  for (const name of ['open/file', 'open/in/deep', 'closed/file', 'private']) writeFileSync(join(folder, name), name)
  writeFileSync(Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0x6e, 0xff])]), 'odd')
  symlinkSync('/etc/passwd', join(folder, 'link'))
  symlinkSync('open', join(folder, 'way'))
  chmodSync(join(folder, 'closed'), 0o750)
  chmodSync(join(folder, 'private'), 0o640)
})
afterEach(() => rmSync(folder, { recursive: true }))

function order(rest: Partial<LowerFolderOrder> = {}): LowerFolderOrder {
  return { path: folder, identity: undefined, isPublicOnly: false, ownerOf: ({ uid, gid }) => ({ uid: uid + 1, gid: gid + 2 }), ...rest }
}

test('what is there is told with its owner in the cell; a link is told as one and never followed', async () => {
  await using lower = await LowerFolder.open(order())
  const { uid, gid } = statSync(folder)
  expect(await lower.look('open/file')).toEqual({ type: 'file', mode: 0o644, uid: uid + 1, gid: gid + 2, size: 9, target: '' })
  expect(await lower.look('link')).toMatchObject({ type: 'link', target: '/etc/passwd' })
  expect(await lower.look('n\xff')).toMatchObject({ type: 'file', size: 3 })
  for (const path of ['way/file', 'link/x', 'nothing', 'nothing/deep', 'open/file/below', '../etc', 'open/../open'])
    expect(await lower.look(path)).toBeUndefined()
  expect(await lower.names('open')).toEqual(['file', 'in'])
  expect(await lower.names('nothing/deep')).toEqual([])
  expect(await lower.hash('open/in/deep')).toBe(createHash('sha256').update('open/in/deep').digest('hex'))
})

test('what not everyone may read is not there, nor what is in it', async () => {
  await using lower = await LowerFolder.open(order({ isPublicOnly: true }))
  for (const path of ['closed', 'closed/file', 'private']) expect(await lower.look(path)).toBeUndefined()
  expect(await lower.look('open/in/deep')).toMatchObject({ type: 'file' })
  expect(await lower.look('link')).toMatchObject({ type: 'link' })
})

test('another folder in its place is refused', async () => {
  const { dev, ino } = statSync(folder)
  await using lower = await LowerFolder.open(order({ identity: { dev, ino } }))
  expect(await lower.look('open')).toMatchObject({ type: 'folder' })
  renameSync(folder, `${folder}.away`)
  mkdirSync(folder)
  expect(await rejectionOf(LowerFolder.open(order({ identity: { dev, ino } })))).toMatchObject({ code: 'conflict' })
  rmSync(folder, { recursive: true })
  expect(await rejectionOf(LowerFolder.open(order()))).toMatchObject({ code: 'conflict', message: expect.stringContaining('ENOENT') })
  renameSync(`${folder}.away`, folder)
})
