import { execFileSync } from 'node:child_process'
import { sign, verify } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { keyFolder, keyPlace, type PlaceFacts } from '../../src/sys/places.js'
import { findReceiptKey, loadReceiptKey, type ReceiptKey } from '../../src/sys/receipt-key.js'
import { testUnless } from '../unless.js'
import { startScript } from './run-script.js'

const all = mkdtempSync(join(tmpdir(), 'gbx-key-'))
afterAll(() => {
  for (const name of readdirSync(all)) chmodSync(join(all, name), 0o700)
  rmSync(all, { recursive: true, force: true })
})

const uid = process.getuid?.() ?? -1
let count = 0
let folder: string
let path: string
beforeEach(() => {
  count += 1
  folder = join(all, String(count))
  mkdirSync(folder, { mode: 0o700 })
  path = join(folder, 'receipt-key.pem')
})

function spki({ publicKey }: Pick<ReceiptKey, 'publicKey'>): string {
  return publicKey.export({ type: 'spki', format: 'pem' }).toString()
}

describe('the key of receipts', () => {
  test('is made when it is first needed, for its owner alone, with its public half beside it', async () => {
    const key = await loadReceiptKey({ folder })
    expect(readdirSync(folder).sort()).toEqual(['receipt-key.pem', 'receipt-key.pub.pem'])
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(readFileSync(join(folder, 'receipt-key.pub.pem'), 'utf8')).toBe(spki(key))
    const bytes = Buffer.from('signed')
    expect(verify(null, bytes, key.publicKey, sign(null, bytes, key.privateKey))).toBe(true)
  })

  test('stays the same', async () => {
    const first = await loadReceiptKey({ folder })
    expect(spki(await loadReceiptKey({ folder }))).toBe(spki(first))
  })

  test('is looked for without being made', async () => {
    expect(await findReceiptKey({ folder })).toBeUndefined()
    expect(await findReceiptKey({ folder: join(folder, 'nowhere') })).toBeUndefined()
    expect(readdirSync(folder)).toEqual([])
    const key = await loadReceiptKey({ folder })
    expect((await findReceiptKey({ folder }))?.equals(key.publicKey)).toBe(true)
  })

  test('is one, however many processes need it at the same moment', async () => {
    const program = new URL('./programs/load-receipt-key.ts', import.meta.url)
    const scripts = await Promise.all(Array.from({ length: 6 }, () => startScript(program, [folder])))
    await Promise.all(scripts.map(({ firstLine }) => firstLine))
    for (const { child } of scripts) child.stdin?.write('go\n')
    const ended = await Promise.all(scripts.map((script) => script.ended))
    const stdout = `ready\n${spki(await loadReceiptKey({ folder }))}`
    expect(ended).toEqual(scripts.map(() => ({ stdout, stderr: '', code: 0, signal: null })))
    expect(readdirSync(folder).sort()).toEqual(['receipt-key.pem', 'receipt-key.pub.pem'])
  })

  test('has its public half put beside it again when that is gone or another', async () => {
    const key = await loadReceiptKey({ folder })
    const beside = join(folder, 'receipt-key.pub.pem')
    rmSync(beside)
    await loadReceiptKey({ folder })
    expect(readFileSync(beside, 'utf8')).toBe(spki(key))
    writeFileSync(beside, 'another')
    await loadReceiptKey({ folder })
    expect(readFileSync(beside, 'utf8')).toBe(spki(key))
  })

  test.each([0o640, 0o604, 0o620, 0o610])('is refused when others have a part in it: mode %o', async (mode) => {
    await loadReceiptKey({ folder })
    chmodSync(path, mode)
    const refused = { code: 'unavailable', message: `the key ${path} can be read by others (mode ${mode.toString(8)})`, hint: `chmod 600 ${path}` }
    await expect(loadReceiptKey({ folder })).rejects.toMatchObject(refused)
    await expect(findReceiptKey({ folder })).rejects.toMatchObject(refused)
  })

  testUnless(uid !== 0 && 'only root can give a file away')('is refused when it belongs to another', async () => {
    await loadReceiptKey({ folder })
    chownSync(path, 12345, 12345)
    await expect(loadReceiptKey({ folder })).rejects.toMatchObject({
      code: 'unavailable',
      message: `the key ${path} belongs to uid 12345, not to uid 0`,
      hint: `chown 0 ${path}`,
    })
  })

  test.each([
    ['nothing', ''],
    ['half of it', '-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2Vw'],
    ['a key of another kind', '-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VuBCIEIAcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH\n-----END PRIVATE KEY-----\n'],
    ['far too much', 'x'.repeat(10_000)],
  ])('is refused when the file holds %s, and never made anew over it', async (_, text) => {
    writeFileSync(path, text, { mode: 0o600 })
    await expect(loadReceiptKey({ folder })).rejects.toMatchObject({
      code: 'unavailable',
      message: `${path} holds no Ed25519 private key`,
      hint: `mv ${path} ${path}.damaged`,
    })
    expect(readFileSync(path, 'utf8')).toBe(text)
  })

  test.each([
    ['a folder', () => mkdirSync(path, { mode: 0o700 })],
    ['a pipe', () => execFileSync('mkfifo', ['-m', '600', path])],
    ['a device', () => symlinkSync('/dev/zero', path)],
  ])('is refused when %s is in its place, without waiting for it', async (kind, make) => {
    make()
    const refused = { code: 'unavailable', message: `the key ${path} is ${kind}, not a file`, hint: `mv ${path} ${path}.other` }
    await expect(loadReceiptKey({ folder })).rejects.toMatchObject(refused)
    await expect(findReceiptKey({ folder })).rejects.toMatchObject(refused)
  })

  test('is read through a link, as mounted secrets are', async () => {
    const key = await loadReceiptKey({ folder })
    renameSync(path, join(folder, 'kept'))
    symlinkSync('kept', path)
    expect(spki(await loadReceiptKey({ folder }))).toBe(spki(key))
  })

  test('does not wait for a pipe in place of its public half', async () => {
    const beside = join(folder, 'receipt-key.pub.pem')
    execFileSync('mkfifo', [beside])
    const key = await loadReceiptKey({ folder })
    expect(readFileSync(beside, 'utf8')).toBe(spki(key))
  })

  testUnless(uid === 0 && 'root may write anywhere')('is an obstacle, not a defect, where nothing can be written', async () => {
    chmodSync(folder, 0o500)
    await expect(loadReceiptKey({ folder })).rejects.toMatchObject({
      code: 'unavailable',
      message: `cannot write to ${folder}: this user may not write there (EACCES)`,
    })
  })

  testUnless(!existsSync('/proc/self') && 'there is no /proc')('is an obstacle, not a defect, where the system makes no files', async () => {
    await expect(loadReceiptKey({ folder: '/proc' })).rejects.toMatchObject({ code: 'unavailable', hint: 'export GLOVEBOX_KEY_DIR="$(mktemp -d)"' })
  })

  testUnless(uid === 0 && 'root may write anywhere')('works from a folder that cannot be written to, such as a mounted secret', async () => {
    const key = await loadReceiptKey({ folder })
    rmSync(join(folder, 'receipt-key.pub.pem'))
    chmodSync(folder, 0o500)
    expect(spki(await loadReceiptKey({ folder }))).toBe(spki(key))
  })
})

describe('the place of the key', () => {
  const root: PlaceFacts = { uid: 0, env: {}, home: '/root', isWritable: () => true }
  const user: PlaceFacts = { ...root, uid: 1000, home: '/home/ada' }

  test.each([
    ['root', root, '/var/lib/glovebox'],
    ['a user', user, '/home/ada/.local/share/glovebox'],
    ['a user with XDG folders', { ...user, env: { XDG_DATA_HOME: '/d' } }, '/d/glovebox'],
    ['a user who says so', { ...user, env: { GLOVEBOX_KEY_DIR: '/k' } }, '/k'],
    ['root who says so', { ...root, env: { GLOVEBOX_KEY_DIR: '/k' } }, '/k'],
  ])('of %s survives a reboot', (_, facts, expected) => {
    expect(keyFolder(facts)).toBe(expected)
  })

  test('is made for its owner alone, and refused where others can write', () => {
    const facts = { ...user, uid, env: { GLOVEBOX_KEY_DIR: join(folder, 'a/b') } }
    expect(statSync(keyPlace(facts)).mode & 0o777).toBe(0o700)
    chmodSync(join(folder, 'a/b'), 0o777)
    expect(() => keyPlace(facts)).toThrow(expect.objectContaining({ code: 'unavailable', message: `${folder}/a/b can be written by others` }))
    expect(() => keyPlace({ ...facts, env: { GLOVEBOX_KEY_DIR: 'here' } })).toThrow(
      expect.objectContaining({ message: 'here is not an absolute path', hint: 'export GLOVEBOX_KEY_DIR="$(mktemp -d)"' }),
    )
  })
})
