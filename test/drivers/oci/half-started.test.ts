import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { programPath } from '../../../src/cell/facts.js'
import { createOciDriver } from '../../../src/drivers/oci/driver.js'
import { descendantsOf } from '../../../src/sys/posture/process-tree.js'
import { argumentsOf, findProcesses, killProcess, parentOf } from '../../../src/sys/processes.js'
import { rejectionOf } from '../../engine/collect.js'
import { waitUntil } from '../../engine/processes.js'
import { testUnless } from '../../unless.js'
import { specOf } from '../bwrap/open-guest.js'
import { lyingRuntime } from './lying-runtime.js'

const isWaiting = (pid: number): boolean => argumentsOf(pid)[1] === 'init'
/** Of runc: what becomes the container's first process, once it is told to. */
const waiting = (): number[] => findProcesses((pid) => descendantsOf(process.pid).includes(pid) && isWaiting(pid))

testUnless(programPath('runc') === undefined && 'runc is not installed', { timeout: 30_000 })(
  'a container that was made and never started goes with the cell, also when its monitor was killed',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'gbx-halted-'))
    try {
      const driver = createOciDriver('runc', { programs: { runtime: lyingRuntime('runc', { halts: true }, folder) } })
      const giveUp = new AbortController()
      const opening = rejectionOf(driver.open(await specOf(), giveUp.signal))
      await waitUntil(() => waiting().some((pid) => parentOf(parentOf(pid)) === process.pid))
      const [first] = waiting() as [number]
      killProcess(parentOf(first))
      giveUp.abort(new Error('not any more'))
      expect(await opening).toMatchObject({ message: 'not any more' })
      expect(findProcesses((pid) => pid === first && isWaiting(pid))).toEqual([])
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  },
)
