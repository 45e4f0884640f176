import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, readlinkSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readTar } from '../../src/engine/snapshots-tar-reader.js'
import { encodeTarHeader, endOfTar, tarPadding, type TarHeader } from '../../src/engine/snapshots-tar-writer.js'

interface Entry {
  readonly header: TarHeader
  readonly content: string
}

function archive(entries: readonly Entry[]): Buffer {
  const parts = entries.flatMap(({ header, content }) => [encodeTarHeader(header), Buffer.from(content, 'latin1'), tarPadding(header.size)])
  return Buffer.concat([...parts, endOfTar])
}

async function* pieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array, void, undefined> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

async function read(bytes: Uint8Array, size = 512): Promise<Entry[]> {
  const entries: Entry[] = []
  for await (const { header, content } of readTar(pieces(bytes, size))) {
    const parts: Uint8Array[] = []
    for await (const part of content) parts.push(part)
    entries.push({ header, content: Buffer.concat(parts).toString('latin1') })
  }
  return entries
}

const base: TarHeader = { path: 'a', type: 'file', mode: 0o644, uid: 1000, gid: 1000, size: 0, mtime: '1700000000', target: '' }

const bytesText = (most: number) =>
  fc.uint8Array({ min: 1, minLength: 1, maxLength: most }).map((bytes) => Buffer.from(bytes).toString('latin1').replaceAll('/', '_'))
const path = fc.array(bytesText(120), { minLength: 1, maxLength: 3 }).map((parts) => parts.map((part) => `n${part}`).join('/'))
const entry = fc
  .record({
    path,
    type: fc.constantFrom('file', 'folder', 'link', 'fifo', 'same' as const),
    mode: fc.integer({ min: 0, max: 0o7777 }),
    uid: fc.integer({ min: 0, max: 0xfffffffe }),
    gid: fc.integer({ min: 0, max: 0xfffffffe }),
    mtime: fc.oneof(
      fc.nat().map(String),
      fc.nat().map((seconds) => `${seconds}.000000001`),
      fc.constant('-1.5'),
    ),
    target: path,
    content: bytesText(2000),
  })
  .map(({ content: given, ...rest }): Entry => {
    const content = rest.type === 'file' ? given : ''
    const target = rest.type === 'link' || rest.type === 'same' ? rest.target : ''
    return { header: { ...rest, target, size: content.length }, content }
  })

test('what is written is read again, whatever the names, the owners and the pieces it arrives in', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(entry, { maxLength: 5 }), fc.integer({ min: 1, max: 1500 }), async (entries, size) => {
      expect(await read(archive(entries), size)).toEqual(entries)
    }),
    { numRuns: 100 },
  )
})

test('the tar of this machine unpacks it', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gbx-tar-'))
  try {
    const long = `${'l'.repeat(90)}/${'m'.repeat(90)}`
    const entries: Entry[] = [
      { header: { ...base, path: 'd', type: 'folder', mode: 0o755 }, content: '' },
      { header: { ...base, path: 'd/a', size: 5, mode: 0o640 }, content: 'hello' },
      { header: { ...base, path: 'd/b', type: 'same', target: 'd/a' }, content: '' },
      { header: { ...base, path: 'd/link', type: 'link', target: 'x'.repeat(120) }, content: '' },
      { header: { ...base, path: long, size: 2, mtime: '1700000000.123456789' }, content: 'ok' },
    ]
    writeFileSync(join(folder, 'a.tar'), archive(entries))
    const { status, stderr } = spawnSync('tar', ['xf', 'a.tar', '--no-same-owner'], { cwd: folder, encoding: 'utf8' })
    expect([status, stderr]).toEqual([0, ''])
    expect(readFileSync(join(folder, 'd/b'), 'utf8')).toBe('hello')
    expect(statSync(join(folder, 'd/a')).ino).toBe(statSync(join(folder, 'd/b')).ino)
    expect(readlinkSync(join(folder, 'd/link'))).toBe('x'.repeat(120))
    expect(statSync(join(folder, long), { bigint: true }).mtimeNs).toBe(1_700_000_000_123_456_789n)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('content that nobody reads is passed over', async () => {
  const bytes = archive([
    { header: { ...base, size: 5000 }, content: 'x'.repeat(5000) },
    { header: { ...base, path: 'b' }, content: '' },
  ])
  const paths: string[] = []
  for await (const { header } of readTar(pieces(bytes, 700))) paths.push(header.path)
  expect(paths).toEqual(['a', 'b'])
})

test.each(['../a', 'a/../../b', '/etc/passwd', 'a//b', 'a/./b', 'a/..'])('an entry named %j is refused before anyone sees it', async (name) => {
  await expect(read(archive([{ header: { ...base, path: name }, content: '' }]))).rejects.toMatchObject({ code: 'broken' })
})

test('another name of a file outside is refused', async () => {
  await expect(read(archive([{ header: { ...base, type: 'same', target: '../x' }, content: '' }]))).rejects.toMatchObject({ code: 'broken' })
})

test.each([
  ['is cut short', (bytes: Buffer) => bytes.subarray(0, 700)],
  ['has a damaged header', (bytes: Buffer) => Buffer.concat([Buffer.from('b'), bytes.subarray(1)])],
  ['holds a device', (bytes: Buffer) => withFlag(bytes, '3')],
  ['is nothing of the kind', () => Buffer.from('x'.repeat(2048))],
])('an archive that %s is refused', async (_, damage) => {
  await expect(read(damage(archive([{ header: { ...base, size: 600 }, content: 'y'.repeat(600) }])))).rejects.toMatchObject({ code: 'broken' })
})

function withFlag(bytes: Buffer, flag: string): Buffer {
  const header = encodeTarHeader({ ...base, size: 600 })
  const damaged = Buffer.from(bytes)
  damaged.write(flag, 156, 'latin1')
  const sum = header.reduce((total, byte, at) => total + (at >= 148 && at < 156 ? 32 : at === 156 ? flag.charCodeAt(0) : byte), 0)
  damaged.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return damaged
}

test('marks are read again; one that means nothing is refused', async () => {
  const headers: TarHeader[] = [
    { ...base, mark: 'removed' },
    { ...base, path: 'd', type: 'folder', mark: 'hides' },
    { ...base, path: '.wh.x' },
  ]
  expect((await read(archive(headers.map((header) => ({ header, content: '' }))))).map(({ header }) => header)).toEqual(headers)
  for (const header of [
    { ...base, mark: 'hides' },
    { ...base, type: 'folder', mark: 'removed' },
    { ...base, mark: 'other' },
  ] as TarHeader[]) {
    await expect(read(archive([{ header, content: '' }]))).rejects.toMatchObject({ code: 'broken', message: 'the archive has a mark that means nothing' })
  }
})
