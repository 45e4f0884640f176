import { expect, it } from 'vitest'
import { parseCgroupMounts } from '../../src/sys/cgroup-mounts.js'

it('finds the hierarchies of a hybrid host and this process in each', () => {
  const mountinfo = [
    '23 1 254:0 / / rw - ext4 /dev/vda rw',
    '32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct',
    '35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory',
    '36 31 0:33 / /sys/fs/cgroup/devices rw,relatime - cgroup cgroup rw,devices',
    '40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd',
    '41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw',
  ].join('\n')
  const cgroup = '4:memory:/jobs/7\n2:cpu,cpuacct:/\n5:devices:/x\n1:name=systemd:/y\n0::/session\n'
  expect(parseCgroupMounts({ mountinfo, cgroup })).toEqual([
    { version: 1, mountPoint: '/sys/fs/cgroup/cpu,cpuacct', controllers: ['cpu', 'cpuacct'], own: '/sys/fs/cgroup/cpu,cpuacct' },
    { version: 1, mountPoint: '/sys/fs/cgroup/memory', controllers: ['memory'], own: '/sys/fs/cgroup/memory/jobs/7' },
    { version: 2, mountPoint: '/sys/fs/cgroup/unified', controllers: [], own: '/sys/fs/cgroup/unified/session' },
  ])
})

it('sees through mounts that show a part of a hierarchy, repeated mounts and blanks in paths', () => {
  const mountinfo = [
    '35 31 0:32 /docker/abc /sys/fs/cgroup/memory\\040here ro - cgroup cgroup rw,memory',
    '36 31 0:32 / /second rw - cgroup cgroup rw,memory',
    '37 31 0:33 /docker/abc /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids',
  ].join('\n')
  const cgroup = '4:memory:/docker/abc/inner\n3:pids:/elsewhere\n'
  expect(parseCgroupMounts({ mountinfo, cgroup }).map(({ own }) => own)).toEqual(['/sys/fs/cgroup/memory here/inner', '/sys/fs/cgroup/pids'])
})

it('takes the mount itself for a process outside of the namespace that is shown', () => {
  const mountinfo = '30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw'
  expect(parseCgroupMounts({ mountinfo, cgroup: '0::/../../other' }).map(({ own }) => own)).toEqual(['/sys/fs/cgroup'])
})
