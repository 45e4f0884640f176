import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { FaultPoint } from '../../src/contract/faults.js'
import { createPlatform } from '../../src/index.js'
import { sweepMachine } from '../../src/recovery.js'
import { isDeep } from '../server/random.js'
import { isGone } from '../server/started-server.js'
import { type Bundled, bundleScript } from '../sys/run-script.js'
import { pointsOf } from './fault-scenarios.js'
import { leftBehindBy } from './left-behind.js'

/** One of each kind; all of them in `npm run test:deep`. */
const usual: readonly FaultPoint[] = ['create/groups', 'run/started', 'snapshot/packed', 'close/ended']

const probing = createPlatform()
const probes = await probing.probe()
await probing[Symbol.asyncDispose]()

let home: string
let program: Bundled
beforeAll(async () => {
  program = await bundleScript(new URL('programs/die-at.ts', import.meta.url))
  home = realpathSync(mkdtempSync(join(tmpdir(), 'gbx-died-')))
  for (const name of ['tmp', 'snapshots', 'cache', 'state']) mkdirSync(join(home, name), { mode: 0o700 })
  vi.stubEnv('TMPDIR', join(home, 'tmp'))
  for (const [name, folder] of [
    ['CACHE', 'cache'],
    ['STATE', 'state'],
    ['SNAPSHOT', 'snapshots'],
  ])
    vi.stubEnv(`GLOVEBOX_${name}_DIR`, join(home, folder as string))
})
afterAll(() => {
  program[Symbol.dispose]()
  vi.unstubAllEnvs()
  rmSync(home, { recursive: true, force: true })
})

describe.each(['bwrap', 'oci:runc'])('%s', (driver) => {
  const isThere = probes.some((probe) => probe.driver === driver && probe.available)
  const points = isDeep ? pointsOf(driver) : driver === 'bwrap' ? usual : (['create/bundle'] as const)

  test.for(points)('an engine that is killed right after %s leaves nothing for longer than one sweep', async (point, { skip }) => {
    if (!isThere) skip(`${driver} is not available here`)
    const child = spawn(process.execPath, [program.path, point, driver, home], { stdio: ['ignore', 'inherit', 'inherit'] })
    expect(await once(child, 'exit')).toEqual([null, 'SIGKILL'])
    const started = JSON.parse(readFileSync(join(home, 'pids'), 'utf8')) as number[]
    await sweepMachine()
    await expect.poll(() => started.filter((pid) => !isGone(pid))).toEqual([])
    expect(leftBehindBy(child.pid as number, home)).toEqual([])
  })
})
