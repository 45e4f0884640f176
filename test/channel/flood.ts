/** Reads a flood slowly, or drops it, and prints how much this process grew meanwhile. */
import { setTimeout as sleep } from 'node:timers/promises'
import { openWarden } from './native-warden.js'

const [path, way] = process.argv.slice(2) as [string, 'slowly' | 'discard']
await using native = await openWarden(path)
const flood = await native.start(['sh', '-c', 'yes >&2 & exec yes'])
const iterator = flood.output[Symbol.asyncIterator]()
for (let count = 0; count < 20; count += 1) await iterator.next()
const before = process.memoryUsage().rss
let peak = before
let read = 0
const until = Date.now() + 2000
if (way === 'discard') flood.discardOutput()
while (Date.now() < until) {
  await sleep(20)
  if (way === 'slowly') read += (await iterator.next()).value?.bytes.length ?? 0
  peak = Math.max(peak, process.memoryUsage().rss)
}
await flood.kill()
process.stdout.write(JSON.stringify({ growthBytes: peak - before, read }))
