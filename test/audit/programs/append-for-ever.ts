/** Appends to the trail of a folder until it is killed, many at once, and says which numbers it was told are on the disk. With a name that tells whose they are. */
import { createPrivateKey } from 'node:crypto'
import { readFileSync, writeSync } from 'node:fs'
import { openAuditTrail } from '../../../src/audit/index.js'
import { signingWith } from '../own-trail.js'

const [path = '', keyPath = '', name = '', count = 'Infinity'] = process.argv.slice(2)
const signing = signingWith(createPrivateKey(readFileSync(keyPath, 'utf8')))
const trail = await openAuditTrail(path, { signing, leastFreeBytes: 0 })
let next = 0
async function appendOneAfterAnother(): Promise<void> {
  while (next < Number(count)) {
    const index = next++
    const begun = await trail.append({ act: 'run.start', actor: name, details: { index, text: 'x'.repeat(index % 700) } })
    // Synchronous: what is said was said, whenever this process is killed.
    writeSync(1, `${begun.number} ${begun.hash}\n`)
    void trail.finish(begun, { outcome: { kind: 'ok' } })
  }
}
await Promise.all(Array.from({ length: 16 }, appendOneAfterAnother))
await trail[Symbol.asyncDispose]()
