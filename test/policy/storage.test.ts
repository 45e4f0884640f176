import { writeFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { SandboxError } from '../../src/contract/errors.js'
import { storageRefusal } from '../../src/policy/storage.js'

test('a full disk is an obstacle of the machine, by the folder that is full', async () => {
  const error: unknown = await writeFile('/dev/full', 'x').catch((cause: unknown) => cause)
  expect(storageRefusal(error, '/var/cache/x')).toMatchObject({
    code: 'unavailable',
    message: '/var/cache/x: no space left (ENOSPC)',
    hint: 'df -h /var/cache/x',
    cause: error,
  })
})

test.each([
  ['EDQUOT', '/cache: the disk quota is used up (EDQUOT)', 'df -h /cache'],
  ['EROFS', '/cache: the file system is read-only (EROFS)', 'findmnt -T /cache'],
  ['EACCES', '/cache/x: may not be used by this user (EACCES)', 'ls -ld /cache/x'],
])('%s is told with its place and the next act', (code, message, hint) => {
  expect(storageRefusal(Object.assign(new Error(code), { code, path: '/cache/x' }), '/cache')).toMatchObject({ code: 'unavailable', message, hint })
})

test('any other error stays what it is', () => {
  for (const error of [new SandboxError('invalid', 'x'), new TypeError('x'), Object.assign(new Error('x'), { code: 'EBADF' }), 'x', undefined]) {
    expect(storageRefusal(error, '/cache')).toBe(error)
  }
})
