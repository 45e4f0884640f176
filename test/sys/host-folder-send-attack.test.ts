/**
 * Uploads of folders that a guest writes in at the same time. The archive goes piece by piece, and between two of them the guest acts: so it is never too early
 * or too late.
 */
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readlinkSync, realpathSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { LocalSource } from '../../src/contract/transfer.js'
import { localFiles } from '../../src/sys/host-folder.js'

let home: string
let shared: string
let victim: string

beforeEach(() => {
  home = realpathSync(mkdtempSync(join(tmpdir(), 'gbx-send-attack-')))
  shared = join(home, 'shared')
  victim = join(home, 'victim')
  mkdirSync(join(shared, 'sub', 'inner'), { recursive: true })
  mkdirSync(join(victim, 'inner'), { recursive: true })
  for (const name of ['a', 'inner/x', 'z']) {
    writeFileSync(join(shared, 'sub', name), `mine ${name}`)
    writeFileSync(join(victim, name), 'precious')
  }
})

afterEach(() => {
  expect(heldBelow(home)).toEqual([])
  rmSync(home, { recursive: true })
})

/** What this process has open there. */
function heldBelow(folder: string): string[] {
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      const path = readlinkSync(`/proc/self/fd/${fd}`)
      return path.startsWith(folder) ? [path] : []
    } catch {
      return []
    }
  })
}

/** The guest acts when the header of this name has come; its last block is the one that has it. */
async function gather({ bytes }: LocalSource, { after = '', act = nothing }: { after?: string; act?: () => void } = {}): Promise<Buffer> {
  const pieces: Buffer[] = []
  let acted = after === ''
  for await (const piece of bytes) {
    pieces.push(Buffer.from(piece))
    if (acted || !Buffer.from(piece.slice(-512)).toString().startsWith(`${after}\0`)) continue
    act()
    acted = true
  }
  expect(acted).toBe(true)
  return Buffer.concat(pieces)
}

function nothing(): void {
  // As a guest that keeps still.
}

function swap(path: string, target: string): void {
  renameSync(path, join(home, 'moved'))
  symlinkSync(target, path)
}

const listed = (archive: Buffer): string[] => execFileSync('tar', ['-tvf', '-'], { input: archive }).toString().trim().split('\n').map(nameAndType)

function nameAndType(line: string): string {
  return `${line.slice(0, 1)} ${line.split(/\s+/).slice(5).join(' ')}`
}

const whole = ['- a', 'd inner/', '- inner/x', '- z']

describe('an upload of a folder that a guest writes in', () => {
  test('goes whole when nobody interferes', async () => {
    const archive = await gather(await localFiles.send(join(shared, 'sub')))
    expect(listed(archive)).toEqual(whole)
    expect(archive.includes('mine inner/x')).toBe(true)
  })

  test('sends a link that was planted for a file or a folder meanwhile as a link', async () => {
    const act = (): void => {
      rmSync(join(shared, 'sub', 'z'))
      symlinkSync(join(victim, 'z'), join(shared, 'sub', 'z'))
      swap(join(shared, 'sub', 'inner'), victim)
    }
    const archive = await gather(await localFiles.send(join(shared, 'sub')), { after: 'a', act })
    expect(listed(archive)).toEqual(['- a', `l inner -> ${victim}`, `l z -> ${join(victim, 'z')}`])
    expect(archive.includes('precious')).toBe(false)
  })

  test('sends what was in a folder that is swapped for a link once it is told of', async () => {
    const archive = await gather(await localFiles.send(join(shared, 'sub')), {
      after: 'inner/',
      act: () => swap(join(shared, 'sub', 'inner'), join(victim, 'inner')),
    })
    expect(listed(archive)).toEqual(whole)
    expect([archive.includes('mine inner/x'), archive.includes('precious')]).toEqual([true, false])
  })

  test.each(['shared', 'shared/sub'])('sends what it looked at when %s is swapped for a link before it is read', async (path) => {
    const source = await localFiles.send(join(shared, 'sub'))
    swap(join(home, path), path === 'shared' ? home : victim)
    const archive = await gather(source)
    expect(listed(archive)).toEqual(whole)
    expect(archive.includes('precious')).toBe(false)
  })

  test('of one file of it sends that one, as long as it was, when it is swapped or written to before it is read', async () => {
    const source = await localFiles.send(join(shared, 'sub', 'a'))
    writeFileSync(join(shared, 'sub', 'a'), 'and more', { flag: 'a' })
    swap(join(shared, 'sub', 'a'), join(victim, 'a'))
    expect((await gather(source)).toString()).toBe('mine a')
  })

  test.each(['z', 'inner'])('refuses a link to %s as the path itself, and names it', async (name) => {
    symlinkSync(join(victim, name), join(shared, 'out'))
    await expect(localFiles.send(join(shared, 'out'))).rejects.toMatchObject({
      code: 'conflict',
      message: `upload: ${join(shared, 'out')} is a link, and none is followed`,
    })
  })

  test('refuses a link on the way that others may have planted', async () => {
    symlinkSync(victim, join(shared, 'way'))
    // A link of root's in a folder of root's is the administrator's; here the folder is open to others, as a guest's is.
    chmodSync(shared, 0o777)
    for (const path of ['way/z', 'way/inner', 'way/inner/x'])
      await expect(localFiles.send(join(shared, path))).rejects.toMatchObject({
        code: 'conflict',
        message: expect.stringMatching(/^upload: way on the way to .* which a guest may have planted$/),
      })
  })

  test('never reads through a link, however often files and folders are swapped for links and back', async () => {
    const swapping = new Worker(swapper, { eval: true, workerData: { shared: join(shared, 'sub'), victim } })
    try {
      await new Promise((resolve) => swapping.once('message', resolve))
      for (let round = 0; round < 300; round += 1) {
        const archive = await rejectionOrValue(localFiles.send(join(shared, 'sub')).then(gather))
        if (Buffer.isBuffer(archive)) expect(archive.includes('precious')).toBe(false)
        else expect(archive).toMatchObject({ code: 'conflict', message: expect.stringContaining('was changed while it was read') })
      }
    } finally {
      await swapping.terminate()
    }
  }, 60_000)
})

const swapper = `
const { parentPort, workerData: { shared, victim } } = require('node:worker_threads')
const { renameSync, symlinkSync, unlinkSync } = require('node:fs')
parentPort.postMessage('begun')
for (;;) for (const name of ['a', 'inner']) {
  const path = shared + '/' + name
  renameSync(path, shared + '/../kept-' + name)
  symlinkSync(victim + '/' + name, path)
  unlinkSync(path)
  renameSync(shared + '/../kept-' + name, path)
}`

async function rejectionOrValue(asking: Promise<unknown>): Promise<unknown> {
  try {
    return await asking
  } catch (error) {
    return error
  }
}

describe('an upload that is given up', () => {
  test.each(['sub', 'sub/a'])('of %s holds nothing open, whether it was never begun or is in the middle', async (path) => {
    {
      await using source = await localFiles.send(join(shared, path))
      expect(heldBelow(home)).toEqual([join(shared, path)])
      expect(source.skipped).toEqual([])
    }
    expect(heldBelow(home)).toEqual([])
    {
      await using source = await localFiles.send(join(shared, path))
      await source.bytes[Symbol.asyncIterator]().next()
      expect(heldBelow(home)).toContain(join(shared, path))
    }
    expect(heldBelow(home)).toEqual([])
  })

  test('because its archive fails holds nothing open', async () => {
    const source = await localFiles.send(join(shared, 'sub'))
    const abort = new AbortController()
    const aborted = await localFiles.send(join(shared, 'sub'), { signal: abort.signal })
    abort.abort()
    await expect(gather(aborted)).rejects.toMatchObject({ name: 'AbortError' })
    expect(heldBelow(home)).toEqual([join(shared, 'sub')])
    await gather(source)
  })
})
