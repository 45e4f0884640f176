import { totalmem } from 'node:os'
import { expect, test } from 'vitest'
import { boundsOfDisk } from '../../../src/sys/posture/memory-disk.js'
import { parseMountTable } from '../../../src/sys/posture/mount-table.js'
import { pageBytes } from '../../../src/sys/posture/page-size.js'

function bounds(...lines: string[]) {
  return boundsOfDisk(parseMountTable(lines.join('\n')))
}

const disk = 'rw,nosuid - tmpfs tmpfs rw,size=102400k,nr_inodes=25600,mode=755'

test('one disk that is mounted at many places counts once', () => {
  expect(bounds(`2 1 0:52 /0 /workspace ${disk}`, `3 1 0:52 /1 /tmp ${disk}`)).toEqual({ bytes: 100 * 2 ** 20, inodes: 25600 })
})

test('two disks count together, and what cannot be written to does not count', () => {
  const others = ['4 1 0:9 / /a ro - tmpfs t rw,size=4k,nr_inodes=1', '5 1 0:8 / /b rw - tmpfs t ro,size=4k', '6 1 0:7 / /proc rw - proc p rw']
  expect(bounds(`2 1 0:52 /0 /a ${disk}`, '3 1 0:53 / /b rw - tmpfs t rw,size=1g,nr_inodes=2k', ...others)).toEqual({
    bytes: 100 * 2 ** 20 + 2 ** 30,
    inodes: 25600 + 2048,
  })
})

test('a disk without bounds of its own has the kernel’s: half of the memory', () => {
  const pages = Math.floor(totalmem() / pageBytes() / 2)
  expect(bounds('2 1 0:52 / /a rw - tmpfs t rw')).toEqual({ bytes: pages * pageBytes(), inodes: pages })
})
