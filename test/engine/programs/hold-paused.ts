/** Pauses a sandbox in which programs work, says so and waits to be killed; where it cannot be paused, says why. */
import { createPlatform } from '../../../src/compose.js'
import { Sandbox } from '../../../src/sandbox/index.js'
import { currentOwner, ownerName } from '../../../src/sys/owner.js'
import { descendantsOf } from '../../../src/sys/posture/process-tree.js'

const platform = createPlatform()
const sandbox = await Sandbox.create({ platform })
await sandbox.spawn('while :; do :; done')
const family = await sandbox.spawn('sleep 1000 & (setsid sleep 1000 &) ; echo up; wait')
await family.stdout.getReader().read()
try {
  await sandbox.pause()
  console.log(JSON.stringify({ owner: ownerName(currentOwner()), pids: descendantsOf(process.pid) }))
  setInterval(() => undefined, 1000)
} catch (error) {
  const { code, message } = error as { code: string; message: string }
  const [probe] = await platform.probe()
  console.log(JSON.stringify({ code, message, state: (await sandbox.info()).state, pause: probe?.features.pause }))
  await sandbox.close()
}
