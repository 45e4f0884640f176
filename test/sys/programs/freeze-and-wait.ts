/** Freezes a program of its own, says that program's number and waits to be killed. */
import { spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { detectCgroups } from '../../../src/sys/cgroups.js'
import { randomId } from '../../../src/sys/random-id.js'

const cgroups = detectCgroups()
if ('unavailable' in cgroups) throw new Error(cgroups.unavailable)
const cell = await cgroups.create({ id: randomId(), memoryBytes: 2 ** 26, cpus: 0.5, processes: 20 })
cell.settle()
const doors = [...cell.guestJoins, ...cell.runJoins.map(({ folder, file }) => `${folder}/${file}`)]
const enter = doors.map((path) => `echo $$ > ${path}`).join(' && ')
const guest = spawn('/bin/sh', ['-c', `${enter} && while :; do :; done`], { stdio: 'ignore', detached: true })
while ((cell.usage().cpuMs ?? 0) < 30) await sleep(5)
await cell.freeze()
console.log(guest.pid)
setInterval(() => undefined, 1000)
