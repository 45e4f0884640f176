import { expect, test } from 'vitest'
import { defaultLimits } from '../../../src/contract/limits.js'
import { type CellPlan, cellArgv, guestUsers } from '../../../src/drivers/bwrap/arguments.js'

const plan: CellPlan = {
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
const cgroups = { joins: ['/sys/fs/cgroup/c/warden/cgroup.procs'], guestJoins: ['/sys/fs/cgroup/c/guest/cgroup.procs'] }

/** One option with its values a line, so that a change shows as what it is. */
function lines(argv: readonly string[]): string {
  return `${argv.join(' ').replaceAll(/ (?=--)/g, '\n')}\n`
}

test('a cell with ids of its own is built by exactly these arguments', async () => {
  await expect(lines(cellArgv({ ...plan, ids: range, cgroups }))).toMatchFileSnapshot('./golden/range.txt')
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

test('a small disk still has room for a thousand files', () => {
  const argv = cellArgv({ ...plan, spec: { ...plan.spec, limits: { ...plan.spec.limits, diskBytes: 65_536 } } })
  expect(argv.slice(argv.indexOf('--disk'), argv.indexOf('--disk') + 3)).toEqual(['--disk', '65536', '1024'])
})
