/** `node bench/transfers-memory.mjs output|upload|download` prints by how many MiB this process grew at most while a GiB was on its way. */
import { createPlatform } from '../dist/index.js'
import { createSubject, ways } from './transfers.mjs'

const way = process.argv[2]
const samplePauseMs = 5

const platform = createPlatform()
const sandbox = await createSubject(platform)
// What is loaded and compiled once is no growth; a download needs the file anyway.
await sandbox.run(['/usr/bin/true'])
if (way === 'download') await sandbox.run('head -c 1073741824 /dev/zero > /workspace/transferred')
await sandbox.files.write('/workspace/small', 'small')
await sandbox.files.read('/workspace/small')
const before = process.memoryUsage.rss()
let most = before
const sampling = setInterval(() => (most = Math.max(most, process.memoryUsage.rss())), samplePauseMs)
await ways[way](sandbox)
clearInterval(sampling)
most = Math.max(most, process.memoryUsage.rss())
process.stdout.write(`${(most - before) / 2 ** 20}\n`)
await sandbox.close()
await platform[Symbol.asyncDispose]()
