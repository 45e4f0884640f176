/** A sandbox whose programs have requests under way at a server of whoever started this: tells who runs for it, and waits to be killed. */
import { Sandbox } from '../../../src/index.js'
import { descendantsOf } from '../../../src/sys/posture/process-tree.js'
import { openGround } from '../network-ground.js'

const [port = ''] = process.argv.slice(2)
const ground = await openGround()
const sandbox = await Sandbox.create({ platform: ground.platform, network: { allow: [`slow.example.com:${port}`] } })
for (const path of ['a', 'b', 'c']) await sandbox.spawn(['curl', '-sS', `http://slow.example.com:${port}/${path}`])
process.stdout.write(`${JSON.stringify(descendantsOf(process.pid))}\n`)
setInterval(() => undefined, 1000)
