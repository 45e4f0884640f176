import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { SnapshotInfo } from '../../src/contract/snapshots.js'
import { createSnapshotStore } from '../../src/templates/snapshots.js'
import { cli } from './cli.js'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gbx-cli-snapshots-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function run(...args: string[]) {
  return cli(['snapshots', ...args], { env: { GLOVEBOX_SNAPSHOT_DIR: folder } })
}

async function keep(name: string | undefined, content: string): Promise<SnapshotInfo> {
  const draft = await createSnapshotStore(() => folder).draft('host')
  const entry = { type: 'file', mode: 0o644, uid: 0, gid: 0, hash: '0'.repeat(64), target: '', sameAs: '' } as const
  await draft.add({ ...entry, path: `workspace/${content}`, size: 3 * 2 ** 20 })
  const info = await draft.keep(name)
  await draft.discard()
  return info
}

describe('help', () => {
  test.each([
    ['snapshots-help', ['--help']],
    ['snapshots-list-help', ['list', '--help']],
    ['snapshots-remove-help', ['remove', '--help']],
  ])('%s is what its golden file says, within 80 columns', async (name, args) => {
    const { code, stdout, stderr } = await run(...args)
    expect([code, stderr, stdout.split('\n').filter((line) => line.length > 80)]).toEqual([0, '', []])
    await expect(stdout).toMatchFileSnapshot(`golden/${name}.txt`)
  })
})

test('nothing is printed when there is none', async () => {
  expect(await run('list')).toMatchObject({ code: 0, stdout: '', stderr: '' })
})

test('a line for each, and nothing in a name drives a terminal', async () => {
  const first = await keep(undefined, 'a')
  const second = await keep('pretty \u202eeman', 'b')
  const { code, stdout } = await run('list')
  expect([code, stdout.split('\n').length]).toEqual([0, 3])
  expect(stdout).toContain(`${first.createdAt}         3 MiB        1  host      ${first.id}\n`)
  expect(stdout).toContain(second.id)
  expect(stdout).not.toContain('\u202e')
  expect(JSON.parse((await run('list', '--json')).stdout)).toEqual({ snapshots: [first, second] })
})

test('what is removed is gone; what is not there is told, and the rest is removed all the same', async () => {
  const { id } = await keep('one', 'a')
  await keep('two', 'b')
  expect(await run('remove', 'nobody', id, 'two')).toMatchObject({ code: 1, stdout: '', stderr: 'glovebox: there is no snapshot nobody\n' })
  expect(JSON.parse((await run('list', '--json')).stdout)).toEqual({ snapshots: [] })
  expect(await run('remove', 'sha256:12')).toMatchObject({ code: 125, stderr: expect.stringContaining("snapshot: must be a snapshot's id or name") })
})
