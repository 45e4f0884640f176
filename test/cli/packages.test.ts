import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { cli } from './cli.js'

const folder = mkdtempSync(join(tmpdir(), 'glovebox-packages-'))
const env = { GLOVEBOX_CACHE_DIR: folder }
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('packages tells how much is kept, and is rid of it when told so', async () => {
  const packages = join(folder, 'packages')
  expect(await cli(['packages'], { env })).toMatchObject({ code: 0, stdout: `0 files, 0 bytes, in ${packages}\n`, stderr: '' })
  mkdirSync(join(packages, 'at-x'), { recursive: true, mode: 0o700 })
  writeFileSync(join(packages, 'at-x', 'sha256-y'), 'a'.repeat(3000))
  mkdirSync(join(packages, 'drafts'))
  writeFileSync(join(packages, 'drafts', 'left'), 'half')
  const told = { folder: packages, files: 1, bytes: 3000 }
  expect(JSON.parse((await cli(['packages', '--json'], { env })).stdout)).toEqual({ ...told, pruned: false })
  expect(JSON.parse((await cli(['packages', '--prune', '--json'], { env })).stdout)).toEqual({ ...told, pruned: true })
  expect([readdirSync(packages), readdirSync(join(packages, 'drafts'))]).toEqual([['drafts'], []])
})
