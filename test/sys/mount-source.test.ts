import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, linkSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openMountSources, resolveMounts } from '../../src/sys/mount-source.js'
import { ownGroupOf } from '../../src/sys/mount-source-owner.js'
import { testUnless } from '../unless.js'

const isRoot = process.getuid?.() === 0
let folder: string

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'gbx-source-')))
})

afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

function mount(source: string, mode: 'ro' | 'rw' = 'ro', target = '/data') {
  return { source, target, mode }
}

async function refusal(source: string): Promise<string> {
  const error: unknown = await resolveMounts([mount(folder), mount(source)]).catch((reason: unknown) => reason)
  expect(error).toMatchObject({ name: 'SandboxError', code: 'invalid' })
  return (error as Error).message
}

/** Descriptors of ours that lead into the folder. */
function leftOpen(): number {
  return execFileSync(
    'readlink',
    readdirSync('/proc/self/fd').map((fd) => `/proc/${process.pid}/fd/${fd}`),
    { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] },
  )
    .split('\n')
    .filter((path) => path.startsWith(folder)).length
}

describe('a source', () => {
  test('is told by its true path, and nothing is left open', async () => {
    mkdirSync(join(folder, 'real'))
    symlinkSync('real', join(folder, 'link'))
    const [resolved] = await resolveMounts([mount(join(folder, 'link/../link/.'), 'rw')])
    expect(resolved).toEqual(mount(join(folder, 'real'), 'rw'))
  })

  test('that is a link to what is refused is refused, with where it leads', async () => {
    symlinkSync('/proc', join(folder, 'innocent'))
    expect(await refusal(join(folder, 'innocent'))).toBe(
      `mounts[1].source: ${folder}/innocent cannot be mounted: it leads to /proc, and it is on a proc filesystem, which is the kernel’s own`,
    )
    symlinkSync('/', join(folder, 'all'))
    expect(await refusal(join(folder, 'all'))).toBe(`mounts[1].source: ${folder}/all cannot be mounted: it leads to /, and it is the whole host`)
    expect(await refusal('/etc/../etc/./shadow')).toBe(
      'mounts[1].source: /etc/../etc/./shadow cannot be mounted: it leads to /etc/shadow, and it holds passwords or keys of this machine',
    )
  })

  test('that is not there, or whose links go round, is refused', async () => {
    expect(await refusal(join(folder, 'nothing'))).toBe(`mounts[1].source: ${folder}/nothing cannot be mounted: it does not exist`)
    symlinkSync('round', join(folder, 'round'))
    expect(await refusal(join(folder, 'round'))).toBe(`mounts[1].source: ${folder}/round cannot be mounted: its links go round in circles`)
  })

  test('that is a pipe or a device is refused', async () => {
    execFileSync('mkfifo', [join(folder, 'pipe')])
    expect(await refusal(join(folder, 'pipe'))).toContain('it is a pipe, through which a guest would reach a program outside')
    expect(await refusal('/dev/null')).toContain('it is a device')
  })

  test('that is a socket, or a folder with one somewhere in it, is refused', async () => {
    mkdirSync(join(folder, 'a/b'), { recursive: true })
    const server = createServer().listen(join(folder, 'a/b/socket'))
    await new Promise((resolve) => server.once('listening', resolve))
    try {
      const reason = 'through which a guest would reach a program outside'
      await expect(resolveMounts([mount(join(folder, 'a/b/socket'))])).rejects.toThrow(`it is a socket, ${reason}`)
      await expect(resolveMounts([mount(join(folder, 'a'))])).rejects.toThrow(`it holds the socket ${folder}/a/b/socket, ${reason}`)
    } finally {
      await new Promise((resolve) => server.close(resolve))
    }
    await expect(resolveMounts([mount(join(folder, 'a'))])).resolves.toHaveLength(1)
  })

  test.each(['.ssh', '.aws', '.config/gcloud', '.docker/config.json', 'id_ed25519'])('with %s at its top is refused as a home with keys', async (name) => {
    mkdirSync(join(folder, 'home', name), { recursive: true })
    expect(await refusal(join(folder, 'home'))).toContain(`it holds ${name}: `)
  })

  test('that is the home of whoever calls is refused, a project in it is not', async () => {
    expect(await refusal(homedir())).toMatch(/it is a home folder|it is the whole host/)
  })

  test('that is a hard link to a secret is recognised', async () => {
    const home = mkdtempSync(join(homedir(), '.gbx-test-'))
    const before = process.env.HOME
    try {
      process.env.HOME = home
      writeFileSync(join(home, '.netrc'), 'secret')
      linkSync(join(home, '.netrc'), join(home, 'harmless'))
      await expect(resolveMounts([mount(join(home, 'harmless'))])).rejects.toThrow(`it is the same as ${home}/.netrc: passwords or tokens are kept there`)
    } finally {
      process.env.HOME = before
      rmSync(home, { recursive: true })
    }
  })

  testUnless(isRoot && 'root may read everything')('that whoever calls may not read or reach is refused', async () => {
    mkdirSync(join(folder, 'closed/inner'), { recursive: true })
    chmodSync(join(folder, 'closed'), 0)
    try {
      expect(await refusal(join(folder, 'closed'))).toContain('this user may not read it')
      expect(await refusal(join(folder, 'closed/inner'))).toContain('this user may not reach it')
    } finally {
      chmodSync(join(folder, 'closed'), 0o700)
    }
  })
})

describe('a source that is opened for good', () => {
  test('must still be where it was when it was resolved', async () => {
    mkdirSync(join(folder, 'real'))
    mkdirSync(join(folder, 'other'))
    const resolved = await resolveMounts([mount(join(folder, 'real'))])
    renameSync(join(folder, 'real'), join(folder, 'aside'))
    symlinkSync('other', join(folder, 'real'))
    expect(() => openMountSources(resolved, 'single')).toThrow(`mounts[0].source: ${folder}/real leads to ${folder}/other by now`)
    expect(leftOpen()).toBe(0)
  })

  test('read-write must not belong to root, and without ids of its own not to anyone else', () => {
    const uid = isRoot ? 4321 : (process.getuid?.() ?? -1)
    if (isRoot) chownSync(folder, uid, uid)
    const opened = openMountSources([mount(folder, 'rw')], isRoot ? 'range' : 'single')
    expect(opened.list).toMatchObject([{ path: folder, isFolder: true, uid }])
    opened.close()
    const refused = (source: string) => {
      try {
        openMountSources([mount(source, 'rw')], 'single').close()
      } catch (error) {
        return error
      }
      return undefined
    }
    expect(refused('/usr/share')).toMatchObject({
      code: 'unsupported',
      message: 'mounts[0].mode: /usr/share cannot be mounted read-write: it belongs to root, and the cell’s user would write files of root’s',
      hint: isRoot ? 'cp -r /usr/share ./copy && chown -R 1000:1000 ./copy' : 'cp -r /usr/share ./copy',
    })
    if (isRoot)
      expect(refused(folder)).toMatchObject({
        code: 'unsupported',
        message: expect.stringContaining('it belongs to uid 4321, and without root only') as string,
      })
    expect(leftOpen()).toBe(0)
  })

  testUnless(!isRoot && 'only root can give files to another group')('read-write must be of its owner’s own group, where the cell gets that too', () => {
    const asked = (gid: number, mode: 'ro' | 'rw') => () => {
      chownSync(folder, 4321, gid)
      const opened = openMountSources([mount(folder, mode)], 'range')
      opened.close()
      return opened.list.map(({ uid, isOwnGroup }) => [uid, isOwnGroup])
    }
    expect(asked(4321, 'rw')()).toEqual([[4321, true]])
    expect(asked(0, 'ro')()).toEqual([[4321, false]])
    for (const gid of [0, 4, 4322]) expect(asked(gid, 'rw')).toThrow(`its group is gid ${gid}, which is not uid 4321’s own`)
    expect(leftOpen()).toBe(0)
  })

  test.each([
    ['the one of its account', 1000, 100],
    ['none when that is root’s', 1001, undefined],
    ['none when its account is broken', 1002, undefined],
    ['its own number without an account', 4321, 4321],
    ['none when that number is a group of others', 27, undefined],
    ['none when that number is the group of another account', 100, undefined],
    ['none for root', 0, undefined],
  ])('has as its owner’s own group %s', (_, uid, group) => {
    const passwd = 'root:x:0:0::/root:/bin/sh\nann:x:1000:100::/home/ann:/bin/sh\nann2:x:1000:27::/:/bin/sh\nop:x:1001:0::/:/bin/sh\nodd:x:1002:::/:/bin/sh\n'
    expect(ownGroupOf(uid, { passwd, group: 'root:x:0:\nsudo:x:27:ann\n' })).toBe(group)
  })

  test('within another needs a place there of the same kind, which is never made', () => {
    mkdirSync(join(folder, 'outer/inner'), { recursive: true })
    writeFileSync(join(folder, 'file'), '')
    symlinkSync('inner', join(folder, 'outer/link'))
    const within = (source: string, target: string) => () =>
      openMountSources([mount(join(folder, 'outer')), { source: join(folder, source), target, mode: 'ro' }], 'single').close()
    const lies = (target: string, kind: string) =>
      `mounts[1].target: ${target} lies in mounts[0], whose source ${folder}/outer has no such ${kind}, and nothing is made there`
    expect(within('outer', '/data/inner')).not.toThrow()
    expect(within('outer', '/data/missing')).toThrow(lies('/data/missing', 'folder'))
    expect(within('outer', '/data/link')).toThrow(lies('/data/link', 'folder'))
    expect(within('file', '/data/inner')).toThrow(lies('/data/inner', 'file'))
    expect(within('file', '/workspace')).toThrow(`mounts[1].target: /workspace is a folder, and ${folder}/file is none`)
    expect(leftOpen()).toBe(0)
  })
})
