import { expect, test } from 'vitest'
import { defaultLimits } from '../../../src/contract/limit-words.js'
import { guestUsers } from '../../../src/cell/arguments.js'
import { type BwrapPlan, cellArgv } from '../../../src/drivers/bwrap/arguments.js'

const plan: BwrapPlan = {
  spec: {
    id: 'abcdefghij0123456789',
    root: {
      name: 'host',
      binds: [
        { source: '/usr', target: '/usr' },
        { source: '/var/cache/glovebox/templates/etc-1', target: '/etc' },
      ],
      symlinks: [{ path: '/bin', target: 'usr/bin' }],
      shell: '/bin/sh',
      env: {},
    },
    limits: { ...defaultLimits, inodes: 25_600, fileSizeBytes: 104_857_600, stated: [] },
    rootMode: 'readonly',
    mounts: [],
    commands: undefined,
  },
  ids: { kind: 'single' },
  programs: { launcher: '/opt/glovebox/launcher', bwrap: '/usr/bin/bwrap', warden: '/opt/glovebox/warden' },
  ownerPid: 4711,
}
const range = { kind: 'range', base: 0x78000000, size: 65_536 } as const
const cgroups = {
  joins: ['/sys/fs/cgroup/c/warden/tasks'],
  guestJoins: ['/sys/fs/cgroup/cpu/c/tasks'],
  runJoins: [{ folder: '/sys/fs/cgroup/c/guest', file: 'tasks' }],
}

/** One option with its values a line, so that a change shows as what it is. */
function lines(argv: readonly string[]): string {
  return `${argv.join(' ').replaceAll(/ (?=--)/g, '\n')}\n`
}

test('a cell with ids of its own is built by exactly these arguments', async () => {
  await expect(lines(cellArgv({ ...plan, ids: range, cgroups, builds: true }))).toMatchFileSnapshot('./golden/range.txt')
})

test('a cell with a single id is built by exactly these arguments', async () => {
  await expect(lines(cellArgv(plan))).toMatchFileSnapshot('./golden/single.txt')
})

test('no guest may signal, become or trace others: root has five capabilities, user none', () => {
  const rootMask = (1n << 0n) | (1n << 1n) | (1n << 3n) | (1n << 4n) | (1n << 10n)
  expect(guestUsers(range).map(({ name, uid, capabilities }) => [name, uid, capabilities])).toEqual([
    ['user', 1000, 0n],
    ['root', 0, rootMask],
  ])
  expect(guestUsers({ kind: 'single' }).map(({ name, uid, capabilities }) => [name, uid, capabilities])).toEqual([['user', 1000, 0n]])
})

test('the disk has the bytes and the inodes that were asked for', () => {
  const argv = cellArgv({ ...plan, spec: { ...plan.spec, limits: { ...plan.spec.limits, diskBytes: 65_536, inodes: 77 } } })
  expect(argv.slice(argv.indexOf('--disk'), argv.indexOf('--disk') + 3)).toEqual(['--disk', '65536', '77'])
})

const sources = [
  { descriptor: 20, path: '/srv/deep', isFolder: true, uid: 4321, gid: 4322, isOwnGroup: true },
  { descriptor: 21, path: '/srv/project', isFolder: true, uid: 4321, gid: 27, isOwnGroup: false },
  { descriptor: 22, path: '/srv/roots-file', isFolder: false, uid: 0, gid: 0, isOwnGroup: false },
]
const mounts = [
  { source: '/srv/deep', target: '/workspace/a/b', mode: 'rw' },
  { source: '/srv/project', target: '/workspace', mode: 'ro' },
  { source: '/srv/roots-file', target: '/mnt/file', mode: 'ro' },
] as const
const commands = { executable: ['/usr/bin/true'], readable: [], unlisted: undefined }

/** The options of the given names, with their values. */
function options(argv: readonly string[], ...names: string[]): string[] {
  return lines(argv)
    .split('\n')
    .filter((line) => names.includes(line.split(' ')[0] ?? ''))
}

test('a mount is bound by descriptor with its owner mapped, those within another last, and takes the place of a writable folder', () => {
  const argv = cellArgv({ ...plan, ids: range, spec: { ...plan.spec, mounts }, sources })
  expect(options(argv, '--mount', '--pass', '--bind', '--recognise', '--place')).toEqual([
    '--mount 4 mount1 ro 2013266920 -',
    '--mount 5 mount2 ro - -',
    '--mount 3 mount0 rw 2013266920 4322',
    '--bind /tmp/mount0 /.mounts/0',
    '--place /.mounts/1 /workspace ro',
    '--place /.mounts/2 /mnt/file ro',
    '--place /.mounts/0 /workspace/a/b rw',
  ])
  expect(options(argv, '--ro-bind')).toEqual(expect.arrayContaining(['--ro-bind /tmp/mount1 /.mounts/1', '--ro-bind /tmp/mount2 /.mounts/2']))
  expect(options(argv, '--writable').map((line) => line.split(' ')[1])).toEqual(['/home/user', '/tmp', '/var/tmp', '/dev/shm', '/root'])
})

test('with a single id a mount is bound by its path and recognised by its descriptor', () => {
  const argv = cellArgv({ ...plan, spec: { ...plan.spec, mounts, commands }, sources })
  expect(options(argv, '--mount', '--pass', '--bind', '--recognise', '--place', '--noexec')).toEqual([
    '--pass 4 129',
    '--pass 5 130',
    '--pass 3 128',
    '--bind /srv/deep /.mounts/0',
    '--recognise 129 /.mounts/1',
    '--recognise 130 /.mounts/2',
    '--recognise 128 /.mounts/0',
    '--place /.mounts/1 /workspace ro,noexec',
    '--place /.mounts/2 /mnt/file ro,noexec',
    '--place /.mounts/0 /workspace/a/b rw,noexec',
    '--noexec',
  ])
})

test.each([
  [{ ...range }, ['--mount 3 mount0 rw 2013266920 4322', '--overlay /.mounts/0 0', '--place /.mounts/0 /workspace rw']],
  [{ kind: 'single' }, ['--overlay /.mounts/0 0', '--place /.mounts/0 /workspace rw']],
] as const)('what is overlaid is bound read-only, and written to on the disk: %j', (ids, expected) => {
  const overlaid = { source: '/srv/deep', target: '/workspace', mode: 'overlay' } as const
  const argv = cellArgv({ ...plan, ids, spec: { ...plan.spec, mounts: [overlaid] }, sources: sources.slice(0, 1) })
  expect(options(argv, '--mount', '--overlay', '--place', '--layers')).toEqual(expected)
  expect(options(argv, '--ro-bind')).toContain(`--ro-bind ${ids.kind === 'single' ? '/srv/deep' : '/tmp/mount0'} /.mounts/0`)
  // Only then: the kernel closes the folder it works in to everyone.
  expect(options(argv, '--cap-add').includes('--cap-add CAP_DAC_OVERRIDE')).toBe(true)
  expect(options(cellArgv({ ...plan, ids: { kind: 'single' } }), '--cap-add').includes('--cap-add CAP_DAC_OVERRIDE')).toBe(false)
})

test('a root that is writable all over is the disk, and stays writable', () => {
  const argv = cellArgv({ ...plan, ids: range, spec: { ...plan.spec, rootMode: 'overlay' } })
  expect(options(argv, '--root', '--layer', '--veil', '--bind', '--disk', '--writable', '--folder', '--readonly')).toEqual([
    '--root 2013265920 104857600 25600',
    '--layer /usr /usr',
    '--layer /etc /var/cache/glovebox/templates/etc-1',
    '--bind /tmp/disk/root /',
    '--bind /tmp/disk/layered /.layers',
    '--folder /home 0 0 0755',
    '--folder /var 0 0 0755',
    '--folder /run 0 0 0755',
    '--folder /workspace 1000 1000 0755',
    '--folder /home/user 1000 1000 0755',
    '--folder /tmp 0 0 1777',
    '--folder /var/tmp 0 0 1777',
    '--folder /root 0 0 0700',
    '--readonly /proc/fs',
    '--readonly /proc/irq',
    '--readonly /proc/sys',
    '--readonly /proc/sysrq-trigger',
    '--readonly /dev',
  ])
})
