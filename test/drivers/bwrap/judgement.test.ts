import { describe, expect, test } from 'vitest'
import type { BwrapFacts } from '../../../src/drivers/bwrap/facts.js'
import { canMapRanges, judgeFeatures, judgeLimits, judgeUsers, leastLimits } from '../../../src/cell/judgement.js'
import { obstacleOf, obstaclesBefore } from '../../../src/drivers/bwrap/obstacles.js'

const root: BwrapFacts = {
  platform: 'linux',
  uid: 0,
  capabilities: 0x1ffffffffffn,
  uidMap: [[0, 0, 4_294_967_295]],
  kernel: [6, 1],
  bwrap: { path: '/usr/bin/bwrap', version: '0.8.0' },
  installBwrap: 'apt-get install -y bubblewrap',
  missingPrograms: [],
  sysctls: { unprivilegedUsernsClone: undefined, maxUserNamespaces: '15000', apparmorRestrictsUserns: undefined },
  container: undefined,
  memoryBytes: 2 ** 30,
  openFiles: 20_000,
}
const user: BwrapFacts = { ...root, uid: 1000, capabilities: 0n }
const refused = 'bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged user namespaces.'

function judged(facts: BwrapFacts, said: string) {
  return obstacleOf(facts, { opened: false, said })
}

describe('before anything is tried', () => {
  test('a host that has everything is in nobody’s way', () => {
    expect(obstaclesBefore(root)).toEqual([])
  })

  test('another system is the only thing worth saying', () => {
    const [only, ...others] = obstaclesBefore({ ...root, platform: 'darwin', bwrap: undefined, missingPrograms: ['warden'] })
    expect(only).toMatchObject({ what: 'not Linux', why: expect.stringContaining('darwin') as string })
    expect(others).toEqual([])
  })

  test('a missing bwrap and missing programs are both told, each with its command', () => {
    expect(obstaclesBefore({ ...user, bwrap: undefined, missingPrograms: ['launcher', 'warden'] })).toEqual([
      { what: 'no bwrap', why: expect.any(String) as string, hint: 'apt-get install -y bubblewrap' },
      { what: 'native programs not built', why: 'missing: launcher, warden', hint: 'node scripts/build-native.mjs' },
    ])
  })
})

describe('why a trial did not open', () => {
  test('a bwrap that does not know a flag is too old', () => {
    expect(judged({ ...user, bwrap: { path: '/usr/bin/bwrap', version: '0.4.0' } }, 'bwrap: Unknown option --clearenv')).toMatchObject({
      what: 'bwrap too old',
      why: 'bwrap 0.4.0 does not know --clearenv',
      hint: 'apt-get install -y bubblewrap',
    })
  })

  test.each([
    ['unprivilegedUsernsClone', '0', 'kernel.unprivileged_userns_clone=1'],
    ['maxUserNamespaces', '0', 'user.max_user_namespaces=15000'],
    ['apparmorRestrictsUserns', '1', 'kernel.apparmor_restrict_unprivileged_userns=0'],
  ] as const)('user namespaces switched off by %s are switched on by a command', (sysctl, value, setting) => {
    const sysctls = { ...root.sysctls, [sysctl]: value }
    expect(judged({ ...user, sysctls }, refused)).toMatchObject({ what: 'user namespaces are switched off', hint: `sudo sysctl -w ${setting}` })
    expect(judged({ ...root, sysctls }, refused).hint).toBe(`sysctl -w ${setting}`)
  })

  test('AppArmor also shows when only the id map is refused', () => {
    const sysctls = { ...root.sysctls, apparmorRestrictsUserns: '1' }
    expect(judged({ ...user, sysctls }, 'bwrap: setting up uid map: Permission denied').what).toBe('user namespaces are switched off')
  })

  test('no namespace left is told by its bound', () => {
    expect(judged(user, 'bwrap: Creating new namespace failed: No space left on device')).toMatchObject({
      hint: 'sudo sysctl -w user.max_user_namespaces=60000',
    })
  })

  test('a masked /proc is told as the container that it is', () => {
    const container = { ...root, container: '/.dockerenv' }
    expect(judged(container, "bwrap: Can't mount proc on /newroot/proc: Operation not permitted")).toMatchObject({
      what: 'inside an unprivileged container',
      why: expect.stringContaining('/.dockerenv') as string,
      hint: expect.stringContaining('systempaths=unconfined') as string,
    })
  })

  test('a container that refuses namespaces is told as such, outside of one the words themselves are', () => {
    const said = 'launcher: unshare mount namespace: Operation not permitted'
    expect(judged({ ...root, container: '/run/.containerenv' }, said)).toMatchObject({
      what: 'inside an unprivileged container',
      hint: expect.stringContaining('seccomp=unconfined') as string,
    })
    expect(judged(root, said)).toMatchObject({ what: 'a trial cell did not open', why: said })
  })

  test('a failure that knows the way on keeps it', () => {
    expect(obstacleOf(user, { opened: false, said: 'cannot create /nonexistent: EACCES', hint: 'export GLOVEBOX_STATE_DIR=…' })).toMatchObject({
      why: 'cannot create /nonexistent: EACCES',
      hint: 'export GLOVEBOX_STATE_DIR=…',
    })
  })
})

describe('ids of a cell’s own', () => {
  test('need root, its capabilities and a map that has the range', () => {
    expect([root, user, { ...root, capabilities: 0xa80425fbn }, { ...root, uidMap: [[0, 100_000, 65_536]] as const }].map(canMapRanges)).toEqual([
      true,
      false,
      false,
      false,
    ])
  })

  test('decide whether a run may be root', () => {
    expect(judgeUsers(root).root).toEqual({ available: true })
    expect(judgeUsers(user).root).toMatchObject({ available: false, why: expect.stringContaining('only root') as string })
  })
})

describe('limits', () => {
  test('without cgroups, memory and processor are not enforced and say why; processes and disk are', () => {
    const limits = judgeLimits(user, 'none here')
    expect([limits.memory, limits.cpus]).toEqual([
      { enforced: false, why: 'none here' },
      { enforced: false, why: 'none here' },
    ])
    expect(limits.disk).toMatchObject({ enforced: true, max: 2 ** 29 })
    expect(limits.processes).toMatchObject({ enforced: true, by: expect.stringContaining('RLIMIT_NPROC') as string })
  })

  test('an old kernel counts the processes of an ordinary user everywhere, so that limit is not enforced', () => {
    expect(judgeLimits({ ...user, kernel: [5, 10] }, 'none').processes).toMatchObject({ enforced: false, why: expect.stringContaining('5.10') as string })
    expect(judgeLimits({ ...root, kernel: [5, 10] }, 'none').processes).toMatchObject({ enforced: true })
  })

  test('what cgroups hold is theirs, with the least that a cell needs', () => {
    const by = { enforced: true, by: 'cgroup' } as const
    const not = (why: string) => ({ enforced: false, why }) as const
    const held = { memory: by, cpus: not('no cpu'), cpuTime: by, processes: by, readRate: by, writeRate: not('not counted') }
    expect(judgeLimits(user, held)).toEqual({
      ...held,
      memory: { ...by, min: leastLimits.memory },
      processes: { ...by, min: 1 },
      disk: { enforced: true, by: 'a tmpfs of that size, shared by all that is writable', min: leastLimits.disk, max: 2 ** 29 },
      inodes: { enforced: true, by: 'the inode count of that tmpfs', min: leastLimits.inodes },
      fileSize: { enforced: true, by: 'RLIMIT_FSIZE of each process' },
      openFiles: { enforced: true, by: 'RLIMIT_NOFILE of each process', min: leastLimits.openFiles, max: 20_000 },
    })
  })

  test('without cgroups nothing counts a run or slows its disk, and the reason is theirs', () => {
    const none = { enforced: false, why: 'none here' }
    expect(judgeLimits(user, 'none here')).toMatchObject({ cpuTime: none, readRate: none, writeRate: none })
  })
})

describe('mounts and a writable root', () => {
  const yes = { available: true }

  test('are there as root where the kernel does them', () => {
    expect(judgeFeatures(root, undefined)).toMatchObject({ 'mounts-ro': yes, 'mounts-rw': yes, 'root-overlay': yes })
    const old = judgeFeatures({ ...root, kernel: [5, 10] }, 'launcher: map ids of /usr: Function not implemented')
    const why = 'Linux 5.10 cannot map the owner of a mount; 5.12 can'
    expect([old['mounts-ro'], old['mounts-rw']]).toEqual([
      { available: false, why },
      { available: false, why },
    ])
    expect(old['root-overlay']).toEqual({ available: false, why: 'the kernel refused to overlay /usr: launcher: map ids of /usr: Function not implemented' })
  })

  test('are there with a single id, but for the root', () => {
    expect(judgeFeatures({ ...user, kernel: [5, 10] }, undefined)).toMatchObject({
      'mounts-ro': yes,
      'mounts-rw': yes,
      'root-overlay': { available: false, why: 'only root can give a cell ids of its own, which own what is in its root' },
    })
  })
})
