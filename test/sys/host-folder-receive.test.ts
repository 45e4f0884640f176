import { existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Received, ReceiveOptions } from '../../src/contract/transfer.js'
import { localFiles } from '../../src/sys/host-folder.js'
import { type CraftedEntry, craftTar, inPieces, paxOf } from './tar-archives.js'

let home: string
let out: string

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'gbx-receive-'))
  out = join(home, 'out')
  writeFileSync(join(home, 'canary'), 'untouched')
})

afterEach(() => {
  expect(readFileSync(join(home, 'canary'), 'utf8')).toBe('untouched')
  rmSync(home, { recursive: true })
})

function receive(entries: readonly CraftedEntry[], options: ReceiveOptions = {}): Promise<Received> {
  return localFiles.receiveFolder(out, inPieces(craftTar(entries)), options)
}

async function refusal(receiving: Promise<unknown>): Promise<unknown> {
  return receiving.then(
    () => expect.fail('it was taken'),
    (error: unknown) => error,
  )
}

describe('a folder that comes from a sandbox', () => {
  test('is made with its files, folders and links inside, and tells how much there was', async () => {
    const received = await receive([
      { name: './', type: '5' },
      { name: 'a/', type: '5', mode: 0o500 },
      { name: 'a/b.txt', content: 'hello', mode: 0o640 },
      { name: 'deep/er/c', content: 'x'.repeat(3000) },
      { name: 'a/up', type: '2', target: '../deep/er/c' },
      { name: 'a/same', type: '1', target: 'a/b.txt' },
      { name: 'empty' },
    ])
    expect(received).toEqual({ entries: 7, bytes: 3005, skipped: [] })
    expect(readFileSync(join(out, 'a/b.txt'), 'utf8')).toBe('hello')
    expect(readFileSync(join(out, 'a/up'), 'utf8')).toBe('x'.repeat(3000))
    expect(statSync(join(out, 'a/same')).ino).toBe(statSync(join(out, 'a/b.txt')).ino)
    expect(statSync(join(out, 'a/b.txt')).mode & 0o7777).toBe(0o640)
    expect(statSync(join(out, 'a')).mode & 0o777).toBe(0o700)
    expect(readdirSync(home).sort()).toEqual(['canary', 'out'])
  })

  test.each<[string, readonly CraftedEntry[], RegExp]>([
    ['a name that climbs', [{ name: '../canary', content: 'pwned' }], /\.\.\/canary of the archive would be outside/],
    ['a name that climbs in its middle', [{ name: 'a/../../canary', content: 'pwned' }], /would be outside/],
    ['an absolute name', [{ name: '/tmp/gbx-pwned', content: 'pwned' }], /would be outside/],
    ['an absolute name in a pax header', [paxOf({ path: '/tmp/gbx-pwned' }), { name: 'a', content: 'pwned' }], /would be outside/],
    ['a name with a NUL in a pax header', [paxOf({ path: 'a\0b' }), { name: 'a', content: 'pwned' }], /would be outside/],
    [
      'a link, and then a file through it',
      [
        { name: 'd', type: '2', target: 'real' },
        { name: 'real/', type: '5' },
        { name: 'd/x', content: 'pwned' },
      ],
      /is in the archive twice|no folder/,
    ],
    [
      'a link, and then a file in its place',
      [
        { name: 'd', type: '2', target: 'x' },
        { name: 'd', content: 'pwned' },
      ],
      /d of the archive is in it twice/,
    ],
    ['a hard link out', [{ name: 'h', type: '1', target: '../canary' }], /would be outside/],
    ['a hard link to an absolute path', [{ name: 'h', type: '1', target: '/etc/passwd' }], /would be outside/],
    [
      'a hard link through a link',
      [
        { name: 'in/', type: '5' },
        { name: 'in/f', content: 'f' },
        { name: 'd', type: '2', target: 'in' },
        { name: 'h', type: '1', target: 'd/f' },
      ],
      /h of the archive/,
    ],
    ['a hard link to nothing', [{ name: 'h', type: '1', target: 'nothing' }], /hard link to no file/],
    ['a type that there is not', [{ name: 'a', type: 'Z' }], /unknown type 'Z'/],
    ['a pax header that is too long', [{ name: 'pax', type: 'x', content: 'x'.repeat(70_000) }], /pax header of 70000 bytes/],
    ['a pax header that lies about its length', [{ name: 'pax', type: 'x', content: '99999 path=x\n' }], /cannot be read/],
    ['a tree of 300 folders', [{ name: 'a', content: '' }, paxOf({ path: 'd/'.repeat(300) }), { name: 'd', type: '5' }], /deeper than 256 folders/],
  ])('with %s is refused, and nothing is left of it', async (_, entries, message) => {
    expect(await refusal(receive(entries))).toMatchObject({ name: 'SandboxError', code: 'conflict', message: expect.stringMatching(message) })
    expect(readdirSync(home)).toEqual(['canary'])
    expect(existsSync('/tmp/gbx-pwned')).toBe(false)
  })

  test('that is cut short, or whose header is damaged, leaves nothing', async () => {
    const whole = craftTar([{ name: 'a', content: 'x'.repeat(5000) }])
    for (const bytes of [whole.subarray(0, 2000), whole.subarray(0, 100), craftTar([{ name: 'a' }], { end: false }), Buffer.from('x'.repeat(2048))]) {
      expect(await refusal(localFiles.receiveFolder(out, inPieces(bytes)))).toMatchObject({
        code: 'conflict',
        message: expect.stringMatching(/^the archive has/),
      })
    }
    expect(readdirSync(home)).toEqual(['canary'])
  })

  test('loses its links out, its devices and FIFOs, and tells so', async () => {
    const { skipped } = await receive([
      { name: 'out', type: '2', target: '/etc/passwd' },
      { name: 'up', type: '2', target: '../canary' },
      { name: 'sub/', type: '5' },
      { name: 'sub/upup', type: '2', target: '../../canary' },
      // What is behind a name may be another link, from which `..` leads elsewhere.
      { name: 'sub/back', type: '2', target: '../sub/x/../../..' },
      { name: 'null', type: '3' },
      { name: 'pipe', type: '6' },
      { name: 'kept', type: '2', target: 'sub/./x' },
    ])
    expect(skipped.map(({ path }) => path)).toEqual(['out', 'up', 'sub/upup', 'sub/back', 'null', 'pipe'])
    expect(skipped[0]?.why).toBe('is a link to /etc/passwd, which is not in the folder')
    expect(readdirSync(out).sort()).toEqual(['kept', 'sub'])
    expect(readlinkSync(join(out, 'kept'))).toBe('sub/./x')
  })

  test('never brings a set-id or sticky bit', async () => {
    await receive([
      { name: 'suid', content: '#!', mode: 0o6755 },
      { name: 'dir/', type: '5', mode: 0o7777 },
    ])
    expect(statSync(join(out, 'suid')).mode & 0o7777).toBe(0o755)
    expect(statSync(join(out, 'dir')).mode & 0o7000).toBe(0)
  })

  test('keeps names that are no text', async () => {
    const name = Buffer.from([0x61, 0xff, 0x0a, 0x62])
    await receive([{ name, content: 'odd' }])
    expect(readdirSync(out, { encoding: 'buffer' })).toEqual([name])
  })

  test('with more bytes or entries than allowed is refused, and nothing is left', async () => {
    const large = [{ name: 'a', content: 'x'.repeat(2000) }, { name: 'b' }]
    expect(await refusal(receive(large, { mostBytes: 1999 }))).toMatchObject({ code: 'full', message: expect.stringContaining('more than 1999 bytes') })
    expect(await refusal(receive(large, { mostEntries: 1 }))).toMatchObject({ code: 'full', message: expect.stringContaining('more than 1 entries') })
    expect(readdirSync(home)).toEqual(['canary'])
  })

  test('of which more follows behind its end is refused', async () => {
    const archive = Buffer.concat([craftTar([{ name: 'a' }]), Buffer.alloc(2 ** 21, 1)])
    expect(await refusal(localFiles.receiveFolder(out, inPieces(archive, 65_536)))).toMatchObject({ message: expect.stringContaining('more behind its end') })
  })
})

describe('into a folder that is there', () => {
  beforeEach(() => {
    mkdirSync(join(out, 'a'), { recursive: true })
    writeFileSync(join(out, 'a/mine'), 'mine')
  })

  test('it is filled, and what was there stays', async () => {
    await receive([
      { name: 'a/new', content: 'new' },
      { name: 'b', content: 'b' },
    ])
    expect(readdirSync(join(out, 'a')).sort()).toEqual(['mine', 'new'])
    expect(readdirSync(out).sort()).toEqual(['a', 'b'])
  })

  test('a file that is there is a conflict, and then nothing at all is changed', async () => {
    const error = await refusal(
      receive([
        { name: 'a/aaa', content: 'first' },
        { name: 'a/mine', content: 'theirs' },
        { name: 'b', content: 'b' },
      ]),
    )
    expect(error).toMatchObject({ code: 'conflict', message: 'download: out/a/mine is there already; overwrite replaces it' })
    expect([readdirSync(out), readdirSync(join(out, 'a'))]).toEqual([['a'], ['mine']])
    expect(readFileSync(join(out, 'a/mine'), 'utf8')).toBe('mine')
  })

  test('a file that is there is replaced when asked', async () => {
    await receive([{ name: 'a/mine', content: 'theirs' }], { overwrite: true })
    expect(readFileSync(join(out, 'a/mine'), 'utf8')).toBe('theirs')
  })

  test('a link that was planted there is never followed: it is in the way, or replaced itself', async () => {
    symlinkSync(join(home, 'canary'), join(out, 'to-file'))
    symlinkSync(home, join(out, 'to-folder'))
    for (const name of ['to-file', 'to-folder/canary']) {
      expect(await refusal(receive([{ name, content: 'pwned' }]))).toMatchObject({ code: 'conflict' })
    }
    await receive(
      [
        { name: 'to-file', content: 'new' },
        { name: 'to-folder/canary', content: 'new' },
      ],
      { overwrite: true },
    )
    expect(lstatSync(join(out, 'to-file')).isFile()).toBe(true)
    expect(lstatSync(join(out, 'to-folder')).isDirectory()).toBe(true)
  })

  test('a folder is not replaced by a file, not even when asked', async () => {
    expect(await refusal(receive([{ name: 'a', content: 'file' }], { overwrite: true }))).toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('as a folder'),
    })
    expect(readFileSync(join(out, 'a/mine'), 'utf8')).toBe('mine')
  })
})

describe('a file that comes from a sandbox', () => {
  test('takes its place when it is whole', async () => {
    expect(await localFiles.receiveFile(out, inPieces(Buffer.from('hello'), 2), { mode: 0o6755 })).toEqual({ entries: 1, bytes: 5, skipped: [] })
    expect(readFileSync(out, 'utf8')).toBe('hello')
    expect(statSync(out).mode & 0o7777).toBe(0o755)
  })

  test('that fails in the middle leaves what was there, and nothing else', async () => {
    writeFileSync(out, 'mine')
    async function* failing(): AsyncGenerator<Uint8Array, void, undefined> {
      yield Buffer.from('part')
      throw await Promise.resolve(new Error('the guest is gone'))
    }
    expect(await refusal(localFiles.receiveFile(out, failing(), { overwrite: true }))).toMatchObject({ message: 'the guest is gone' })
    expect(await refusal(localFiles.receiveFile(out, inPieces(Buffer.alloc(100)), { overwrite: true, mostBytes: 99 }))).toMatchObject({ code: 'full' })
    expect(readFileSync(out, 'utf8')).toBe('mine')
    expect(readdirSync(home).sort()).toEqual(['canary', 'out'])
  })

  test('replaces one that is there only when asked, and never a link or a folder', async () => {
    writeFileSync(out, 'mine')
    expect(await refusal(localFiles.receiveFile(out, inPieces(Buffer.from('new'))))).toMatchObject({ code: 'conflict' })
    await localFiles.receiveFile(out, inPieces(Buffer.from('new')), { overwrite: true })
    expect(readFileSync(out, 'utf8')).toBe('new')
    rmSync(out)
    symlinkSync(join(home, 'canary'), out)
    expect(await refusal(localFiles.receiveFile(out, inPieces(Buffer.from('new')), { overwrite: true }))).toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('is a link, and none is followed'),
    })
    rmSync(out)
    mkdirSync(out)
    expect(await refusal(localFiles.receiveFile(out, inPieces(Buffer.from('new')), { overwrite: true }))).toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('is a folder'),
    })
  })
})
