import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createDockerDriver } from '../../../src/drivers/docker/driver.js'
import { createPlatform, Sandbox } from '../../../src/index.js'
import { type DockerEngine, noDockerEngine, startDockerEngine } from '../../docker-engine.js'
import { skipGroup } from '../../unless.js'
import { idOfCell, processesOf } from './processes.js'

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

describe('an engine that is lost while a cell lives', () => {
  skipGroup(impossible ?? false)

  test.each(['SIGKILL', 'SIGSTOP'] as const)('by %s keeps no sandbox from closing, and no process of it is left', async (how) => {
    const platform = createPlatform({ drivers: [createDockerDriver({ address: engine?.address as DockerEngine['address'] })] })
    const sandbox = await Sandbox.create({ platform, driver: 'docker' })
    await sandbox.spawn(['sleep', '3000'])
    const own = idOfCell(sandbox.id)
    expect(processesOf(own).length).toBeGreaterThan(2)
    engine?.daemon.kill(how)
    await sandbox.close()
    await platform[Symbol.asyncDispose]()
    expect(processesOf(own)).toEqual([])
  })
})
