/** Opens a cell, tells its container and a process that was started in it, and stays. */
import { createDockerDriver } from '../../../../src/drivers/docker/driver.js'
import { createPlatform, Sandbox } from '../../../../src/index.js'

const [, , path = ''] = process.argv
const platform = createPlatform({ drivers: [createDockerDriver({ address: { kind: 'socket', path } })] })
const sandbox = await Sandbox.create({ platform, driver: 'docker' })
await sandbox.spawn(['sleep', '4321'])
process.stdout.write(`${JSON.stringify(sandbox.id)}\n`)
setInterval(() => undefined, 1000)
