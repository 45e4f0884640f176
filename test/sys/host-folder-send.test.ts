import { execFileSync } from 'node:child_process'
import { chmodSync, linkSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { localFiles } from '../../src/sys/host-folder.js'

let home: string
let folder: string

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'gbx-send-'))
  folder = join(home, 'project')
  mkdirSync(folder)
})

afterEach(() => {
  rmSync(home, { recursive: true })
})

async function gather(bytes: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const pieces = []
  for await (const piece of bytes) pieces.push(Uint8Array.from(piece))
  return Buffer.concat(pieces)
}

/** What the system's own tar makes of it. */
async function extract(path: string): Promise<string> {
  const { bytes } = await localFiles.send(path)
  const out = mkdtempSync(join(home, 'out-'))
  execFileSync('tar', ['-xpf', '-', '-C', out], { input: await gather(bytes) })
  return out
}

describe('a folder on its way into a sandbox', () => {
  test('is an archive that tar reads: hidden ones, empty ones, odd names, long names, links as links', async () => {
    mkdirSync(join(folder, '.git/objects'), { recursive: true })
    writeFileSync(join(folder, '.git/HEAD'), 'ref')
    writeFileSync(join(folder, 'empty'), '')
    mkdirSync(join(folder, 'none'))
    writeFileSync(Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0x61, 0xff, 0x0a, 0x20])]), 'odd')
    const long = join(folder, 'x'.repeat(200), 'y'.repeat(255))
    mkdirSync(join(folder, 'x'.repeat(200)))
    writeFileSync(long, 'z'.repeat(1025))
    symlinkSync('/etc/passwd', join(folder, 'out'))
    symlinkSync('t'.repeat(300), join(folder, 'long-link'))
    const out = await extract(folder)
    expect(execFileSync('diff', ['-r', '--no-dereference', folder, out]).toString()).toBe('')
  })

  test('keeps times and modes, but no set-id bits', async () => {
    writeFileSync(join(folder, 'a'), 'a')
    chmodSync(join(folder, 'a'), 0o6750)
    const out = await extract(folder)
    const facts = (path: string): string => execFileSync('stat', ['-c', '%a %Y', path]).toString()
    expect(facts(join(out, 'a')).split(' ')[0]).toBe('750')
    expect(facts(join(out, 'a')).split(' ')[1]).toBe(facts(join(folder, 'a')).split(' ')[1])
  })

  test('tells of sockets and FIFOs, which stay, and of how much will come', async () => {
    execFileSync('mkfifo', [join(folder, 'pipe')])
    const server = createServer().listen(join(folder, 'socket'))
    writeFileSync(join(folder, 'a'), 'x'.repeat(1000))
    linkSync(join(folder, 'a'), join(folder, 'b'))
    const source = await localFiles.send(folder)
    expect(source).toMatchObject({
      type: 'folder',
      skipped: [
        { path: 'pipe', why: 'is a FIFO' },
        { path: 'socket', why: 'is a socket' },
      ],
    })
    const bytes = await gather(source.bytes)
    server.close()
    expect(Math.abs(bytes.length - source.totalBytes)).toBeLessThanOrEqual(2 * 1024)
    expect(execFileSync('tar', ['-tf', '-'], { input: bytes }).toString()).toBe('a\nb\n')
  })

  test('of which a file shrinks while it is read is told so, never padded', async () => {
    writeFileSync(join(folder, 'a'), 'x'.repeat(2 ** 20))
    const { bytes } = await localFiles.send(folder)
    const pieces = bytes[Symbol.asyncIterator]()
    await pieces.next()
    await pieces.next()
    truncateSync(join(folder, 'a'), 0)
    const rest = (async () => {
      while (!(await pieces.next()).done);
    })()
    await expect(rest).rejects.toMatchObject({ code: 'conflict', message: 'upload: a was changed while it was read' })
  })

  test('has links as links: a folder in it that is one is not entered', async () => {
    mkdirSync(join(home, 'secret'))
    writeFileSync(join(home, 'secret/key'), 'secret')
    symlinkSync('../secret', join(folder, 'inner'))
    const { bytes } = await localFiles.send(folder)
    const archive = await gather(bytes)
    expect(archive.includes('key')).toBe(false)
    expect(execFileSync('tar', ['-tf', '-'], { input: archive }).toString()).toBe('inner\n')
  })
})

test('a file is its own bytes', async () => {
  writeFileSync(join(folder, 'a'), 'hello', { mode: 0o600 })
  const source = await localFiles.send(join(folder, 'a'))
  expect(source).toMatchObject({ type: 'file', mode: 0o600, totalBytes: 5, skipped: [] })
  expect((await gather(source.bytes)).toString()).toBe('hello')
  expect(readFileSync(join(folder, 'a'), 'utf8')).toBe('hello')
})

test.each([
  ['missing', 'not-found', 'does not exist'],
  ['pipe', 'invalid', 'is neither a file nor a folder'],
])('%s is refused by its path', async (name, code, words) => {
  execFileSync('mkfifo', [join(folder, 'pipe')])
  await expect(localFiles.send(join(folder, name))).rejects.toMatchObject({ code, message: expect.stringContaining(words) })
})

test('a file of /proc, which tells no size, is all that it has', async () => {
  const { bytes, totalBytes } = await localFiles.send('/proc/version')
  expect([totalBytes, (await gather(bytes)).toString()]).toEqual([0, readFileSync('/proc/version', 'utf8')])
})
