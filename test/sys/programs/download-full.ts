/** In a mount namespace of its own: downloads to small disks, and from a small place of ours, and tells what came of each and what is there afterwards. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createPlatform, Sandbox } from '../../../src/index.js'

const [home = '', driver = ''] = process.argv.slice(2)

function smallDisk(name: string): string {
  const path = join(home, name)
  mkdirSync(path)
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'none', path])
  return path
}

const listed = (path: string): string[] => readdirSync(path, { recursive: true, encoding: 'utf8' }).sort()

async function told(act: Promise<unknown>): Promise<unknown> {
  return act.then(
    () => 'done',
    ({ code, message, hint }: { code: string; message: string; hint: string }) => ({ code, message, hint }),
  )
}

const disk = smallDisk('disk')
const place = smallDisk('place')
process.env.GLOVEBOX_CACHE_DIR = join(home, 'cache')
const platform = createPlatform()
const sandbox = await Sandbox.create({ platform, driver, minTier: 'none' })
for (const [name, bytes] of Object.entries({ 'tree/a': 100_000, 'tree/b': 3_000_000, 'tree/new/c': 1, small: 1000 })) {
  await sandbox.files.write(name, new Uint8Array(bytes))
}
const results: Record<string, unknown> = {}

results.file = [await told(sandbox.files.download('tree/b', join(disk, 'file'))), listed(disk)]
results.folder = [await told(sandbox.files.download('tree', join(disk, 'folder'))), listed(disk)]
mkdirSync(join(disk, 'there', 'new'), { recursive: true })
writeFileSync(join(disk, 'there', 'a'), 'old')
results.merged = [
  await told(sandbox.files.download('tree', join(disk, 'there'), { overwrite: true })),
  listed(disk),
  readFileSync(join(disk, 'there', 'a'), 'utf8'),
]
results.small = [await told(sandbox.files.download('small', join(disk, 'there', 'small'))), listed(disk)]

process.env.GLOVEBOX_CACHE_DIR = place
process.env.TMPDIR = place
const before = listed(place)
results.staged = [await told(sandbox.files.download('tree', join(home, 'out'))), listed(place).filter((name) => !before.includes(name))]
results.stagedFile = [await told(sandbox.files.download('tree/b', join(home, 'out'))), listed(place).filter((name) => !before.includes(name))]
results.home = readdirSync(home).filter((name) => name === 'out')
await sandbox.close()
await platform[Symbol.asyncDispose]()
console.log(JSON.stringify(results))
