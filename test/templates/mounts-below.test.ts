import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { mountPointsBelow, mountsBelow } from '../../src/templates/mounts-below.js'

const row = (point: string): string => `36 35 98:0 / ${point} rw,noatime master:1 - ext4 /dev/root rw`

test('mount points strictly below a folder are told once each, parents first', () => {
  const mountinfo = ['/', '/usr/local/share', '/usr', '/usr/local', '/usr/local', '/usr2/x', '/usr/with\\040space\\134'].map(row).join('\n')
  expect(mountPointsBelow(mountinfo, '/usr')).toEqual(['/usr/local', '/usr/local/share', '/usr/with space\\'])
})

test('those of this machine are found, but for those out of reach', async () => {
  expect(readFileSync('/proc/self/mountinfo', 'utf8')).toContain(' /dev/pts ')
  expect(await mountsBelow('/dev')).toContain('/dev/pts')
  expect(await mountsBelow('/nowhere')).toEqual([])
})
