/** Uses files, closes nothing, and says how long it took this process to end by itself. */
import { createPlatform } from '../../../src/compose.js'
import { Sandbox } from '../../../src/sandbox/index.js'

const sandbox = await Sandbox.create({ platform: createPlatform(), driver: 'fake', minTier: 'none' })
await sandbox.files.write('a', 'a')
await sandbox.files.read('a')
const since = performance.now()
process.on('exit', () => console.log(Math.round(performance.now() - since)))
