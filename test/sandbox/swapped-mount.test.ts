/** A folder of the host's that a real guest writes in, swapping what is in it for links to another of the host's while files are moved out of it and into it. */
import { chownSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createPlatform, localFiles } from '../../src/compose.js'
import type { Platform } from '../../src/contract/platform.js'
import { Sandbox, SandboxFiles } from '../../src/sandbox/index.js'

const guestId = 1000
const isDeep = process.env.GLOVEBOX_DEEP === '1'
/** As many as there is time for, where it is not about their number. */
const [rounds, mostMs] = isDeep ? [2500, Number.POSITIVE_INFINITY] : [2500, 2500]

let home: string
let shared: string
let victim: string
let platform: Platform

beforeEach(() => {
  platform = createPlatform()
  home = realpathSync(mkdtempSync(join(tmpdir(), 'gbx-swap-')))
  shared = join(home, 'shared')
  victim = join(home, 'victim')
  mkdirSync(join(shared, 'd', 'inner'), { recursive: true })
  mkdirSync(join(victim, 'inner'), { recursive: true })
  for (const name of ['key', 'inner/key']) {
    writeFileSync(join(shared, 'd', name), 'mine')
    writeFileSync(join(victim, name), 'precious')
  }
  // What belongs to root is not handed to a guest.
  if (process.getuid?.() !== 0) return
  for (const path of ['', 'd', 'd/inner', 'd/key', 'd/inner/key']) chownSync(join(shared, path), guestId, guestId)
})

afterEach(async () => {
  await platform[Symbol.asyncDispose]()
  rmSync(home, { recursive: true })
})

/** Exchanges the folder, what is in it, and links to the same of the victim's, each at once, as often as it can. */
const swap = `import ctypes, os, sys
victim = sys.argv[1]
os.chdir('/data')
exchange = ctypes.CDLL(None, use_errno=True).renameat2
os.symlink(victim, 'link')
os.symlink(victim + '/inner', 'inner-link')
os.symlink(victim + '/key', 'key-link')
print('ready', flush=True)
while True:
    for one, other in ((b'd/inner', b'inner-link'), (b'd/key', b'key-link'), (b'd', b'link')):
        for _ in range(2): exchange(-100, one, -100, other, 2)
`

async function verdict(name: string, act: Promise<unknown>): Promise<string> {
  return act.then(
    () => `${name}: done`,
    (error: unknown) => `${name}: ${(error as { code?: string }).code ?? String(error)}`,
  )
}

test('a guest that swaps folders and files for links while they go in and out reaches nothing that is not its own', { timeout: 600_000 }, async ({ skip }) => {
  const [probe] = await platform.probe()
  const mounts = probe?.features['mounts-rw']
  if (probe?.isolates !== true || mounts?.available !== true) skip(`no folder can be shared here: ${JSON.stringify(mounts)}`)
  await using sandbox = await Sandbox.create({ platform, mounts: [{ source: shared, target: '/data', mode: 'rw' }], lifetime: '15m' })
  const files = new SandboxFiles({ files: platform.files.of(sandbox.id), local: localFiles })
  for (const name of ['key', 'inner/key']) await files.write(`out/${name}`, 'pwned')
  const guest = await sandbox.spawn(['/usr/bin/python3', '-I', '-c', swap, victim])
  await guest.stdout.getReader().read()

  const seen = new Map<string, number>()
  const until = performance.now() + mostMs
  let round = 0
  const isMet = (ending: string): boolean => [...seen.keys()].some((each) => each.endsWith(ending))
  for (; round < rounds && (performance.now() < until || !isMet(': done') || !isMet(': conflict')); round += 1) {
    const at = join(shared, 'd')
    const told = await Promise.all([
      verdict('upload folder', files.upload(at, 'in/folder')),
      verdict('upload file', files.upload(join(at, 'inner/key'), 'in/file')),
      verdict('download folder', files.download('out', at, { overwrite: true })),
      verdict('download file', files.download('out/key', join(at, 'inner/key'), { overwrite: true })),
    ])
    for (const each of told) seen.set(each, (seen.get(each) ?? 0) + 1)
  }
  await guest.kill()

  expect((await files.search('/workspace/in', 'precious')).matches).toEqual([])
  expect(readdirSync(victim, { recursive: true }).sort()).toEqual(['inner', 'inner/key', 'key'])
  for (const name of ['key', 'inner/key']) expect(readFileSync(join(victim, name), 'utf8')).toBe('precious')
  const told = [...seen.keys()].sort()
  expect(told.filter((each) => !/: (done|conflict|not-found|denied)$/.test(each))).toEqual([])
  expect(told.some((each) => each.endsWith(': done'))).toBe(true)
  expect(told.some((each) => each.endsWith(': conflict'))).toBe(true)
  expect(round).toBeGreaterThan(0)
  if (isDeep) expect(round).toBe(rounds)
})
