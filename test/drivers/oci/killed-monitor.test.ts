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

/** Of runc: what becomes the container's first process, once it is told to, and holds the cell's streams until then. */
const waiting = (): number[] => findProcesses((pid) => descendantsOf(process.pid).includes(pid) && argumentsOf(pid)[1] === 'init')

// Nobody calls it off: that it ends at all is the monitor's end.
testUnless(programPath('runc') === undefined && 'runc is not installed', { timeout: 30_000 })(
  'a cell whose monitor is killed while it opens fails by itself, whatever holds its streams',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'gbx-orphan-'))
    try {
      const driver = createOciDriver('runc', { programs: { runtime: lyingRuntime('runc', { halts: true }, folder) } })
      const opening = rejectionOf(driver.open(await specOf(), new AbortController().signal))
      await waitUntil(() => waiting().some((pid) => parentOf(parentOf(pid)) === process.pid))
      const [first] = waiting() as [number]
      killProcess(parentOf(first))
      expect(await opening).toMatchObject({ code: 'broken', message: 'the cell ended with signal SIGKILL before it was ready' })
      expect(waiting()).toEqual([])
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  },
)
