import { chmodSync, existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { isHomeOf } from '../../src/sys/home-folders.js'
import { isTrustedLink, type LinkPlace } from '../../src/sys/host-folder-way.js'
import { localFiles } from '../../src/sys/host-folder.js'
import { testUnless } from '../unless.js'

const open = { uid: 0, mode: 0o40777 }
const shared = { uid: 0, mode: 0o41777 }
const closed = { uid: 0, mode: 0o40755 }
const own = { uid: 1000, mode: 0o40755 }
const place = (above: LinkPlace['above'], rest: Partial<LinkPlace> = {}): LinkPlace => ({
  above,
  caller: 1000,
  isRoots: above.uid === 0,
  isHome: false,
  ...rest,
})

describe('a link on the way', () => {
  test.each([
    ['root’s, in a folder of root’s', 0, place(closed), true],
    ['root’s, in a folder that all may write', 0, place(open), false],
    ['root’s, in a folder with a sticky bit, where others may have moved it', 0, place(shared), false],
    ['root’s, in a folder of the caller’s', 0, place(own), false],
    ['the caller’s, in a folder of root’s', 1000, place(closed), true],
    ['the caller’s, in a folder with a sticky bit, where others may have moved it', 1000, place(shared), false],
    ['the caller’s, in one that somebody’s folder holds', 1000, place(closed, { isRoots: false }), false],
    ['the caller’s, in a folder that all may write', 1000, place(open), false],
    ['the caller’s, in a folder of their own: a guest writes there as they do', 1000, place(own), false],
    ['the caller’s, in their home', 1000, place(own, { isHome: true }), true],
    ['the caller’s, in their home that others may write', 1000, place({ uid: 1000, mode: 0o40775 }, { isHome: true }), false],
    ['another’s, in a folder with a sticky bit', 1001, place(shared), false],
    ['another’s, in the caller’s home', 1001, place(own, { isHome: true }), false],
  ])('is followed only where no guest can have put it: %s', (_what, uid, where, isTrusted) => {
    expect(isTrustedLink({ uid }, where)).toBe(isTrusted)
  })
})

describe('a home', () => {
  const passwd = (uid: number, home: string): string => `root:x:0:0::/root:/bin/sh\nann:x:${uid}:${uid}::${home}:/bin/sh\n`

  test('is what the account of a person says, and nothing that a link leads to', () => {
    const home = realpathSync(mkdtempSync(join(tmpdir(), 'gbx-home-')))
    symlinkSync(home, join(home, 'link'))
    const status = statSync(home)
    expect(isHomeOf(1000, status, passwd(1000, home))).toBe(true)
    expect(isHomeOf(1001, status, passwd(1000, home))).toBe(false)
    expect(isHomeOf(1000, status, passwd(1000, join(home, 'link')))).toBe(false)
    // A service's may be shared with guests like any other folder.
    expect(isHomeOf(999, status, passwd(999, home))).toBe(false)
    rmSync(home, { recursive: true })
  })
})

describe('a link of one’s own in the folder for temporary files', () => {
  let home: string
  const link = (): string => `/tmp/${basename(home)}-link`
  const { uid, mode } = statSync('/tmp')
  const isShared = realpathSync('/tmp') === '/tmp' && uid === 0 && (mode & 0o1000) !== 0

  beforeEach(() => {
    home = realpathSync(mkdtempSync(join(tmpdir(), 'gbx-way-')))
    chmodSync(home, 0o755)
    mkdirSync(join(home, 'inner'))
    writeFileSync(join(home, 'inner', 'file'), 'content')
    symlinkSync(home, link())
  })
  afterEach(() => {
    rmSync(link(), { force: true })
    rmSync(home, { recursive: true })
  })

  testUnless(!isShared && '/tmp is no folder of root’s with a sticky bit here')('is refused: whoever may write there moves any link there', async () => {
    await expect(localFiles.send(join(link(), 'inner', 'file'))).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('which a guest may have planted'),
    })
    async function* content(): AsyncGenerator<Uint8Array> {
      yield Buffer.from('received')
    }
    await expect(localFiles.receiveFile(join(link(), 'inner', 'new'), content())).rejects.toMatchObject({ code: 'conflict' })
    expect(existsSync(join(home, 'inner', 'new'))).toBe(false)
  })

  test('is refused as the last part', async () => {
    await expect(localFiles.send(link())).rejects.toMatchObject({ code: 'conflict', message: `upload: ${link()} is a link, and none is followed` })
  })

  test('is refused in a folder that others may write', async () => {
    symlinkSync('inner', join(home, 'way'))
    chmodSync(home, 0o777)
    await expect(localFiles.send(join(home, 'way', 'file'))).rejects.toMatchObject({ code: 'conflict' })
  })
})
