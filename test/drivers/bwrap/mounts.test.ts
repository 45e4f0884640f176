import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { SandboxError } from '../../../src/contract/errors.js'
import type { Mount } from '../../../src/contract/spec.js'
import { createBwrapDriver } from '../../../src/drivers/bwrap/driver.js'
import { mountFailure } from '../../../src/cell/mount-refusals.js'
import { nativeProgram } from '../../../src/sys/native.js'
import { skipGroup, testUnless } from '../../unless.js'
import { type Guest, openGuest } from './open-guest.js'

const isRoot = process.getuid?.() === 0
/** Whose the sources are: as root somebody who is not. */
const owner = isRoot ? 4321 : (process.getuid?.() ?? -1)
const group = isRoot ? 4321 : (process.getgid?.() ?? -1)

function makeSource(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'gbx-mounts-')))
  mkdirSync(join(folder, 'inner'))
  writeFileSync(join(folder, 'private'), 'for the owner\n', { mode: 0o600 })
  writeFileSync(join(folder, 'program'), '#!/bin/sh\necho started\n', { mode: 0o755 })
  for (const path of ['inner', 'private', 'program', '.']) chownSync(join(folder, path), owner, group)
  chmodSync(folder, 0o700)
  return folder
}

function mounted(source: string, target: string, mode: Mount['mode'] = 'ro'): Mount {
  return { source, target, mode }
}

/** Type and options of the mounts of a cell at these places, as the kernel lists them there. */
async function flagsAt(guest: Guest, ...targets: string[]): Promise<string[][]> {
  const lines = (await guest.sh('cat /proc/self/mounts')).split('\n').map((line) => line.split(' '))
  return targets.map((target) => (lines.find((line) => line[1] === target)?.[3] ?? '').split(',').filter((flag) => /^(ro|rw|nosuid|nodev|noexec)$/.test(flag)))
}

describe('folders and files of the host', () => {
  let source: string
  let guest: Guest

  beforeAll(async () => {
    source = makeSource()
    const mounts = [
      mounted(join(source, 'inner'), '/workspace/inner', 'rw'),
      mounted(source, '/workspace'),
      mounted(source, '/home/user/a/b', 'rw'),
      mounted(join(source, 'private'), '/opt/one/file'),
      mounted(join(source, 'program'), '/data', 'rw'),
    ]
    guest = await openGuest({ spec: { mounts } })
  })

  afterAll(async () => {
    await guest[Symbol.asyncDispose]()
    rmSync(source, { recursive: true })
  })

  test('are read by the cell’s user as by their owner, where they were asked for', async () => {
    expect(await guest.sh('id -u; stat -c "%u %g %a" /workspace /workspace/private; cat /workspace/private /opt/one/file; /data')).toBe(
      '1000\n1000 1000 700\n1000 1000 600\nfor the owner\nfor the owner\nstarted\n',
    )
  })

  test('are read-only unless asked for otherwise, also for root of the cell', async () => {
    expect(await guest.sh('echo x > /workspace/new; echo x >> /workspace/private; echo x > /opt/one/file; rm /workspace/program')).toBe(
      [
        '/bin/sh: 2: cannot create /workspace/new: Read-only file system\n',
        '/bin/sh: 2: cannot create /workspace/private: Read-only file system\n',
        '/bin/sh: 2: cannot create /opt/one/file: Read-only file system\n',
        "rm: cannot remove '/workspace/program': Read-only file system\n",
      ].join(''),
    )
    if (isRoot) expect(await guest.sh('echo x > /workspace/new; chmod 777 /workspace', 'root')).toMatch(/^.*Read-only file system\n.*Read-only file system\n$/)
  })

  test('belong to their owner on the host whoever writes them', async () => {
    expect(await guest.sh('echo mine > /workspace/inner/new; mkdir /home/user/a/b/made; ln -s /etc/shadow /home/user/a/b/link; echo "# more" >> /data')).toBe(
      '',
    )
    const found = ['inner/new', 'made', 'program'].map((name) => statSync(join(source, name)))
    expect(found.map(({ uid, gid }) => [uid, gid])).toEqual(found.map(() => [owner, group]))
    expect(readFileSync(join(source, 'inner/new'), 'utf8')).toBe('mine\n')
    expect(readFileSync(join(source, 'program'), 'utf8')).toBe('#!/bin/sh\necho started\n# more\n')
  })

  testUnless(!isRoot && 'only root can give a cell more than one id')('cannot become anybody else’s by the cell’s root', async () => {
    const denied = await guest.sh(
      'cd /home/user/a/b; touch own; echo > x 2>&1 || touch x; chown 0 private; chgrp 0 private; ls -n own x 2>&1; stat -c %u private',
      'root',
    )
    expect(denied.match(/Value too large for defined data type/g)?.length).toBeGreaterThanOrEqual(4)
    expect([existsSync(join(source, 'own')), statSync(join(source, 'private')).uid]).toEqual([false, owner])
  })

  test('have exactly the flags of their mode, and neither programs with other ids nor devices', async () => {
    const [ro, rw] = [
      ['ro', 'nosuid', 'nodev'],
      ['rw', 'nosuid', 'nodev'],
    ]
    expect(await flagsAt(guest, '/workspace', '/workspace/inner', '/home/user/a/b', '/opt/one/file', '/data')).toEqual([ro, rw, rw, ro, rw])
  })

  test('leave no trace of how they came there', async () => {
    expect(await guest.sh('ls -A / | grep -v -x -e bin -e lib -e lib64 -e lib32 -e libx32 -e sbin')).toBe(
      `${['.glovebox', 'data', 'dev', 'etc', 'home', 'opt', 'proc', ...(isRoot ? ['root'] : []), 'run', 'tmp', 'usr', 'var', 'workspace'].join('\n')}\n`,
    )
    expect(await guest.sh('ls -ld /home/user/a | cut -d" " -f1,3; ls /proc/self/fd | wc -l')).toBe('drwxr-xr-x user\n4\n')
    expect(readFileSync('/proc/self/mounts', 'utf8')).not.toContain(source)
  })
})

describe('a group that is not the owner’s own', () => {
  skipGroup(!isRoot && 'only root can give files to another group')
  let source: string

  beforeEach(() => {
    source = makeSource()
  })

  afterEach(() => {
    rmSync(source, { recursive: true })
  })

  test('is refused for writing, where set-group-id programs of that group could be left', async () => {
    chownSync(source, owner, 0)
    await expect(openGuest({ spec: { mounts: [mounted(source, '/data', 'rw')] } })).rejects.toMatchObject({
      code: 'unsupported',
      message: `mounts[0].mode: ${source} cannot be mounted read-write: its group is gid 0, which is not uid ${owner}’s own, and the cell’s user could leave set-group-id programs of that group there`,
      hint: `chgrp ${owner} ${source}`,
    })
  })

  test('opens nothing to be read: the owner’s files are there, those for that group stay closed', async () => {
    chownSync(source, owner, 0)
    writeFileSync(join(source, 'of-roots-group'), 'secret', { mode: 0o640 })
    await using guest = await openGuest({ spec: { mounts: [mounted(source, '/data')] } })
    expect(await guest.sh('cat /data/private; stat -c "%u %g" /data /data/private; cat /data/of-roots-group')).toBe(
      'for the owner\n1000 65534\n1000 65534\ncat: /data/of-roots-group: Permission denied\n',
    )
  })

  test('of a folder within the source keeps that folder from being written to, also by the cell’s root', async () => {
    chownSync(join(source, 'inner'), owner, 0)
    chmodSync(join(source, 'inner'), 0o2777)
    await using guest = await openGuest({ spec: { mounts: [mounted(source, '/data', 'rw')] } })
    const attempt = 'cd /data/inner; cp /usr/bin/id sg; chmod 2755 sg; mkdir sub'
    for (const user of ['user', 'root'] as const) expect(await guest.sh(attempt, user)).toContain("cp: cannot create regular file 'sg': ")
    expect(await guest.sh('cp /usr/bin/id /data/own; chmod 2755 /data/own; stat -c %a /data/own')).toBe('2755\n')
    expect([readdirSync(join(source, 'inner')), statSync(join(source, 'own')).gid]).toEqual([[], group])
  })
})

test('with a list of commands neither mounts nor disk start anything, nor can a loader map it', async () => {
  const source = makeSource()
  const mounts = [mounted(source, '/mnt/x', 'rw'), mounted(source, '/data')]
  const guest = await openGuest({ spec: { mounts, commands: { executable: [], readable: [], unlisted: undefined } } })
  try {
    const closed = ['rw', 'nosuid', 'nodev', 'noexec']
    expect(await flagsAt(guest, '/workspace', '/tmp', '/home/user', '/dev/shm', '/mnt/x', '/data')).toEqual([
      closed,
      closed,
      closed,
      closed,
      closed,
      ['ro', ...closed.slice(1)],
    ])
    expect(
      // The loader of this architecture: a machine may have that of another in /lib, too.
      await guest.sh(
        'cp /bin/true /tmp/copied; /tmp/copied; /mnt/x/program; for loader in /lib64/ld-linux* /lib/ld-linux*; do [ -e "$loader" ] && break; done; "$loader" /tmp/copied',
      ),
    ).toMatch(/^.*Permission denied\n.*Permission denied\n.*failed to map segment from shared object\n$/)
  } finally {
    await guest[Symbol.asyncDispose]()
    rmSync(source, { recursive: true })
  }
})

describe('a source that is swapped after it was checked', () => {
  let folder: string
  let source: string

  beforeEach(() => {
    folder = realpathSync(mkdtempSync(join(tmpdir(), 'gbx-swap-')))
    source = join(folder, 'project')
    for (const name of ['project', 'secret']) {
      mkdirSync(join(folder, name))
      writeFileSync(join(folder, name, 'content'), `${name}\n`)
    }
  })

  afterEach(() => {
    rmSync(folder, { recursive: true })
  })

  /** A launcher before which something happens: the moment between the check and the mount. */
  function openAfter(script: string): Promise<Guest> {
    const launcher = join(folder, 'launcher')
    writeFileSync(launcher, `#!/bin/sh\ncd ${folder} && ${script} || exit 1\nexec ${nativeProgram('launcher')} "$@"\n`, { mode: 0o755 })
    const driver = createBwrapDriver({ programs: { launcher } })
    return openGuest({ driver, spec: { mounts: [mounted(source, '/data')] } })
  }

  const swaps = [
    ['for a link', '/bin/mv project aside && /bin/ln -s secret project'],
    ['for another folder', '/bin/mv project aside && /bin/mv secret project'],
  ] as const

  for (const [how, script] of swaps) {
    testUnless(!isRoot && 'without root a source is bound by its path and recognised afterwards')(`${how} is still what was checked`, async () => {
      const guest = await openAfter(script)
      try {
        expect(await guest.sh('cat /data/content')).toBe('project\n')
      } finally {
        await guest[Symbol.asyncDispose]()
      }
      expect(readFileSync(join(source, 'content'), 'utf8')).toBe('secret\n')
    })

    testUnless(isRoot && 'as root a source is bound by descriptor')(`${how} is recognised, and the cell never opens`, async () => {
      await expect(openAfter(script)).rejects.toMatchObject({ message: 'the cell did not open: warden: recognise the source of /.mounts/0: Stale file handle' })
    })
  }

  test('for nothing opens as ever: the control', async () => {
    const guest = await openAfter('true')
    try {
      expect(await guest.sh('cat /data/content')).toBe('project\n')
    } finally {
      await guest[Symbol.asyncDispose]()
    }
  })
})

describe('what is refused', () => {
  test('a link in a source is not followed to the place of another mount', async () => {
    const source = makeSource()
    symlinkSync('/etc', join(source, 'inner/etc'))
    try {
      const mounts = [mounted(join(source, 'inner'), '/data'), mounted(source, '/data/etc/ssl')]
      await expect(openGuest({ spec: { mounts } })).rejects.toMatchObject({
        code: 'invalid',
        message: expect.stringContaining('mounts[1].target: /data/etc/ssl lies in mounts[0]') as string,
      })
    } finally {
      rmSync(source, { recursive: true })
    }
  })

  test('a source of the host’s own, before anything is started', async () => {
    await expect(openGuest({ spec: { mounts: [mounted('/etc', '/data')] } })).rejects.toMatchObject({
      code: 'invalid',
      message: expect.stringMatching(/^mounts\[0\]\.source: \/etc cannot be mounted: /) as string,
    })
    await expect(openGuest({ spec: { mounts: [mounted('/usr/share', '/data', 'rw')] } })).rejects.toMatchObject({
      code: 'unsupported',
      hint: expect.stringMatching(/^cp -r \/usr\/share /) as string,
    })
  })

  test('a filesystem that cannot map its owner, told of the field it came from and with a copy as the way on', () => {
    const mounts = [mounted('/srv/a', '/data'), mounted('/srv/b', '/mnt/b', 'rw')]
    const said = (words: string) => new SandboxError('unavailable', `the cell did not open: launcher: ${words}`)
    expect(mountFailure(said('map owner of mount1: Invalid argument'), mounts)).toMatchObject({
      code: 'unsupported',
      message: 'mounts[1].mode: /srv/b cannot be mounted read-write: its filesystem cannot make its owner the cell’s user (Invalid argument)',
      hint: 'cp -a /srv/b /var/tmp/copy',
    })
    expect(mountFailure(said('copy mount of mount0: Invalid argument'), mounts)).toMatchObject({
      code: 'unsupported',
      message: 'mounts[0].source: /srv/a cannot be mounted: Invalid argument',
    })
    const other = said('join /sys/fs/cgroup/x: No such device')
    expect(mountFailure(other, mounts)).toBe(other)
  })
})
