/** Reads a flood aside slowly and what is printed as it comes; prints how much this process grew meanwhile, and how much it read of the latter. */
import { setTimeout as sleep } from 'node:timers/promises'
import { openWarden } from './native-warden.js'

const [path] = process.argv.slice(2) as [string]
await using native = await openWarden(path)
const flood = await native.start(['sh', '-c', 'yes >&4 & exec yes'], { stdin: true, aside: true })
if (!flood.aside) throw new Error('there is no aside')
const aside = flood.aside[Symbol.asyncIterator]()
let printed = 0
const printing = (async (): Promise<void> => {
  for await (const { bytes } of flood.output) printed += bytes.length
})()
for (let count = 0; count < 5; count += 1) await aside.next()
const before = process.memoryUsage().rss
let peak = before
const until = Date.now() + 2000
while (Date.now() < until) {
  await sleep(20)
  await aside.next()
  peak = Math.max(peak, process.memoryUsage().rss)
}
await flood.kill()
await aside.return?.()
await printing
process.stdout.write(JSON.stringify({ growthBytes: peak - before, printed }))
