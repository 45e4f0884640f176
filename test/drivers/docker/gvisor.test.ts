import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { programPath } from '../../../src/cell/facts.js'
import { createDockerDriver } from '../../../src/drivers/docker/driver.js'
import { createPlatform, Sandbox } from '../../../src/index.js'
import { type DockerEngine, noDockerEngine, startDockerEngine } from '../../docker-engine.js'
import { skipGroup } from '../../unless.js'

const runsc = programPath('runsc')
const impossible = noDockerEngine() ?? (runsc === undefined ? 'runsc is not installed' : undefined)
let engine: DockerEngine

beforeAll(async () => {
  if (impossible === undefined) engine = await startDockerEngine({ arguments: () => ['--add-runtime', `runsc=${runsc}`] })
})
afterAll(async () => {
  await engine?.[Symbol.asyncDispose]()
})

describe('an engine that has gVisor', () => {
  skipGroup(impossible ?? false)

  test('is refused with that runtime, by name and with what does it instead', async () => {
    const driver = createDockerDriver({ address: engine.address, runtime: 'runsc' })
    const { available, obstacles } = await driver.probe()
    expect({ available, obstacles }).toEqual({
      available: false,
      obstacles: [{ what: 'the runtime is gVisor', why: expect.stringContaining('gVisor') as string, hint: 'glovebox run --driver oci:runsc -- true' }],
    })
    await using platform = createPlatform({ drivers: [driver] })
    await expect(Sandbox.create({ platform, driver: 'docker' })).rejects.toMatchObject({ code: 'unavailable', hint: 'glovebox run --driver oci:runsc -- true' })
  })

  test('is used with its own choice, and tells that it has it', async () => {
    const probe = await createDockerDriver({ address: engine.address }).probe()
    expect([probe.available, probe.facts.runtime, probe.facts.runtimes]).toEqual([true, 'runc', expect.stringContaining('runsc')])
  })
})
