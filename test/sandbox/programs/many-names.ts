/** Makes a folder with so many names in a sandbox, walks, searches, packs and removes it, and prints by how much this process grew at its peak, and its workers. */
import { readFileSync } from 'node:fs'
import { createPlatform, Sandbox } from '../../../src/index.js'
import { descendantsOf } from '../../../src/sys/posture/process-tree.js'

const count = Number(process.argv[2])
const statusOf = (pid: number | 'self'): string => {
  try {
    return readFileSync(`/proc/${pid}/status`, 'utf8')
  } catch {
    return ''
  }
}
const peakMiB = (pid: number | 'self'): number => Number(/^VmHWM:\s+(\d+)/m.exec(statusOf(pid))?.[1] ?? 0) / 1024

/** Those that are there now, by the name that they give themselves. */
function workersPeakMiB(): number {
  const workers = descendantsOf(process.pid).filter((pid) => /^Name:\tfiles$/m.test(statusOf(pid)))
  return Math.max(0, ...workers.map(peakMiB))
}

const make = `import os
os.mkdir('many')
for i in range(${count}): os.close(os.open(f'many/name {i}', os.O_CREAT | os.O_WRONLY))`

const platform = createPlatform()
const [probe] = await platform.probe()
const isHeld = probe?.available === true && (['inodes', 'disk', 'memory'] as const).every((limit) => probe.limits[limit].enforced)
const spec = isHeld ? { limits: { inodes: count + 1000, disk: '400m', memory: '1g' } } : { driver: 'fake', minTier: 'none' as const }
const sandbox = await Sandbox.create({ platform, ...spec, lifetime: '15m' })
const made = await sandbox.run(['/usr/bin/python3', '-I', '-S', '-c', make])
await sandbox.files.stat('many')
const before = process.memoryUsage.rss() / 2 ** 20

let few = 0
for await (const _ of sandbox.files.walk('many')) if (++few === 10) break
let walked = 0
for await (const _ of sandbox.files.walk('many')) walked += 1
const { matches } = await sandbox.files.search('many', 'nothing')
let packed = 0
for await (const piece of await sandbox.files.pack('many')) packed += piece.length
const workersMiB = workersPeakMiB()
const isRemoved = await sandbox.files.remove('many', { recursive: true })
const left = await sandbox.files.list('.')
console.log(
  JSON.stringify({
    made: made.outcome,
    few,
    walked,
    matches: matches.length,
    packed: Math.floor(packed / 512 / count),
    isRemoved,
    left: left.length,
    grownMiB: Math.round(peakMiB('self') - before),
    workersMiB: Math.round(workersMiB),
  }),
)
await sandbox.close()
await platform[Symbol.asyncDispose]()
