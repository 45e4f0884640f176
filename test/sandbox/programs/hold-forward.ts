/** Forwards a port of a sandbox, and closes the forward when it is told to. Nothing else keeps this process alive. */
import { createPlatform } from '../../../src/compose.js'
import { Sandbox } from '../../../src/sandbox/index.js'

const sandbox = await Sandbox.create({ platform: createPlatform(), driver: 'fake', minTier: 'none' })
const forward = await sandbox.forward(3000, { waitFor: 0 })
console.log('forwarded')
const stdin = process.stdin as typeof process.stdin & { unref(): void }
stdin.once('data', () => void forward.close())
stdin.unref()
