/** Moves so many MiB into a sandbox and out of it, as files and as folders, and prints by how much this process grew at its peak. */
import { closeSync, ftruncateSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createPlatform, Sandbox } from '../../../src/index.js'

const MiB = 2 ** 20
/** Of a file; the largest that a sandbox without walls allows is 100 MiB. */
const bytes = 64 * MiB
const rounds = Number(process.argv[2]) / 128
const peakMiB = (): number => Number(/VmHWM:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]) / 1024

const home = mkdtempSync(join(tmpdir(), 'gbx-move-'))
mkdirSync(join(home, 'folder'))
for (const name of ['file', 'folder/in']) {
  const file = openSync(join(home, name), 'w')
  ftruncateSync(file, bytes)
  closeSync(file)
}
const platform = createPlatform()
const sandbox = await Sandbox.create({ platform, driver: 'fake', minTier: 'none' })
await sandbox.files.write('small', 'x')
await sandbox.files.read('small')
const before = process.memoryUsage.rss() / MiB
let moved = 0
for (let round = 0; round < rounds; round += 1) {
  for (const [name, inner] of [
    ['file', ''],
    ['folder', 'in'],
  ] as const) {
    await sandbox.files.upload(join(home, name), `up-${name}`)
    await sandbox.files.download(`up-${name}`, join(home, 'down'))
    moved += statSync(join(home, 'down', inner)).size
    rmSync(join(home, 'down'), { recursive: true })
  }
}
console.log(JSON.stringify({ grownMiB: Math.round(peakMiB() - before), movedMiB: moved / MiB }))
await sandbox.close()
await platform[Symbol.asyncDispose]()
rmSync(home, { recursive: true })
