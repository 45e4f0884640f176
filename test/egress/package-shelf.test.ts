import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { setTimeout } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Answer } from '../../src/egress/carrier.js'
import { readIndex } from '../../src/egress/package-index.js'
import { PackageShelf } from '../../src/egress/package-shelf.js'
import { Packages } from '../../src/egress/packages.js'

let folder: string
beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), 'shelf-')), 'packages')
})
afterEach(() => rmSync(join(folder, '..'), { recursive: true, force: true }))

const origin = 'https://index.example.com'
const hashOf = (text: string) => ({ algorithm: 'sha256' as const, hex: createHash('sha256').update(text).digest('hex') })

async function put(shelf: PackageShelf, text: string): Promise<void> {
  const draft = await shelf.begin(origin, hashOf(text))
  await draft?.write(Buffer.from(text.slice(0, 3)))
  await draft?.write(Buffer.from(text.slice(3)))
  await draft?.keep()
}

async function take(shelf: PackageShelf, text: string, from = origin): Promise<string | undefined> {
  const kept = await shelf.find(from, hashOf(text))
  const read = await kept?.handle.readFile('utf8')
  await kept?.handle.close()
  return read
}

test('hands out what it was given, at the same place only, and nothing before it is kept', async () => {
  const shelf = new PackageShelf({ folder: () => folder })
  const draft = await shelf.begin(origin, hashOf('hello world'))
  await draft?.write(Buffer.from('hello world'))
  expect(await take(shelf, 'hello world')).toBeUndefined()
  await draft?.drop()
  await put(shelf, 'hello world')
  expect(await take(shelf, 'hello world')).toBe('hello world')
  expect(await take(shelf, 'hello world', 'https://other.example.com')).toBeUndefined()
  expect(await shelf.size()).toEqual({ files: 1, bytes: 11 })
})

test('what was asked for longest ago goes first when there is too much', async () => {
  // Room for two: each counts as at least 64 KiB.
  const shelf = new PackageShelf({ folder: () => folder, mostBytes: 160 * 1024 })
  for (const [age, text] of ['a', 'b'].entries()) {
    await put(shelf, text.repeat(100))
    const [file = ''] = readdirSync(folder).filter((name) => name.startsWith('at-'))
    const path = join(folder, file, `sha256-${hashOf(text.repeat(100)).hex}`)
    utimesSync(path, new Date(age * 1000), new Date(age * 1000))
  }
  expect(await take(shelf, 'a'.repeat(100))).toBeDefined()
  await put(shelf, 'c'.repeat(100))
  expect(await take(shelf, 'b'.repeat(100))).toBeUndefined()
  expect([await take(shelf, 'a'.repeat(100)), await take(shelf, 'c'.repeat(100))].every((text) => text !== undefined)).toBe(true)
})

test('of tiny files there are no more than there would be of larger ones, and places without any go', async () => {
  const shelf = new PackageShelf({ folder: () => folder, mostBytes: 2 ** 20 })
  for (let index = 0; index < 40; index++) await put(shelf, `tiny ${index}`)
  expect((await shelf.size()).files).toBe(16)
  await shelf.prune(0)
  expect(readdirSync(folder)).toEqual(['drafts'])
})

test('what is being written at once is bounded, and what is dropped makes room again', async () => {
  const shelf = new PackageShelf({ folder: () => folder, mostBytes: 2 ** 20 })
  const drafts = await Promise.all(['one', 'two', 'three'].map((text) => shelf.begin(origin, hashOf(text))))
  const quarter = Buffer.alloc(2 ** 18)
  await drafts[0]?.write(quarter)
  await drafts[1]?.write(quarter)
  await expect(drafts[2]?.write(quarter)).rejects.toThrow('too much')
  await drafts[0]?.drop()
  await drafts[2]?.write(quarter)
  for (const draft of drafts) await draft?.drop()
  expect(readdirSync(join(folder, 'drafts'))).toEqual([])
})

test('who went away is not looked up for, and what was being looked up stays', async () => {
  const shelf = new PackageShelf({ folder: () => folder })
  await put(shelf, 'hello world')
  expect(await shelf.find(origin, hashOf('hello world'), AbortSignal.abort())).toBeUndefined()
  expect(await take(shelf, 'hello world')).toBe('hello world')
})

test('what only calls itself an index is not held', async () => {
  const packages = new Packages(new PackageShelf({ folder: () => folder }))
  const asked = {
    scheme: 'https',
    method: 'GET',
    path: '/film',
    authority: 'index.example.com',
    isPrivate: false,
    headers: [['Accept', 'application/json']],
  } as const
  const told = (type: string, length: number): Answer => ({
    status: 200,
    statusText: 'OK',
    headers: [
      ['content-type', type],
      ['content-length', String(length)],
    ],
    body: Readable.from([]),
    trailers: () => [],
  })
  for (const answer of [told('video/mp4', 1000), told('application/json', 9 * 2 ** 20)]) expect(await packages.watch(asked, answer)).toBe(answer)
  const index = told('application/json', 1000)
  expect(await packages.watch(asked, index)).not.toBe(index)
})

test('of indexes that do not end only so much is held, and what is held of one that ends is given back', async () => {
  const packages = new Packages(new PackageShelf({ folder: () => folder }))
  const hash = hashOf('a')
  const page = `<a href="/a.whl#sha256=${hash.hex}">a</a>${' '.repeat(7 * 2 ** 20)}`
  const ask = (path: string) =>
    ({ scheme: 'https', method: 'GET', path, authority: 'index.example.com', isPrivate: false, headers: [['Accept', 'application/json']] }) as const
  const told = (body: Readable): Answer => ({ status: 200, statusText: 'OK', headers: [['content-type', 'text/html']], body, trailers: () => [] })
  const begin = async (): Promise<PassThrough> => {
    const body = new PassThrough()
    ;(await packages.watch(ask('/simple/a/'), told(body))).body.resume()
    await new Promise((resolve) => body.write(page, resolve))
    return body
  }
  // Whether what an index promised was noted, shows in what is asked for it.
  const isNoted = async (): Promise<boolean> => {
    const answer = told(Readable.from([]))
    return (await packages.watch(ask('/a.whl'), { ...answer, headers: [['content-type', 'application/zip']] })).body !== answer.body
  }
  const held = [await begin(), await begin()]
  const third = await begin()
  third.end()
  await setTimeout(100)
  expect(await isNoted()).toBe(false)
  for (const body of held) body.destroy()
  await setTimeout(100)
  ;(await begin()).end()
  await expect.poll(isNoted).toBe(true)
})

test('follows no link, and is not led by one that stands for its folder', async () => {
  const shelf = new PackageShelf({ folder: () => folder })
  await put(shelf, 'first')
  const [place = ''] = readdirSync(folder).filter((name) => name.startsWith('at-'))
  writeFileSync(join(folder, '..', 'elsewhere'), 'second')
  symlinkSync(join(folder, '..', 'elsewhere'), join(folder, place, `sha256-${hashOf('second').hex}`))
  expect(await take(shelf, 'second')).toBeUndefined()
  symlinkSync(folder, `${folder}-link`)
  const led = new PackageShelf({ folder: () => `${folder}-link` })
  expect(await led.begin(origin, hashOf('third'))).toBeUndefined()
})

test('one that is killed while it writes leaves nothing that is handed out', async () => {
  const text = 'x'.repeat(1000)
  const { hex } = hashOf(text)
  const source = join(import.meta.dirname, '../../src/egress/package-shelf.ts')
  const program = `const { PackageShelf } = await import(${JSON.stringify(source)})
const shelf = new PackageShelf({ folder: () => ${JSON.stringify(folder)} })
const draft = await shelf.begin(${JSON.stringify(origin)}, { algorithm: 'sha256', hex: '${hex}' })
await draft.write(Buffer.alloc(500, 'x')); console.log('half'); setInterval(() => {}, 1000)`
  const bundled = join(folder, '..', 'shelf.mjs')
  execFileSync('npx', ['esbuild', source, '--bundle', '--platform=node', '--format=esm', `--outfile=${bundled}`], { stdio: 'ignore' })
  const writer = spawn(process.execPath, ['--input-type=module', '-e', program.replace(JSON.stringify(source), JSON.stringify(bundled))])
  await once(writer.stdout, 'data')
  writer.kill('SIGKILL')
  await once(writer, 'close')
  const shelf = new PackageShelf({ folder: () => folder })
  expect(readdirSync(join(folder, 'drafts'))).toHaveLength(1)
  expect(await take(shelf, text)).toBeUndefined()
  await put(shelf, text)
  expect(await take(shelf, text)).toBe(text)
  utimesSync(join(folder, 'drafts', readdirSync(join(folder, 'drafts'))[0] ?? ''), new Date(0), new Date(0))
  await shelf.prune()
  expect(readdirSync(join(folder, 'drafts'))).toEqual([])
})

test('reads what indexes promise, and nothing else', () => {
  const hex = 'ab'.repeat(32)
  const integrity = `sha1-AAAA sha512-${Buffer.alloc(64, 1).toString('base64')}`
  const base = 'https://index.example.com/simple/tiny/'
  const html = `<a href="../../f/tiny.whl?a=1&amp;b=2#sha256=${hex.toUpperCase()}">x</a><a href="no-hash.whl">y</a><a href="http://plain.example.com/z#sha256=${hex}">z</a>`
  expect(readIndex(html, { type: 'text/html', base })).toEqual([['https://index.example.com/f/tiny.whl?a=1&b=2', { algorithm: 'sha256', hex }]])
  const python = JSON.stringify({ files: [{ url: 'tiny.whl', hashes: { sha256: hex } }, { url: 'b', hashes: { sha256: 'short' } }, null, 7] })
  expect(readIndex(python, { type: 'application/vnd.pypi.simple.v1+json', base })).toEqual([[`${base}tiny.whl`, { algorithm: 'sha256', hex }]])
  const npm = JSON.stringify({ versions: { '1': { dist: { tarball: 'https://r.example.com/t.tgz', integrity } }, '2': { dist: { tarball: 5 } }, '3': null } })
  expect(readIndex(npm, { type: 'application/json', base })).toEqual([['https://r.example.com/t.tgz', { algorithm: 'sha512', hex: '01'.repeat(64) }]])
  for (const type of ['text/plain', 'application/octet-stream', '']) expect(readIndex(html, { type, base })).toEqual([])
  // Of very many short links at a long place nobody keeps very many long ones.
  const many = `<a href="a#sha256=${hex}">a</a>`.repeat(30_000)
  expect(readIndex(many, { type: 'text/html', base }).length).toBe(20_000)
  expect(readIndex(many, { type: 'text/html', base: `https://index.example.com/${'l'.repeat(30_000)}/` })).toEqual([])
  for (const text of ['', '{', 'null', '[]', '{"files":{}}', '{"versions":[1]}']) expect(readIndex(text, { type: 'application/json', base })).toEqual([])
})
