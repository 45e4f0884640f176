/** Starts a program and lets it go, or takes that back when told so, and does nothing more. */
import { createPlatform } from '../../../src/compose.js'
import { Sandbox } from '../../../src/sandbox/index.js'

const sandbox = await Sandbox.create({ platform: createPlatform(), driver: 'fake', minTier: 'none' })
const held = await sandbox.spawn(['sleep', process.argv[2] ?? '30'])
held.unref()
if (process.argv[3] === 'again') held.ref()
console.log('started')
