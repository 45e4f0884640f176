import { expect, test } from 'vitest'
import type { CellPlan } from '../../../src/cell/arguments.js'
import { defaultLimits } from '../../../src/contract/limit-words.js'
import { containerArgv, doorCount, firstDoor } from '../../../src/drivers/oci/arguments.js'
import type { Bundle } from '../../../src/drivers/oci/bundles.js'
import { type CgroupPlace, cgroupPlace, placeOfEntering, placeOfJoined } from '../../../src/drivers/oci/cgroup-place.js'
import { containerConfig } from '../../../src/drivers/oci/config.js'
import { runtimes } from '../../../src/drivers/oci/runtimes.js'

const name = 'glovebox.1.2.3.4.abcdefghij0123456789'
const joins = [`/sys/fs/cgroup/memory/slice/${name}/tasks`, `/sys/fs/cgroup/pids/${name}/tasks`]
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
  ids: { kind: 'range', base: 0x78000000, size: 65_536 },
  programs: { launcher: '/opt/glovebox/launcher', warden: '/opt/glovebox/warden' },
  ownerPid: 4711,
  firstDoor,
  cgroups: { joins, guestJoins: ['/sys/fs/cgroup/cpu/c/tasks'], runJoins: [{ folder: '/sys/fs/cgroup/memory/c/guest', file: 'tasks' }] },
}
const mounts = ['memory', 'pids', 'cpu', 'devices', 'name=systemd']
  .map((options, index) => `${30 + index} 25 0:${index} / /sys/fs/cgroup/${options.replace('name=', '')} rw - cgroup cgroup rw,${options}`)
  .concat('40 25 0:9 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw', '41 1 0:1 / /tmp rw - tmpfs tmpfs rw')
  .join('\n')
const bundle = { folder: '/run/glovebox/bundles/x', state: '/run/glovebox/bundles/x/state' } as Bundle

/** One option with its values a line, so that a change shows as what it is. */
function lines(argv: readonly string[]): string {
  return `${argv.join(' ').replaceAll(/ (?=--)/g, '\n')}\n`
}

const entering = { ...plan, isEntering: true }

test('a container of runc, whose warden enters its groups, is built by exactly these arguments', async () => {
  const place = placeOfEntering({ joins }, mounts) as CgroupPlace
  const runtime = runtimes.runc.argv({ path: '/usr/bin/runc', bundle, cellId: plan.spec.id, descriptors: doorCount(entering), leavesGroups: true })
  await expect(lines(containerArgv({ plan: entering, place, runtime, copied: '/usr/bin/runc' }))).toMatchFileSnapshot('./golden/runc-entering.txt')
})

test('a container that runc puts into its groups is built by exactly these arguments', async () => {
  const place = cgroupPlace(plan.spec.id, { joins }, mounts)
  const runtime = runtimes.runc.argv({ path: '/usr/bin/runc', bundle, cellId: plan.spec.id, descriptors: 2 })
  await expect(lines(containerArgv({ plan, place, runtime, copied: '/usr/bin/runc' }))).toMatchFileSnapshot('./golden/runc.txt')
})

test('a container of crun is started in its groups, where only one version of cgroups is to be seen', async () => {
  const place = placeOfJoined(mounts)
  const runtime = runtimes.crun.argv({ path: '/usr/bin/crun', bundle, cellId: plan.spec.id, descriptors: 2 })
  await expect(lines(containerArgv({ plan, place, runtime }))).toMatchFileSnapshot('./golden/crun.txt')
})

test('the container is told by exactly this document', async () => {
  const place = cgroupPlace(plan.spec.id, { joins }, mounts)
  await expect(`${JSON.stringify(containerConfig({ plan, cgroupsPath: place.path }), null, 2)}\n`).toMatchFileSnapshot('./golden/config.json')
})

test('the container of a warden that enters its groups is told of none, and makes no view of them', async () => {
  await expect(`${JSON.stringify(containerConfig({ plan: entering, cgroupsPath: undefined }), null, 2)}\n`).toMatchFileSnapshot('./golden/config-entering.json')
})

test('a runtime whose container enters its groups itself sees those of devices, which it cannot write to, and no others', () => {
  expect(placeOfEntering({ joins }, mounts)).toEqual({
    joiner: 'warden',
    path: undefined,
    shown: [],
    hidden: ['memory', 'pids', 'cpu', 'systemd', 'unified'].map((name) => `/sys/fs/cgroup/${name}`),
    fixed: ['/sys/fs/cgroup/devices'],
    made: [],
  })
})

test('in version 2, or without groups of the cell, nobody enters by himself', () => {
  expect(placeOfEntering({ joins: [...joins, `/sys/fs/cgroup/unified/${name}/cgroup.procs`] }, mounts)).toBeUndefined()
  expect(placeOfEntering({ joins: [] }, mounts)).toBeUndefined()
})

test('a runtime sees the groups of the cell under one path, those of devices, and no others', () => {
  const place = cgroupPlace(plan.spec.id, { joins }, mounts)
  expect(place).toMatchObject({
    path: `/${name}`,
    shown: [{ folder: '/sys/fs/cgroup/memory/slice', mountPoint: '/sys/fs/cgroup/memory' }],
    hidden: ['/sys/fs/cgroup/cpu', '/sys/fs/cgroup/systemd', '/sys/fs/cgroup/unified'],
  })
})

test('without groups of the cell the runtime sees only those of devices', () => {
  const place = cgroupPlace(plan.spec.id, undefined, mounts)
  expect(place.path).toBe(`/glovebox-${plan.spec.id}`)
  expect(place.shown).toEqual([])
  expect(place.hidden).not.toContain('/sys/fs/cgroup/devices')
})

test('where there is only version 2, nothing is hidden from whoever is started in the cell’s groups', () => {
  expect(placeOfJoined('40 25 0:9 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw').hidden).toEqual([])
})
