import { describe, expect, test } from 'vitest'
import { checkMountTargets } from '../../src/policy/mounts.js'
import { parseSpec } from '../../src/policy/spec.js'

const places = '/workspace, /data, /input, /output, /home/user/…, /mnt/…, /srv/…, /opt/…'

function at(...targets: string[]) {
  return targets.map((target) => ({ source: '/srv/project', target, mode: 'ro' as const }))
}

describe('where mounts may go', () => {
  test.each(['/workspace', '/workspace/a', '/data', '/data/b/c', '/input', '/output/x', '/home/user/x', '/mnt/x', '/srv/x y', '/opt/…'])('%s', (target) => {
    expect(checkMountTargets(at(target))).toBeUndefined()
  })

  test.each([
    '/',
    '/etc',
    '/usr/local',
    '/home',
    '/home/user',
    '/home/userx/a',
    '/mnt',
    '/srv',
    '/opt',
    '/workspacex',
    '/tmp/x',
    '/dev/shm/x',
    '/proc/x',
    '/root/x',
  ])('not at %s', (target) => {
    expect(() => checkMountTargets(at('/mnt/a', target))).toThrow(
      expect.objectContaining({ code: 'invalid', message: `mounts[1].target: '${target}' is outside the places for mounts: ${places}` }),
    )
  })

  test.each(['/workspace/', '/workspace//a', '/workspace/./a', '/workspace/../etc', '/mnt/..', '/mnt/a/.', '//mnt/a'])('not by the way of %s', (target) => {
    expect(() => checkMountTargets(at(target))).toThrow(
      expect.objectContaining({ code: 'invalid', message: `mounts[0].target: '${target}' must be written without . and .., doubled and closing slashes` }),
    )
  })

  test('not with control characters, and not by a name that no filesystem takes', () => {
    expect(() => checkMountTargets(at('/mnt/a\nb'))).toThrow("mounts[0].target: '/mnt/a\uFFFDb' must not contain control characters")
    expect(() => checkMountTargets(at(`/mnt/${'é'.repeat(128)}`))).toThrow('has a name of more than 255 bytes')
  })

  test('not two at the same place, but one within another', () => {
    expect(() => checkMountTargets(at('/mnt/a', '/mnt/b', '/mnt/a'))).toThrow("mounts[2].target: '/mnt/a' is the target of mounts[0] already")
    expect(checkMountTargets(at('/mnt/a/b', '/mnt/a'))).toBeUndefined()
  })
})

test('a spec is held to it, and mounts are read-only unless it says otherwise', () => {
  expect(() => parseSpec({ mounts: [{ source: '/srv/x', target: '/etc' }] })).toThrow(/^mounts\[0\]\.target: '\/etc' is outside the places/)
  expect(parseSpec({ mounts: [{ source: '/srv/x', target: '/data' }] }).mounts).toEqual([{ source: '/srv/x', target: '/data', mode: 'ro' }])
})
