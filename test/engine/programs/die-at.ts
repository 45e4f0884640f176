/** Comes by the step that its first argument names, and is killed there; what it had started is written down first. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FaultPoint } from '../../../src/contract/faults.js'
import { descendantsOf } from '../../../src/sys/posture/process-tree.js'
import { createFaultyEngine, failAt } from '../fault-scenarios.js'

const [point = '', driver = '', home = ''] = process.argv.slice(2)

const subject = createFaultyEngine(driver, join(home, 'snapshots'))
await failAt(subject, point as FaultPoint, () => {
  writeFileSync(join(home, 'pids'), JSON.stringify(descendantsOf(process.pid)))
  process.kill(process.pid, 'SIGKILL')
})
