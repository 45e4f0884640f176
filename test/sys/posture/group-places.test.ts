import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { parseMemberships } from '../../../src/sys/cgroup-mounts.js'
import { createGroupPlaces } from '../../../src/sys/posture/group-places.js'
import { readProc } from '../../../src/sys/posture/proc-files.js'

const folder = mkdtempSync(join(tmpdir(), 'gbx-places-'))
afterAll(() => rmSync(folder, { recursive: true }))
const [controller, path] = [...parseMemberships(readProc('self', 'cgroup'))].find(([name]) => name === '' || /^\w+$/.test(name)) ?? ['', '/']
const mount = (root: string, point: string): string =>
  `31 24 0:27 ${root} ${point} rw - ${controller === '' ? 'cgroup2 cgroup2 rw' : `cgroup cgroup rw,${controller}`}\n`
const isIn = (mountinfo: string, group: string): boolean => createGroupPlaces(mountinfo).membershipOf(process.pid)(group)
const groupAt = (name: string, members: string): string => {
  const group = join(folder, name)
  mkdirSync(group, { recursive: true })
  writeFileSync(join(group, 'cgroup.threads'), members)
  return group
}

describe('whether a process is in a group', () => {
  const inner = path === '/' ? '' : path
  const itself = `/nowhere${path}`

  it('is told by its own list, where that and the mount name the same path', () => {
    expect(isIn(mount('/', '/nowhere'), itself)).toBe(true)
    expect(isIn(mount('/', '/nowhere'), `/nowhere${inner}/other`)).toBe(false)
    expect(isIn(mount('/other', '/nowhere'), itself)).toBe(false)
  })

  it('is told by the latest of two mounts at one place', () => {
    expect(isIn(mount('/', '/nowhere') + mount('/other', '/nowhere'), itself)).toBe(false)
    expect(isIn(`${mount('/', '/nowhere')}32 24 0:28 / /nowhere rw - tmpfs tmpfs rw\n`, itself)).toBe(false)
  })

  it('is told by the members of a folder that no path is known of, or another', () => {
    for (const mountinfo of ['', mount('/../..', folder), mount('/', folder)]) {
      expect(isIn(mountinfo, groupAt('with', `7\n${process.pid}\n`))).toBe(true)
      expect(isIn(mountinfo, groupAt('without', '7\n'))).toBe(false)
    }
  })
})
