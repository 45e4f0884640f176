import { existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { SandboxError } from '../../../src/contract/errors.js'
import { ImageTree } from '../../../src/templates/images/image-tree.js'
import { type ImageLimits, LayerReader } from '../../../src/templates/images/layers.js'
import { materialise } from '../../../src/templates/images/materialise.js'
import { settleRoot } from '../../../src/templates/images/image-root.js'
import { digest, header, inPieces, padded, pax, type RawEntry, tar } from './archives.js'

let place: string

beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), 'gbx-layers-'))
})
afterEach(() => rmSync(place, { recursive: true, force: true }))

let attempts = 0

/** All layers, unpacked; every entry as `kind content-or-target`, by path. */
async function unpacked(layers: readonly Buffer[], { limits, settled = false }: { limits?: ImageLimits; settled?: boolean } = {}) {
  attempts += 1
  const folder = join(place, `contents${attempts}`)
  const root = join(place, `root${attempts}`)
  mkdirSync(folder)
  const tree = new ImageTree()
  const reader = new LayerReader({ tree, folder, ...(limits && { limits }) })
  for (const layer of layers) await reader.add(inPieces(layer))
  if (settled) settleRoot(tree, reader)
  const { entries } = tree
  await materialise(tree, { root })
  const files = listed(root)
  expect(Object.keys(files)).toHaveLength(entries)
  return { files, root, leftOut: Object.fromEntries(reader.leftOut.told.map(({ path, why }) => [path, why])), count: reader.leftOut.count }
}

function listed(root: string, path = ''): Record<string, string> {
  const found: Record<string, string> = {}
  for (const name of readdirSync(join(root, path))) {
    const inner = path === '' ? name : `${path}/${name}`
    const status = lstatSync(join(root, inner))
    if (status.isDirectory()) Object.assign(found, { [inner]: 'folder' }, listed(root, inner))
    else found[inner] = status.isSymbolicLink() ? `link ${readlinkSync(join(root, inner))}` : `file ${readFileSync(join(root, inner), 'utf8')}`
  }
  return found
}

async function files(...entries: readonly (RawEntry | Buffer)[]): Promise<Record<string, string>> {
  return (await unpacked([tar(...entries)])).files
}

const refusal = { code: 'invalid', message: expect.stringContaining('the image is refused: ') }

describe('layers', () => {
  test('lie over each other: later files replace, marks remove, an opaque folder hides what was beneath and nothing of its own', async () => {
    const lower = tar(
      { name: 'a/one', content: '1' },
      { name: 'a/two', content: '2' },
      { name: 'b/deep/three', content: '3' },
      { name: 'c', content: 'file' },
      { name: 'd/x', content: 'x' },
    )
    const upper = tar(
      { name: 'a/.wh.one' },
      { name: 'a/two', content: 'two' },
      { name: 'b/new', content: 'before the mark' },
      { name: 'b/.wh..wh..opq' },
      { name: 'b/late', content: 'behind it' },
      { name: 'c/', type: '5' },
      { name: 'd', content: 'no folder any more' },
    )
    expect((await unpacked([lower, upper])).files).toEqual({
      a: 'folder',
      'a/two': 'file two',
      b: 'folder',
      'b/new': 'file before the mark',
      'b/late': 'file behind it',
      c: 'folder',
      d: 'file no folder any more',
    })
  })

  test('a mark removes nothing of its own layer, wherever it stands', async () => {
    const lower = tar({ name: 'a', content: 'old' }, { name: 'f/x', content: 'old' })
    const upper = tar({ name: 'a', content: 'new' }, { name: '.wh.a' }, { name: 'f/y', content: 'new' }, { name: '.wh.f' }, { name: '.wh.nothing' })
    expect((await unpacked([lower, upper])).files).toEqual({ a: 'file new', f: 'folder', 'f/y': 'file new' })
  })

  test('compressed ones are told by their bytes; what comes out has the digest of the archive itself', async () => {
    const layer = tar({ name: 'a', content: 'x' })
    const reader = new LayerReader({ tree: new ImageTree(), folder: place })
    expect(await reader.add(inPieces(gzipSync(layer), 3))).toBe(digest(layer))
  })

  test('a path through a link lands where the link leads inside the image, and never outside', async () => {
    expect(
      await files(
        { name: 'lib', type: '2', target: 'usr/lib' },
        { name: 'lib/so', content: 'in usr' },
        { name: 'up', type: '2', target: '../../../../../../../etc' },
        { name: 'up/passwd', content: 'ours' },
        { name: 'abs', type: '2', target: '/tmp/x' },
        { name: 'abs/file', content: 'ours too' },
      ),
    ).toEqual({
      lib: 'link usr/lib',
      usr: 'folder',
      'usr/lib': 'folder',
      'usr/lib/so': 'file in usr',
      up: 'link ../../../../../../../etc',
      etc: 'folder',
      'etc/passwd': 'file ours',
      abs: 'link /tmp/x',
      tmp: 'folder',
      'tmp/x': 'folder',
      'tmp/x/file': 'file ours too',
    })
  })

  test('long names of both kinds, and numbers as bytes, are read', async () => {
    const long = `${'n'.repeat(120)}/${'m'.repeat(120)}`
    const target = 't'.repeat(180)
    const binary = header({ name: 'big', content: 'abc' })
    binary.fill(0, 124, 136)
    binary[124] = 0x80
    binary[135] = 3
    binary.write(' '.repeat(8), 148)
    binary.write(
      `${binary
        .reduce((sum, byte) => sum + byte, 0)
        .toString(8)
        .padStart(6, '0')}\0 `,
      148,
    )
    const found = await files(
      { name: '././@LongLink', type: 'L', content: `${long}\0` },
      { name: long.slice(0, 100), content: 'gnu' },
      { name: '././@LongLink', type: 'K', content: `${target}\0` },
      { name: 'link', type: '2', target: target.slice(0, 100) },
      pax({ path: `pax/${'p'.repeat(150)}` }),
      { name: 'pax/short', content: 'pax' },
      Buffer.concat([binary, padded('abc')]),
    )
    expect(found[long]).toBe('file gnu')
    expect(found.link).toBe(`link ${target}`)
    expect(found[`pax/${'p'.repeat(150)}`]).toBe('file pax')
    expect(found.big).toBe('file abc')
  })

  test('hard links are one file, also when the first name goes; of the same entry twice the later counts', async () => {
    const lower = tar(
      { name: 'a', content: 'same', mode: 0o755 },
      { name: 'b', type: '1', target: './a' },
      { name: 'c', content: '1' },
      { name: 'c', content: '2' },
    )
    const { files: found, root } = await unpacked([lower, tar({ name: '.wh.a' }, { name: 'd', type: '1', target: '/b' })])
    expect(found).toEqual({ b: 'file same', c: 'file 2', d: 'file same' })
    expect([lstatSync(join(root, 'b')).ino === lstatSync(join(root, 'd')).ino, lstatSync(join(root, 'b')).mode & 0o7777]).toEqual([true, 0o755])
  })

  test('a file with more names than the file system gives one is several', async () => {
    const names = Array.from({ length: 66_000 }, (_, index) => `n${index}`)
    const { files: found } = await unpacked([tar({ name: 'first', content: 'same' }, ...names.map((name) => ({ name, type: '1', target: 'first' })))])
    expect(new Set(Object.values(found))).toEqual(new Set(['file same']))
    expect(Object.keys(found)).toHaveLength(66_001)
  })
})

describe('what an archive may not', () => {
  test.each<[string, RawEntry[]]>([
    ['a name that leads out', [{ name: '../escaped', content: 'x' }]],
    ['one that leads out in its middle', [{ name: 'a/../../escaped', content: 'x' }]],
    ['a mark that leads out', [{ name: '../.wh.escaped' }]],
    ['a mark of what has no name', [{ name: 'a/.wh...' }]],
    ['an empty mark', [{ name: '.wh.' }]],
    ['a hard link out', [{ name: 'a', type: '1', target: '../../etc/passwd' }]],
    ['a hard link to what only the machine has', [{ name: 'a', type: '1', target: '/etc/passwd' }]],
    [
      'a hard link to a folder',
      [
        { name: 'd/', type: '5' },
        { name: 'a', type: '1', target: 'd' },
      ],
    ],
    [
      'a file below a file',
      [
        { name: 'a', content: 'x' },
        { name: 'a/b', content: 'x' },
      ],
    ],
    [
      'a path through a circle',
      [
        { name: 'a', type: '2', target: 'b' },
        { name: 'b', type: '2', target: 'a' },
        { name: 'a/c', content: 'x' },
      ],
    ],
    [
      'a path that links make too deep',
      [
        {
          name: 'a',
          type: '2',
          target: Array.from({ length: 300 }, () => 'd')
            .join('/')
            .slice(0, 99),
        },
        ...deep(10),
      ],
    ],
  ])('%s is refused', async (_name, entries) => {
    await expect(unpacked([tar(...entries)])).rejects.toMatchObject(refusal)
    expect(existsSync(join(place, 'escaped')) || existsSync(join(place, '..', 'escaped'))).toBe(false)
  })

  /** Each link leads 45 folders further down. */
  function deep(times: number): RawEntry[] {
    const step = Array.from({ length: 45 }, () => 'd').join('/')
    const names = Array.from({ length: times }, (_, index) => `l${index}`)
    return names.map((name, index) => ({ name: `${names.slice(0, index).join('/')}${index === 0 ? '' : '/'}${name}`, type: '2', target: step }))
  }

  test('what cannot be in a template is left out and told: devices, FIFOs, set-id bits, names that nobody can type', async () => {
    const {
      files: found,
      leftOut,
      count,
    } = await unpacked([
      tar(
        { name: 'dev/sda', type: '4' },
        { name: 'dev/tty', type: '3' },
        { name: 'pipe', type: '6' },
        { name: 'su', mode: 0o4755, content: 'x' },
        { name: 'wall', mode: 0o2755, content: 'x' },
        { name: 'evil\u001b[2Jname', content: 'x' },
        { name: Buffer.from([0x61, 0xff]), content: 'x' },
        { name: 'link', type: '2', target: 'a\nb' },
        { name: '.wh..wh.plnk/', type: '5' },
      ),
    ])
    expect(found).toEqual({ su: 'file x', wall: 'file x' })
    expect(leftOut).toEqual({
      '/dev/sda': 'is a device',
      '/dev/tty': 'is a device',
      '/pipe': 'is a FIFO',
      '/su': 'its set-id bit is taken away',
      '/wall': 'its set-id bit is taken away',
      '/evil\\u001b[2Jname': 'its name has control characters',
      '/a\ufffd': 'its name is not UTF-8',
      '/link': 'leads to what nobody can name',
      '/.wh..wh.plnk': 'is a note of the tool that made the layer',
    })
    expect(count).toBe(9)
  })

  test('a mode is only what can be executed and what not', async () => {
    const { root } = await unpacked([
      tar({ name: 'su', mode: 0o6777, content: 'x' }, { name: 'd/', type: '5', mode: 0o1777 }, { name: 'secret', mode: 0o000, content: 'x' }),
    ])
    expect(['su', 'd', 'secret'].map((name) => (lstatSync(join(root, name)).mode & 0o7777).toString(8))).toEqual(['755', '755', '644'])
  })

  test('more bytes or entries than the bounds say are refused, also when they are packed very small', async () => {
    const limits = { bytes: 10_000, entries: 20 }
    const bomb = gzipSync(tar({ name: 'zeros', content: Buffer.alloc(200_000) }))
    expect(bomb.length).toBeLessThan(1000)
    await expect(unpacked([bomb], { limits })).rejects.toMatchObject({ ...refusal, message: expect.stringContaining('more than 10000 bytes') })
    const many = tar(...Array.from({ length: 21 }, (_, index) => ({ name: `f${index}` })))
    await expect(unpacked([many], { limits })).rejects.toMatchObject({ ...refusal, message: expect.stringContaining('more than 20 entries') })
    const deep = tar({ name: `${'d/'.repeat(30)}f`, content: '' })
    await expect(unpacked([deep], { limits })).rejects.toMatchObject({ ...refusal, message: expect.stringContaining('more than 20 entries') })
    const twice = tar({ name: 'a', content: Buffer.alloc(6000) })
    await expect(unpacked([twice, twice], { limits })).rejects.toMatchObject(refusal)
    const claims = Buffer.concat([header({ name: 'a', size: 5000 }), Buffer.alloc(100)])
    await expect(unpacked([claims], { limits })).rejects.toMatchObject({ code: 'conflict', message: expect.stringContaining('cut short') })
    const padding = gzipSync(Buffer.concat([tar({ name: 'a' }), Buffer.alloc(3_000_000)]))
    await expect(unpacked([padding], { limits })).rejects.toBeInstanceOf(SandboxError)
  })

  test('sparse files and types that nobody knows are refused; a damaged compression is told as such', async () => {
    await expect(files(pax({ 'GNU.sparse.major': '1' }), { name: 'a', content: 'x' })).rejects.toMatchObject({
      code: 'conflict',
      message: 'the archive has a sparse file',
    })
    await expect(files({ name: 'a', type: 'S' })).rejects.toMatchObject({ code: 'conflict' })
    const packed = gzipSync(tar({ name: 'a', content: Buffer.alloc(50_000, 1) }))
    await expect(unpacked([packed.subarray(0, packed.length / 2)])).rejects.toMatchObject({ code: 'conflict', message: expect.stringContaining('cut short') })
  })
})

describe('a root that a cell is shown', () => {
  test('has nothing where a cell has its own, real folders where a cell needs them, and the users of both', async () => {
    const { files: found, leftOut } = await unpacked(
      [
        tar(
          { name: 'proc/1/environ', content: 'x' },
          { name: 'tmp/x', content: 'x' },
          { name: 'root/.ssh', content: 'x' },
          { name: 'var', type: '2', target: '/etc' },
          { name: 'home', type: '2', target: '/' },
          { name: 'etc/passwd', content: 'root:x:0:0:root:/root:/bin/sh\napp:x:1000:1000::/home/app:/bin/sh\n' },
          { name: 'etc/resolv.conf', type: '2', target: '/proc/self/environ' },
          { name: '.dockerenv' },
          { name: 'bin/sh', content: '#!', mode: 0o755 },
        ),
      ],
      { settled: true },
    )
    expect(Object.keys(found).filter((path) => !path.startsWith('etc'))).toEqual(['bin', 'bin/sh'])
    expect(found['etc/passwd']).toContain('app:x:1000:')
    expect(found['etc/passwd']).toContain('warden:x:65532:')
    expect(found['etc/passwd']).not.toContain('user:x:1000:')
    expect([found['etc/resolv.conf'], found['etc/mtab']]).toEqual(['file nameserver 127.0.0.1\n', 'link /proc/self/mounts'])
    expect(leftOut).toEqual({ '/root': 'a sandbox has its own there', '/var': 'must be a folder, and is none', '/home': 'must be a folder, and is none' })
  })

  test('an /etc that is a link is none', async () => {
    const { files: found } = await unpacked([tar({ name: 'etc', type: '2', target: '/usr' }, { name: 'etc/passwd', content: 'in usr' })], { settled: true })
    expect([found.etc, found['usr/passwd'], found['etc/hostname']]).toEqual(['folder', 'file in usr', 'file glovebox\n'])
  })
})

describe('any archive', () => {
  const name = fc.oneof(
    fc.constantFrom('a', 'b', 'a/b', 'a/b/c', './a', '/a', '//a//b', '.wh.a', 'a/.wh.b', 'a/.wh..wh..opq', '.wh..wh..opq', '..', 'a/..', 'l', 'l/x', 'm/l', ''),
    fc.string({ maxLength: 12 }),
  )
  const entry = fc.record({
    name,
    type: fc.constantFrom('0', '0', '0', '1', '2', '2', '5', '3', '6', 'L'),
    target: fc.oneof(name, fc.constantFrom('/', '..', '../../..', '/etc/passwd', '/a/b', 'l')),
    content: fc.string({ maxLength: 20 }),
    mode: fc.integer({ min: 0, max: 0o7777 }),
  })

  test('either becomes files below its root and nowhere else, or is refused by an error of ours', { timeout: 120_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(entry, { maxLength: 12 }), { minLength: 1, maxLength: 3 }), async (layers) => {
        const before = readdirSync(place).length
        const archives = layers.map((entries) => tar(...entries.map((each) => (each.type === '0' || each.type === 'L' ? each : { ...each, content: '' }))))
        const result = await unpacked(archives, { settled: true }).catch((error: unknown) => error)
        if (!('files' in (result as object))) expect(result).toBeInstanceOf(SandboxError)
        expect(readdirSync(place).length - before).toBeLessThanOrEqual(2)
        for (const each of readdirSync(place).slice(0, -4)) rmSync(join(place, each), { recursive: true, force: true })
      }),
      { numRuns: 400 },
    )
  })

  test('with any of its bytes changed is refused by an error of ours, or is files', { timeout: 120_000 }, async () => {
    const whole = tar({ name: 'a/b', content: 'x'.repeat(700) }, pax({ path: 'p' }), { name: 'q', type: '2', target: 'a' }, { name: 'q/r', content: 'y' })
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 }), async (changes) => {
        const changed = Buffer.from(whole)
        for (const [at, value] of changes) changed[at] = value
        const result = await unpacked([changed]).catch((error: unknown) => error)
        if (!('files' in (result as object))) expect(result).toBeInstanceOf(SandboxError)
        for (const each of readdirSync(place)) rmSync(join(place, each), { recursive: true, force: true })
      }),
      { numRuns: 400 },
    )
  })
})
