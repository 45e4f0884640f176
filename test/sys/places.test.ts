import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { cacheFolder, cachePlace, type PlaceFacts, snapshotFolder, snapshotPlace, stateFolder } from '../../src/sys/places.js'
import { testUnless } from '../unless.js'

const folder = mkdtempSync(join(tmpdir(), 'gbx-places-'))
afterAll(() => rmSync(folder, { recursive: true }))

const uid = process.getuid?.() ?? -1
const root: PlaceFacts = { uid: 0, env: {}, home: '/root', isWritable: () => true }
const user: PlaceFacts = { uid: 1000, env: {}, home: '/home/ada', isWritable: () => true }

test.each([
  ['root', root, '/run/glovebox', '/var/cache/glovebox'],
  ['root without a writable /run', { ...root, isWritable: () => false }, '/var/lib/glovebox-run', '/var/cache/glovebox'],
  ['a user', user, '/home/ada/.cache/glovebox/run', '/home/ada/.cache/glovebox'],
  ['a user with XDG folders', { ...user, env: { XDG_RUNTIME_DIR: '/run/user/1000', XDG_CACHE_HOME: '/c' } }, '/run/user/1000/glovebox', '/c/glovebox'],
  [
    'a user whose runtime folder is gone',
    { ...user, env: { XDG_RUNTIME_DIR: '/run/user/1' }, isWritable: () => false },
    '/home/ada/.cache/glovebox/run',
    '/home/ada/.cache/glovebox',
  ],
  ['a user who says so', { ...user, env: { GLOVEBOX_STATE_DIR: '/s', GLOVEBOX_CACHE_DIR: '/c' } }, '/s', '/c'],
  ['root, whose records are the machine’s', { ...root, env: { GLOVEBOX_STATE_DIR: '/s', GLOVEBOX_CACHE_DIR: '/c' } }, '/run/glovebox', '/c'],
])('%s: state and caches have their places', (_, facts, state, cache) => {
  expect([stateFolder(facts), cacheFolder(facts)]).toEqual([state, cache])
})

test('places are made when asked for, and only for their owner', () => {
  const facts: PlaceFacts = { ...user, uid, env: { GLOVEBOX_CACHE_DIR: join(folder, 'a/b/cache') } }
  expect(statSync(cachePlace(facts)).mode & 0o777).toBe(0o700)
})

test('a place that cannot be made is told with the way on', () => {
  const file = join(folder, 'file')
  writeFileSync(file, '')
  const facts: PlaceFacts = { ...user, uid, env: { GLOVEBOX_CACHE_DIR: join(file, 'cache') } }
  expect(() => cachePlace(facts)).toThrow(expect.objectContaining({ code: 'unavailable', message: `cannot write to ${file}/cache: ENOTDIR` }))
})

test('a place where the system makes no folders is refused, not tried for ever', () => {
  const facts: PlaceFacts = { ...user, uid, env: { GLOVEBOX_CACHE_DIR: '/proc/glovebox/cache' } }
  expect(() => cachePlace(facts)).toThrow(expect.objectContaining({ code: 'unavailable', message: 'cannot write to /proc/glovebox/cache: ENOENT' }))
})

testUnless(uid !== 0 && 'only root can give a folder away')('a place that belongs to someone else is refused', () => {
  const taken = join(folder, 'taken')
  mkdirSync(taken)
  chownSync(taken, 12345, 12345)
  expect(() => cachePlace({ ...root, env: { GLOVEBOX_CACHE_DIR: taken } })).toThrow(
    expect.objectContaining({ code: 'unavailable', message: `${taken} belongs to uid 12345, not to uid 0` }),
  )
})

test('a place that others may write to is refused', () => {
  const open = join(folder, 'open')
  mkdirSync(open)
  chmodSync(open, 0o777)
  const facts: PlaceFacts = { ...user, uid, env: { GLOVEBOX_CACHE_DIR: open } }
  expect(() => cachePlace(facts)).toThrow(
    expect.objectContaining({ code: 'unavailable', message: `${open} can be written by others`, hint: `chmod go-w ${open}` }),
  )
})

test('no hint asks to remove what we did not make', () => {
  const facts: PlaceFacts = { ...user, uid: uid + 1, env: { GLOVEBOX_CACHE_DIR: folder } }
  expect(() => cachePlace(facts)).toThrow(expect.objectContaining({ code: 'unavailable', hint: expect.not.stringContaining('rm') as string }))
})

test('a relative place is refused', () => {
  expect(() => cachePlace({ ...user, uid, env: { GLOVEBOX_CACHE_DIR: 'here' } })).toThrow(
    expect.objectContaining({ code: 'unavailable', message: 'here is not an absolute path' }),
  )
})

test.each([
  ['root', root, '/var/lib/glovebox/snapshots'],
  ['a user', user, '/home/ada/.local/share/glovebox/snapshots'],
  ['a user with XDG folders', { ...user, env: { XDG_DATA_HOME: '/d' } }, '/d/glovebox/snapshots'],
  ['whoever says so', { ...root, env: { GLOVEBOX_SNAPSHOT_DIR: '/s' } }, '/s'],
])('%s: snapshots have their place', (_, facts, place) => {
  expect(snapshotFolder(facts)).toBe(place)
})

test('the place of snapshots is only for their owner', () => {
  const facts: PlaceFacts = { ...user, uid, env: { GLOVEBOX_SNAPSHOT_DIR: join(folder, 'kept/snapshots') } }
  expect(statSync(snapshotPlace(facts)).mode & 0o777).toBe(0o700)
})
