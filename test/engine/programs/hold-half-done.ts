/** Stops in the middle of what its first argument says, tells so and waits to be killed. */
import { join } from 'node:path'
import { createPlatform, Sandbox } from '../../../src/index.js'
import { descendantsOf } from '../../../src/sys/posture/process-tree.js'

const [what = '', driver = '', home = ''] = process.argv.slice(2)

function holdStill(): void {
  process.stdout.write(`${JSON.stringify(descendantsOf(process.pid))}\n`)
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
}

const platform = createPlatform({ snapshotDir: join(home, 'store') })
const sandbox = await Sandbox.create({ platform, driver, minTier: 'none' })
await sandbox.files.write('tree/a', new Uint8Array(3_000_000))
await sandbox.files.write('tree/b', 'b')
if (what === 'put away') {
  await sandbox.pause({ memory: false })
  holdStill()
}
await sandbox.files.download('tree', join(home, 'out'), { onProgress: ({ bytes }) => bytes > 1_000_000 && holdStill() })
