import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createBundles } from '../../../src/drivers/oci/bundles.js'
import { parseHierarchies } from '../../../src/sys/cgroup-mounts.js'
import { currentOwner, ownerName } from '../../../src/sys/owner.js'
import { testUnless } from '../../unless.js'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gbx-bundles-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const id = 'abcdefghij0123456789'

test('a bundle has the document that it was given, and is gone once removed', () => {
  const bundle = createBundles(folder).make(id)
  bundle.write({ ociVersion: '1.0.2' })
  expect(readdirSync(bundle.folder)).toEqual(['config.json'])
  bundle.remove()
  bundle.remove()
  expect(readdirSync(folder)).toEqual([])
})

/** Undefined for whoever may make none. */
function ownGroup(): string | undefined {
  const place = parseHierarchies(readFileSync('/proc/self/mountinfo', 'utf8')).find(({ version }) => version === 1)?.mountPoint ?? '/sys/fs/cgroup'
  const group = join(place, `glovebox-bundles-${process.pid}`)
  try {
    mkdirSync(group)
    return group
  } catch {
    return undefined
  }
}

test('what a dead owner left is ended and removed by the next, and nothing of a living one', async () => {
  const living = createBundles(folder).make(id)
  const dead = join(folder, `${ownerName({ ...currentOwner(), startTime: '1' })}-${id}`)
  mkdirSync(dead)
  const other = join(folder, 'glovebox-other')
  mkdirSync(other)
  const group = ownGroup()
  // Whatever became of the list: nothing that is no group of ours goes with it.
  writeFileSync(join(dead, 'groups'), [other, '/sys/fs/cgroup', '', '../..', group ?? '', `${group}-none`].join('\n'))
  const left = spawn('sleep', ['60'], { argv0: `runtime --bundle ${dead}` })
  const ended = once(left, 'exit')
  createBundles(folder)
  expect(await ended).toEqual([null, 'SIGKILL'])
  expect(existsSync(dead)).toBe(false)
  expect([existsSync(other), group !== undefined && existsSync(group)]).toEqual([true, false])
  expect(existsSync(living.folder)).toBe(true)
})

const another = 65_533
testUnless(process.getuid?.() !== 0 && 'needs root to have a process of another user’s')(
  'a process of another user that names it is neither ended nor waited for',
  async () => {
    const dead = join(folder, `${ownerName({ ...currentOwner(), startTime: '1' })}-${id}`)
    mkdirSync(dead)
    const foreign = spawn('sleep', ['60'], { argv0: `runtime --bundle ${dead}`, uid: another, gid: another })
    await once(foreign, 'spawn')
    const living = createBundles(folder).make(id)
    const known = spawn('sleep', ['60'], { argv0: `runtime --bundle ${living.folder}`, uid: another, gid: another })
    await once(known, 'spawn')
    expect(existsSync(dead)).toBe(false)
    expect(living.processes()).toEqual([])
    const ends = [once(foreign, 'exit'), once(known, 'exit')]
    for (const child of [foreign, known]) child.kill('SIGTERM')
    expect(await Promise.all(ends)).toEqual([
      [null, 'SIGTERM'],
      [null, 'SIGTERM'],
    ])
  },
)
