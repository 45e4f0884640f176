/** Uses a sandbox where /proc hides the processes of others, and prints what it was told. */
import { readdirSync } from 'node:fs'
import { createPlatform, Sandbox } from '../../../src/index.js'

const isShown = readdirSync('/proc').includes('1')
const platform = createPlatform()
const [probe] = await platform.probe()
if (probe?.available !== true) console.log(JSON.stringify({ lacking: probe?.obstacles }))
else {
  const sandbox = await Sandbox.create({ platform })
  const process = await sandbox.spawn('(setsid sleep 60 &); sleep 60 & echo up; wait')
  await process.stdout.getReader().read()
  const [info] = await sandbox.processes()
  await sandbox.files.write('a', 'text')
  const told = {
    isShown,
    processes: info?.processes,
    isCounted: (info?.memoryBytes ?? 0) > 0,
    text: await sandbox.files.read('a'),
  }
  await process.kill()
  await sandbox.close()
  console.log(JSON.stringify(told))
}
await platform[Symbol.asyncDispose]()
