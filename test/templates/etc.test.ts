import { spawnSync } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { buildEtc } from '../../src/templates/etc.js'

let place: string

beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), 'gbx-etc-'))
  mkdirSync(join(place, 'source/ssl/certs'), { recursive: true })
  writeFileSync(join(place, 'source/ssl/certs/a.pem'), 'certificate')
  symlinkSync('a.pem', join(place, 'source/ssl/certs/a.0'))
  writeFileSync(join(place, 'source/mime.types'), 'text/plain txt')
  mkdirSync(join(place, 'cache'))
})

afterEach(() => rmSync(place, { recursive: true }))

function build(cache = join(place, 'cache')): Promise<string> {
  return buildEtc({ source: join(place, 'source'), cache, shell: '/bin/sh' })
}

/** Every path with its mode, and what is in it or where it leads. */
function contentOf(tree: string): unknown {
  const paths = readdirSync(tree, { recursive: true, encoding: 'utf8' }).sort()
  return paths.map((path) => {
    const status = lstatSync(join(tree, path))
    const inside = status.isFile() ? readFileSync(join(tree, path), 'utf8') : status.isSymbolicLink() ? readlinkSync(join(tree, path)) : undefined
    return [path, status.mode, inside]
  })
}

test('a tree that is as it was left is used again, not built again', async () => {
  const tree = await build()
  const { ino } = statSync(tree)
  expect(await build()).toBe(tree)
  expect(statSync(tree).ino).toBe(ino)
})

describe('a tree is built again when', () => {
  const damages: [string, (tree: string) => void][] = [
    ['a file is missing', (tree) => rmSync(join(tree, 'passwd'))],
    ['a file is missing in a folder', (tree) => rmSync(join(tree, 'ssl/certs/a.pem'))],
    ['a file was written to', (tree) => appendFileSync(join(tree, 'passwd'), 'eve::0:0::/:/bin/sh\n')],
    ['a file was cut short', (tree) => writeFileSync(join(tree, 'mime.types'), '')],
    [
      'a file was exchanged for one of the same size and age',
      (tree) => {
        const { atime, mtime, size } = statSync(join(tree, 'hosts'))
        writeFileSync(join(tree, 'hosts'), 'x'.repeat(size))
        utimesSync(join(tree, 'hosts'), atime, mtime)
      },
    ],
    ['a file was added', (tree) => writeFileSync(join(tree, 'shadow'), 'root::1:::::\n')],
    [
      'a link leads elsewhere',
      (tree) => {
        rmSync(join(tree, 'ssl/certs/a.0'))
        symlinkSync('/etc/shadow', join(tree, 'ssl/certs/a.0'))
      },
    ],
    ['a file may not be read any more', (tree) => chmodSync(join(tree, 'passwd'), 0o600)],
    ['it is empty', (tree) => rmSync(tree, { recursive: true })],
    [
      'a file is in its place',
      (tree) => {
        rmSync(dirname(tree), { recursive: true })
        writeFileSync(dirname(tree), 'x')
      },
    ],
    [
      'a link is in its place',
      (tree) => {
        rmSync(dirname(tree), { recursive: true })
        symlinkSync(join(place, 'source'), dirname(tree))
      },
    ],
    ['its record is gone', (tree) => rmSync(recordOf(tree))],
    ['its record was cut short', (tree) => writeFileSync(recordOf(tree), readFileSync(recordOf(tree)).subarray(0, 50))],
    ['its record says nothing', (tree) => writeFileSync(recordOf(tree), '[]')],
    ['its record is none', (tree) => writeFileSync(recordOf(tree), '7')],
  ]

  function recordOf(tree: string): string {
    return join(dirname(tree), readdirSync(dirname(tree)).find((name) => name.endsWith('.json')) as string)
  }

  test.each(damages)('%s', async (_, damage) => {
    const tree = await build()
    const before = contentOf(tree)
    damage(tree)
    expect(await build()).toBe(tree)
    expect(contentOf(tree)).toEqual(before)
    expect(readdirSync(join(place, 'cache'))).toHaveLength(1)
    expect(existsSync(join(place, 'source/mime.types'))).toBe(true)
  })

  test('engines that find it damaged at the same moment all get a whole one', async () => {
    const tree = await build()
    const before = contentOf(tree)
    rmSync(join(tree, 'passwd'))
    expect(new Set(await Promise.all(Array.from({ length: 8 }, () => build())))).toEqual(new Set([tree]))
    expect(contentOf(tree)).toEqual(before)
    expect(readdirSync(join(place, 'cache'))).toHaveLength(1)
  })
})

test('a cache without space is told by its folder, and nothing is left in it', async (context) => {
  const cache = join(place, 'cache')
  const { status, stderr } = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=4k', 'gbx-test', cache], { encoding: 'utf8' })
  if (status !== 0) return context.skip(`a small file system cannot be mounted: ${stderr.trim()}`)
  try {
    await expect(build()).rejects.toMatchObject({ code: 'unavailable', message: `${cache}: no space left (ENOSPC)`, hint: `df -h ${cache}` })
    expect(readdirSync(cache)).toEqual([])
  } finally {
    spawnSync('umount', [cache])
  }
})
