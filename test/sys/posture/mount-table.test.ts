import { describe, expect, test } from 'vitest'
import { mountOf, parseMountTable, reachableMounts } from '../../../src/sys/posture/mount-table.js'

const flags = { nosuid: false, nodev: false, noexec: false }

function targets(text: string): string[] {
  return reachableMounts(parseMountTable(text)).map(({ target, type }) => `${target} ${type}`)
}

describe('a line of mountinfo', () => {
  test('tells the filesystem, the place and what is forbidden there', () => {
    expect(parseMountTable('104 100 0:48 / /dev ro,nosuid,noexec,relatime - tmpfs tmpfs rw,size=16k,nr_inodes=32,mode=755\n')).toEqual([
      {
        id: 104,
        parent: 100,
        device: '0:48',
        target: '/dev',
        type: 'tmpfs',
        access: 'ro',
        nosuid: true,
        nodev: false,
        noexec: true,
        options: 'rw,size=16k,nr_inodes=32,mode=755',
      },
    ])
  })

  test.each([
    ['no optional field', ''],
    ['one', 'master:1 '],
    ['many', 'shared:12 master:3 propagate_from:2 unbindable '],
  ])('is read the same with %s', (_, tags) => {
    expect(parseMountTable(`22 1 254:0 / / rw,nodev ${tags}- ext4 /dev/vda rw,discard`)).toEqual([
      { id: 22, parent: 1, device: '254:0', target: '/', type: 'ext4', access: 'rw', ...flags, nodev: true, options: 'rw,discard' },
    ])
  })

  test('names a place with blanks, backslashes and dashes as it is', () => {
    const [entry] = parseMountTable('36 35 0:22 /a\\040-\\040b /mnt/a\\040-\\040b\\011c\\134d\\012e rw - fuse.x\\040y a\\040b rw')
    expect(entry?.target).toBe('/mnt/a - b\tc\\d\ne')
  })

  test('is read-only when either the mount or the whole filesystem is', () => {
    const access = ['rw - ext4 x rw', 'ro - ext4 x rw', 'rw - ext4 x ro', 'ro,nosuid - ext4 x ro,size=1k'].map(
      (rest) => parseMountTable(`2 1 0:1 / /a ${rest}`)[0]?.access,
    )
    expect(access).toEqual(['rw', 'ro', 'ro', 'ro'])
  })

  test('takes no option for another that begins like it', () => {
    expect(parseMountTable('2 1 0:1 / /a rw,noexecutive,root - overlay x rw,lowerdir=/ro,errors=remount-ro')[0]).toMatchObject({ access: 'rw', noexec: false })
  })

  test('with thousands of options and beside thousands of others is still one line', () => {
    const layers = Array.from({ length: 5000 }, (_, index) => `lowerdir+=/l${index}`).join(',')
    const lines = Array.from({ length: 3000 }, (_, index) => `${index + 2} 1 0:${index} / /m${index} rw - overlay overlay ro,${index === 7 ? layers : 'x'}`)
    const table = parseMountTable(`1 0 0:1 / / rw - tmpfs tmpfs rw\n${lines.join('\n')}\n`)
    expect([table.length, table[8]?.access, table[8]?.options.split(',').length]).toEqual([3001, 'ro', 5001])
    expect(reachableMounts(table)).toHaveLength(3001)
  })

  test('that is none is passed over', () => {
    expect(parseMountTable('\nnothing of the kind\n')).toEqual([])
  })
})

describe('the mounts that can be reached', () => {
  test('are sorted by place, whatever the order of the table', () => {
    expect(targets('3 1 0:3 / /usr ro - ext4 x rw\n1 0 0:1 / / rw - tmpfs x rw\n2 1 0:2 / /etc rw - ext4 x rw')).toEqual(['/ tmpfs', '/etc ext4', '/usr ext4'])
  })

  test('do not include one that another covers, with what was mounted below it', () => {
    const text = ['1 0 0:1 / / rw - tmpfs x rw', '2 1 0:2 / /usr ro - ext4 x rw', '3 2 0:3 / /usr/share ro - xfs x rw', '4 2 0:4 / /usr ro - overlay x ro']
    expect(targets(text.join('\n'))).toEqual(['/ tmpfs', '/usr overlay'])
    expect(targets(text.toReversed().join('\n'))).toEqual(['/ tmpfs', '/usr overlay'])
  })

  test('include what was mounted on the cover', () => {
    expect(targets('1 0 0:1 / / rw - tmpfs x rw\n2 1 0:2 / /a rw - ext4 x rw\n3 2 0:3 / /a rw - overlay x rw\n4 3 0:4 / /a/b rw - proc x rw')).toEqual([
      '/ tmpfs',
      '/a overlay',
      '/a/b proc',
    ])
  })

  test('do not include one beneath a folder that was covered later', () => {
    expect(targets('1 0 0:1 / / rw - tmpfs x rw\n2 1 0:2 / /a/b rw - ext4 x rw\n3 1 0:3 / /a rw - proc x rw\n4 1 0:4 / /ab rw - xfs x rw')).toEqual([
      '/ tmpfs',
      '/a proc',
      '/ab xfs',
    ])
  })

  test('begin at the root that covers the first root', () => {
    expect(targets('1 0 0:1 / / rw - rootfs x rw\n2 1 0:2 / / rw - ext4 x rw\n3 2 0:3 / /proc rw - proc x rw')).toEqual(['/ ext4', '/proc proc'])
  })
})

test('a path lies on the nearest mount above it', () => {
  const mounts = reachableMounts(parseMountTable('1 0 0:1 / / rw - tmpfs x rw\n2 1 0:2 / /usr rw - ext4 x rw\n3 2 0:3 / /usr/lib rw - xfs x rw'))
  const types = ['/', '/etc', '/usr', '/usr/lib64', '/usr/lib/x', '/usrx'].map((path) => mountOf(path, mounts)?.type)
  expect(types).toEqual(['tmpfs', 'tmpfs', 'ext4', 'ext4', 'xfs', 'tmpfs'])
})
