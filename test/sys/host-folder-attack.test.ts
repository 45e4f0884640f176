/**
 * Downloads into folders that a guest writes in at the same time. The archive comes piece by piece, and between two of them the guest acts: so it is never too
 * early or too late.
 */
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Received } from '../../src/contract/transfer.js'
import { HostFolder } from '../../src/sys/host-folder-handle.js'
import { localFiles } from '../../src/sys/host-folder.js'
import { currentOwner, ownerName } from '../../src/sys/owner.js'
import { removeHeld, removeTree } from '../../src/sys/tree-removal.js'
import { craftTar } from './tar-archives.js'

let home: string
let shared: string
let victim: string

beforeEach(() => {
  home = realpathSync(mkdtempSync(join(tmpdir(), 'gbx-attack-')))
  shared = join(home, 'shared')
  victim = join(home, 'victim')
  mkdirSync(join(shared, 'sub'), { recursive: true })
  mkdirSync(join(victim, 'inner'), { recursive: true })
  for (const name of ['key', 'inner/x']) writeFileSync(join(victim, name), 'precious', { mode: 0o640 })
  chmodSync(join(victim, 'inner'), 0o755)
})

afterEach(() => {
  expect(victimSeen()).toEqual(['inner 755', 'inner/x 640 precious', 'key 640 precious'])
  rmSync(home, { recursive: true })
})

function victimSeen(): string[] {
  const names = readdirSync(victim, { recursive: true, encoding: 'utf8' }).sort()
  return names.map((name) => {
    const status = lstatSync(join(victim, name))
    return `${name} ${(status.mode & 0o777).toString(8)}${status.isFile() ? ` ${readFileSync(join(victim, name), 'utf8')}` : ''}`
  })
}

const archive = craftTar([
  { name: 'key', content: 'pwned' },
  { name: 'inner/x', content: 'pwned' },
  { name: 'new', content: 'new' },
])

/** The guest acts when the first half is there. */
async function* attacked(act: () => void, bytes: Uint8Array = archive): AsyncGenerator<Uint8Array, void, undefined> {
  const half = Math.ceil(bytes.length / 1024) * 512
  yield bytes.subarray(0, half)
  await new Promise((resolve) => setImmediate(resolve))
  act()
  yield bytes.subarray(half)
}

const receive = (path: string, act: () => void): Promise<Received> => localFiles.receiveFolder(path, attacked(act), { overwrite: true })
const nothing = (): void => undefined

describe('a download into a folder that a guest writes in', () => {
  test('arrives when nobody interferes', async () => {
    await receive(join(shared, 'sub'), nothing)
    expect(readdirSync(join(shared, 'sub')).sort()).toEqual(['inner', 'key', 'new'])
    expect(readFileSync(join(shared, 'sub', 'key'), 'utf8')).toBe('pwned')
  })

  test('shows nothing of itself there before it is whole', async () => {
    const seen: string[] = []
    await receive(join(shared, 'sub'), () => seen.push(...readdirSync(shared), ...readdirSync(join(shared, 'sub'))))
    await receive(join(shared, 'fresh'), () => seen.push(...readdirSync(shared)))
    expect(seen).toEqual(['sub', 'sub'])
  })

  test('follows no link that was planted as the target, before or meanwhile', async () => {
    symlinkSync(victim, join(shared, 'out'))
    await expect(receive(join(shared, 'out'), nothing)).rejects.toMatchObject({ code: 'conflict', message: expect.stringContaining('is a link') })
    await expect(localFiles.receiveFile(join(shared, 'out'), attacked(nothing), { overwrite: true })).rejects.toMatchObject({ code: 'conflict' })
    await expect(receive(join(shared, 'fresh'), () => symlinkSync(victim, join(shared, 'fresh')))).rejects.toMatchObject({ code: 'conflict' })
    await expect(
      localFiles.receiveFile(
        join(shared, 'file'),
        attacked(() => symlinkSync(join(victim, 'key'), join(shared, 'file'))),
      ),
    ).rejects.toMatchObject({
      code: 'conflict',
    })
  })

  test('that is refused before it is read is left, so that nothing is held open for it', async () => {
    symlinkSync(victim, join(shared, 'out'))
    let left = 0
    async function* held(): AsyncGenerator<Uint8Array, void, undefined> {
      try {
        yield await Promise.resolve(archive)
      } finally {
        left += 1
      }
    }
    await expect(localFiles.receiveFolder(join(shared, 'out'), held())).rejects.toMatchObject({ code: 'conflict' })
    await expect(localFiles.receiveFile(join(shared, 'out'), held())).rejects.toMatchObject({ code: 'conflict' })
    expect(left).toBe(2)
  })

  test('follows no link that was planted above the target', async () => {
    symlinkSync(victim, join(shared, 'way'))
    // A link of root's in a folder of root's is the administrator's; here the folder is open to others, as a guest's is.
    chmodSync(shared, 0o777)
    for (const path of ['way/inner', 'way/fresh', 'way/inner/deeper']) {
      await expect(receive(join(shared, path), nothing)).rejects.toMatchObject({
        code: 'conflict',
        message: expect.stringContaining('which a guest may have planted'),
      })
      await expect(localFiles.receiveFile(join(shared, path), attacked(nothing))).rejects.toMatchObject({ code: 'conflict' })
    }
  })

  test('goes to the folder that was meant when it or one above is swapped for a link meanwhile', async () => {
    await receive(join(shared, 'sub'), () => {
      renameSync(join(shared, 'sub'), join(shared, 'moved'))
      symlinkSync(victim, join(shared, 'sub'))
    })
    expect(readdirSync(join(shared, 'moved')).sort()).toEqual(['inner', 'key', 'new'])
    await receive(join(shared, 'fresh'), () => {
      renameSync(shared, `${shared}.moved`)
      symlinkSync(victim, shared)
    })
    expect(readdirSync(join(`${shared}.moved`, 'fresh')).sort()).toEqual(['inner', 'key', 'new'])
  })

  test('never merges through a folder that was swapped for a link', async () => {
    mkdirSync(join(shared, 'sub', 'inner'))
    const swap = (): void => {
      rmSync(join(shared, 'sub', 'inner'), { recursive: true })
      symlinkSync(join(victim, 'inner'), join(shared, 'sub', 'inner'))
    }
    await receive(join(shared, 'sub'), swap)
    expect(lstatSync(join(shared, 'sub', 'inner')).isDirectory()).toBe(true)
  })

  test('leaves alone what bears the name of a draft, be it a folder of ours or a link', async () => {
    const name = `.glovebox.${ownerName({ ...currentOwner(), startTime: '1' })}-00000000-0000-4000-8000-000000000000.draft`
    mkdirSync(join(shared, 'sub', name))
    writeFileSync(join(shared, 'sub', name, 'mine'), 'mine')
    symlinkSync(victim, join(shared, 'sub', name.replace('4000', '4001')))
    await receive(join(shared, 'sub'), nothing)
    expect(readFileSync(join(shared, 'sub', name, 'mine'), 'utf8')).toBe('mine')
  })
})

const memory = '/dev/shm'
const isApart = existsSync(memory) && statSync(memory).dev !== statSync(tmpdir()).dev

describe.skipIf(!isApart)('a download to another file system', () => {
  let there: string
  beforeEach(() => {
    there = mkdtempSync(join(memory, 'gbx-attack-'))
  })
  afterEach(() => rmSync(there, { recursive: true }))

  test('is copied with its modes and links, and nothing is left besides', async () => {
    const bytes = craftTar([
      { name: 'd/', type: '5', mode: 0o750 },
      { name: 'd/f', content: 'x'.repeat(600_000), mode: 0o640 },
      { name: 'd/l', type: '2', target: 'f' },
    ])
    mkdirSync(join(there, 'full', 'd'), { recursive: true })
    for (const place of ['fresh', 'full']) {
      await localFiles.receiveFolder(join(there, place), attacked(nothing, bytes), { overwrite: true })
      expect(readFileSync(join(there, place, 'd', 'l'), 'utf8')).toBe('x'.repeat(600_000))
      expect(statSync(join(there, place, 'd', 'f')).mode & 0o777).toBe(0o640)
      expect(readdirSync(join(there, place, 'd')).sort()).toEqual(['f', 'l'])
    }
    await localFiles.receiveFile(join(there, 'file'), attacked(nothing), { mode: 0o600 })
    expect(readFileSync(join(there, 'file')).equals(archive)).toBe(true)
    expect(readdirSync(there).sort()).toEqual(['file', 'fresh', 'full'])
  })
})

describe('removing a tree', () => {
  test('never goes through a link that took the place of a folder, and neither opens nor empties what it leads to', async () => {
    const tree = join(shared, 'tree')
    for (let index = 0; index < 30; index += 1) {
      mkdirSync(join(tree, `d${index}`), { recursive: true })
      for (let file = 0; file < 40; file += 1) writeFileSync(join(tree, `d${index}`, `${file}`), '')
    }
    const removing = removeTree(tree)
    let swapped = 0
    // It pauses after every hundred entries: then the guest swaps what has not been reached.
    while (swapped === 0 && existsSync(tree)) {
      await new Promise((resolve) => setImmediate(resolve))
      for (const name of existsSync(tree) ? readdirSync(tree) : []) {
        if (!lstatSync(join(tree, name)).isDirectory() || readdirSync(join(tree, name)).length < 40) continue
        renameSync(join(tree, name), join(shared, `taken-${name}`))
        symlinkSync(victim, join(tree, name))
        swapped += 1
      }
    }
    await removing
    expect([swapped > 0, existsSync(tree)]).toEqual([true, false])
  })

  test('that is held empties that one alone, whatever has its name by now', async () => {
    mkdirSync(join(shared, 'held'))
    writeFileSync(join(shared, 'held', 'x'), '')
    await using above = await HostFolder.open(shared)
    await using held = await above.enter(Buffer.from('held'))
    renameSync(join(shared, 'held'), join(shared, 'moved'))
    symlinkSync(victim, join(shared, 'held'))
    await removeHeld({ folder: above.descriptor, name: Buffer.from('held') }, held.descriptor)
    expect([readdirSync(join(shared, 'moved')), lstatSync(join(shared, 'held')).isSymbolicLink()]).toEqual([[], true])
  })
})
