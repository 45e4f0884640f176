import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Mount } from '../../../src/contract/spec.js'
import { createBwrapDriver } from '../../../src/drivers/bwrap/driver.js'
import { judge } from '../../../src/receipt/judge.js'
import { testUnless } from '../../unless.js'
import { type Guest, openGuest } from './open-guest.js'
import { plantedDriver } from './planted-drivers.js'

const isRoot = process.getuid?.() === 0
const MiB = 2 ** 20

interface Owner {
  readonly uid: number
  readonly gid: number
}

/** As root somebody else, and root itself. */
const owners: readonly Owner[] = isRoot
  ? [
      { uid: 4321, gid: 4321 },
      { uid: 0, gid: 0 },
    ]
  : [{ uid: process.getuid?.() ?? -1, gid: process.getgid?.() ?? -1 }]

function makeSource({ uid, gid }: Owner): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'gbx-overlays-')))
  mkdirSync(join(folder, 'inner'))
  mkdirSync(join(folder, 'old'))
  writeFileSync(join(folder, 'old', 'below'), 'below\n')
  writeFileSync(join(folder, 'private'), 'for the owner\n', { mode: 0o600 })
  writeFileSync(join(folder, 'gone'), 'soon gone\n')
  writeFileSync(join(folder, 'inner', 'file'), 'inner\n')
  for (const path of ['inner', 'inner/file', 'old', 'old/below', 'private', 'gone', '.']) chownSync(join(folder, path), uid, gid)
  chmodSync(folder, 0o750)
  return folder
}

/** Everything that can be seen of a tree. */
function photograph(folder: string): string[] {
  return ['', ...readdirSync(folder, { recursive: true, encoding: 'utf8' })].sort().map((name) => {
    const path = join(folder, name)
    const { mode, uid, gid, size, ino, mtimeMs, ctimeMs, atimeMs } = lstatSync(path)
    const isFile = lstatSync(path).isFile()
    return [name, mode, uid, gid, size, ino, mtimeMs, ctimeMs, isFile ? atimeMs : '', isFile ? readFileSync(path, 'hex') : ''].join(' ')
  })
}

function overlaid(source: string, target = '/workspace'): Mount {
  return { source, target, mode: 'overlay' }
}

describe.each(owners)('a folder of uid $uid with an overlay', (owner) => {
  let source: string
  let guest: Guest
  let before: string[]

  beforeAll(async () => {
    source = makeSource(owner)
    before = photograph(source)
    before = photograph(source)
    guest = await openGuest({ spec: { mounts: [overlaid(source)] }, limits: { diskBytes: 4 * MiB } })
  })

  afterAll(async () => {
    await guest[Symbol.asyncDispose]()
    rmSync(source, { recursive: true })
  })

  test('is the user’s, to read and to change, and stays as it was', async () => {
    const script = [
      'cd /workspace && stat -c "%u %g %a" . private',
      'cat private && echo more >> private && cat private',
      'rm gone && mv inner/file inner/renamed && chmod 700 inner',
      'rm -r old && mkdir old && echo new > old/new && ls old',
      'mkdir fresh && ln -s /etc fresh/link && ls',
    ]
    expect(await guest.sh(script.join('\n'))).toBe('1000 1000 750\n1000 1000 600\nfor the owner\nfor the owner\nmore\nnew\nfresh\ninner\nold\nprivate\n')
    expect(photograph(source)).toEqual(before)
  })

  test('shows neither what it is made of nor where that is kept', async () => {
    expect(await guest.sh('ls -d /.mounts /.layers /layers /scratch 2>&1 | grep -c "No such file"; grep -c gbx-overlays /proc/self/mountinfo')).toBe('4\n0\n')
    expect(await guest.sh('ls -l /proc/self/fd | grep -c layers')).toBe('0\n')
  })

  test('is one writable mount, nosuid and nodev, of the cell’s own inodes', async () => {
    expect((await guest.sh('grep " /workspace " /proc/self/mounts')).split(' ').slice(0, 3)).toEqual(['overlay', '/workspace', 'overlay'])
    expect(await guest.sh('grep " /workspace " /proc/self/mounts | cut -d" " -f4 | cut -d, -f1-3')).toBe('rw,nosuid,nodev\n')
    expect(Number(await guest.sh('stat -c %d /workspace/private'))).not.toBe(statSync(source).dev)
  })

  test('fills the disk of the cell and no other', async () => {
    expect(await guest.sh('head -c 6000000 /dev/zero > /workspace/large; echo $?; head -c 100 /dev/zero > /tmp/small; echo $?')).toMatch(
      /No space left on device\n1\n.*No space left on device\n1\n$/s,
    )
    expect(await guest.sh('rm /workspace/large && head -c 100 /dev/zero > /tmp/small; echo $?')).toBe('0\n')
    expect(existsSync(join(source, 'large'))).toBe(false)
  })

  test('is told among the layers of the cell, in the place of what it covers', () => {
    expect(guest.cell.layers.filter(({ path }) => path === '/workspace')).toEqual([{ kind: 'overlay', path: '/workspace', index: 0 }])
    expect(guest.cell.layers).toContainEqual({ kind: 'folder', path: '/tmp' })
  })
})

describe('overlays', () => {
  const owner = owners[0] as Owner

  test('lie beside and within one another', async () => {
    const source = makeSource(owner)
    try {
      const mounts: Mount[] = [
        overlaid(source, '/data'),
        { source: join(source, 'inner'), target: '/data/inner', mode: 'ro' },
        overlaid(join(source, 'old'), '/mnt/old'),
      ]
      await using guest = await openGuest({ spec: { mounts } })
      expect(
        await guest.sh('echo 1 > /data/inner/file; echo 2 > /mnt/old/below; echo 3 > /data/old/below; cat /data/inner/file /mnt/old/below /data/old/below'),
      ).toMatch(/Read-only file system\ninner\n2\n3\n$/)
      expect(guest.cell.layers.filter(({ kind }) => kind === 'overlay')).toEqual([
        { kind: 'overlay', path: '/data', index: 0 },
        { kind: 'overlay', path: '/mnt/old', index: 2 },
      ])
      expect(readFileSync(join(source, 'old', 'below'), 'utf8')).toBe('below\n')
    } finally {
      rmSync(source, { recursive: true })
    }
  })

  test('hold no program that can be started where only some may be', async () => {
    const source = makeSource(owner)
    writeFileSync(join(source, 'program'), '#!/bin/sh\necho started\n', { mode: 0o755 })
    try {
      await using free = await openGuest({ spec: { mounts: [overlaid(source)] } })
      expect(await free.sh('/workspace/program')).toBe('started\n')
      const commands = { executable: [], readable: [], unlisted: undefined }
      await using held = await openGuest({ spec: { mounts: [overlaid(source)], commands } })
      expect(await held.sh('/workspace/program; grep " /workspace " /proc/self/mounts | grep -c noexec')).toMatch(/Permission denied\n1\n$/)
    } finally {
      rmSync(source, { recursive: true })
    }
  })

  testUnless(!isRoot && 'only root can give a cell ids of its own')('are there in a root that is writable all over', async () => {
    const source = makeSource(owner)
    const before = photograph(source)
    try {
      await using guest = await openGuest({ spec: { mounts: [overlaid(source)], rootMode: 'overlay' } })
      expect(
        await guest.sh('rm -r /workspace/old /usr/share && mkdir /workspace/old && ls -A / /workspace/old | grep "^\\."; ls /usr/share 2>&1', 'root'),
      ).toMatch(/No such file/)
      const overlays = guest.cell.layers.filter(({ kind }) => kind === 'overlay')
      expect(overlays).toContainEqual({ kind: 'overlay', path: '/usr', index: 0 })
      expect(overlays.at(-1)?.path).toBe('/workspace')
      expect(photograph(source).map((line) => line.split(' ')[0])).toEqual(before.map((line) => line.split(' ')[0]))
    } finally {
      rmSync(source, { recursive: true })
    }
  })

  test('are refused for a file, by the name of the field', async () => {
    const source = makeSource(owner)
    try {
      await expect(openGuest({ spec: { mounts: [overlaid(join(source, 'private'), '/data')] } })).rejects.toMatchObject({
        code: 'unsupported',
        message: `mounts[0].mode: ${join(source, 'private')} cannot be overlaid: it is no folder`,
      })
    } finally {
      rmSync(source, { recursive: true })
    }
  })

  testUnless(isRoot && 'root can give anyone’s files to a cell')('are refused for folders of others', async () => {
    await expect(openGuest({ spec: { mounts: [overlaid('/usr/share', '/data')] } })).rejects.toThrow(/cannot be overlaid: it belongs to uid 0/)
  })

  test.each([
    ['what was to be written over cannot be', { rw: ['ro'] }],
    ['it is seen elsewhere', { '/workspace': ['/srv/elsewhere'] }],
    ['something else is mounted besides', { '--pts': ['--pts', '--veil', '/home'] }],
  ] as const)('are told when %s', async (_what, words) => {
    const source = makeSource(owner)
    const place = mkdtempSync(join(tmpdir(), 'gbx-planted-'))
    try {
      const driver = await plantedDriver({ words }, place)
      await using guest = await openGuest({ driver, spec: { mounts: [overlaid(source)] } })
      const found = judge({ expectations: guest.cell.expects, posture: await guest.cell.posture({ kind: 'cell' }) })
      expect(found.map(({ control }) => control)).toContain('mounts')
      await using honest = await openGuest({ spec: { mounts: [overlaid(source)] } })
      expect(judge({ expectations: honest.cell.expects, posture: await honest.cell.posture({ kind: 'cell' }) })).toEqual([])
    } finally {
      rmSync(source, { recursive: true })
      rmSync(place, { recursive: true })
    }
  })

  test('are found by trying', async () => {
    expect((await createBwrapDriver().probe()).features['mounts-overlay']).toEqual({ available: true })
  })
})
