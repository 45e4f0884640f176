import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { findBlockDevices } from '../../src/sys/block-devices.js'

const mountinfo = [
  '20 1 8:2 / / rw - ext4 /dev/sda2 rw',
  '21 20 8:17 / /srv rw - xfs /dev/sdb1 rw',
  '22 21 0:40 / /srv/work rw - overlay overlay rw,lowerdir=/a',
  '23 20 0:41 / /tmp rw - tmpfs tmpfs rw',
  '24 20 8:33 / /media/a\\040stick rw - vfat /dev/sdc1 rw',
  '25 20 7:0 / /gone rw - ext4 /dev/loop0 rw',
].join('\n')
let sysDevBlock: string

/** As sysfs has it: a partition's folder lies in its disk's. */
beforeAll(() => {
  sysDevBlock = mkdtempSync(join(tmpdir(), 'block-devices-'))
  for (const [disk, number, partition, itsNumber] of [
    ['sda', '8:0', 'sda2', '8:2'],
    ['sdb', '8:16', 'sdb1', '8:17'],
    ['sdc', '8:32', 'sdc1', '8:33'],
  ] as const) {
    mkdirSync(join(sysDevBlock, disk, partition), { recursive: true })
    writeFileSync(join(sysDevBlock, disk, 'dev'), `${number}\n`)
    writeFileSync(join(sysDevBlock, disk, partition, 'partition'), '1\n')
    symlinkSync(join(sysDevBlock, disk), join(sysDevBlock, number))
    symlinkSync(join(sysDevBlock, disk, partition), join(sysDevBlock, itsNumber))
  }
})
afterAll(() => rmSync(sysDevBlock, { recursive: true }))

const find = (...paths: string[]) => findBlockDevices(paths, { mountinfo, sysDevBlock })

test('a folder is on the whole disk that its file system is on a part of', () => {
  expect(find('/usr', '/usr/share', '/srv/other')).toEqual({ devices: ['8:0', '8:16'], without: [], unattributed: [] })
})

test('what is mounted below a folder counts too, and what has no device of its own is named', () => {
  expect(find('/srv')).toEqual({
    devices: ['8:16'],
    without: [{ path: '/srv', type: 'overlay' }],
    unattributed: [{ path: '/srv', type: 'overlay' }],
  })
  expect(find('/srv/work/deep')).toMatchObject({ devices: [], without: [{ path: '/srv/work/deep', type: 'overlay' }] })
})

test('what is in memory needs no disk, and a disk that sysfs does not know is told', () => {
  expect(find('/tmp/x')).toEqual({ devices: [], without: [], unattributed: [] })
  expect(find('/gone')).toMatchObject({ devices: [], without: [{ path: '/gone', type: 'ext4' }] })
})

test('a file system whose later writes are nobody’s is told', () => {
  expect(find('/media/a stick/x')).toEqual({ devices: ['8:32'], without: [], unattributed: [{ path: '/media/a stick/x', type: 'vfat' }] })
})
