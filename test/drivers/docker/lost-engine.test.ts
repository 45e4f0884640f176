import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createDockerDriver } from '../../../src/drivers/docker/driver.js'
import { createPlatform, Sandbox } from '../../../src/index.js'
import { findProcesses, uidOf } from '../../../src/sys/processes.js'
import { type DockerEngine, noDockerEngine, startDockerEngine } from '../../docker-engine.js'
import { skipGroup } from '../../unless.js'

const impossible = noDockerEngine()
let engine: DockerEngine | undefined

beforeEach(async () => {
  if (impossible === undefined) engine = await startDockerEngine()
})
afterEach(async () => {
  engine?.daemon.kill('SIGCONT')
  await engine?.[Symbol.asyncDispose]()
  engine = undefined
})

/** What runs under ids that are handed out to cells, and was not there before. */
const guests = (): number[] => findProcesses((pid) => uidOf(pid) >= 0x78000000)

describe('an engine that is lost while a cell lives', () => {
  skipGroup(impossible ?? false)

  test.each(['SIGKILL', 'SIGSTOP'] as const)('by %s keeps no sandbox from closing, and no process of it is left', async (how) => {
    const before = guests()
    const platform = createPlatform({ drivers: [createDockerDriver({ address: engine?.address as DockerEngine['address'] })] })
    const sandbox = await Sandbox.create({ platform, driver: 'docker' })
    await sandbox.spawn(['sleep', '3000'])
    const own = guests().filter((pid) => !before.includes(pid))
    expect(own.length).toBeGreaterThan(2)
    engine?.daemon.kill(how)
    await sandbox.close()
    await platform[Symbol.asyncDispose]()
    expect(guests().filter((pid) => own.includes(pid))).toEqual([])
  })
})
