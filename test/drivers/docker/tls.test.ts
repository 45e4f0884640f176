import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createDockerDriver } from '../../../src/drivers/docker/driver.js'
import { createPlatform, Sandbox } from '../../../src/index.js'
import { engineAddress } from '../../../src/sys/docker/address.js'
import { createEngineClient } from '../../../src/sys/docker/client.js'
import type { DockerEngine } from '../../docker-engine.js'
import { noTlsEngine, startTlsEngine } from '../../docker-tls.js'
import { rejectionOf } from '../../engine/collect.js'
import { skipGroup } from '../../unless.js'

const impossible = noTlsEngine()
let engine: DockerEngine
let env: Readonly<Record<string, string>>

beforeAll(async () => {
  if (impossible === undefined) ({ engine, env } = await startTlsEngine())
})
afterAll(async () => {
  await engine?.[Symbol.asyncDispose]()
})

describe('an engine by TCP with TLS', () => {
  skipGroup(impossible ?? false)

  test('carries the channel of a cell, both ways and to its end', async () => {
    const platform = createPlatform({ drivers: [createDockerDriver({ address: engineAddress(env) })] })
    const sandbox = await Sandbox.create({ platform, driver: 'docker' })
    const sent = 'x'.repeat(300_000)
    expect((await sandbox.run(['cat'], { stdin: sent })).stdout).toBe(sent)
    await sandbox.close()
    await platform[Symbol.asyncDispose]()
    expect(await engine.client.call('GET', '/containers/json', { query: { all: '1' } })).toEqual([])
  })

  test('is not believed when somebody else vouches for it, and believes nobody without a certificate', async () => {
    const address = engineAddress(env)
    if (address.kind !== 'tcp' || !address.tls) throw new Error('no TLS')
    const stranger = { ...address, tls: { ...address.tls, ca: Buffer.from('') } }
    expect(await rejectionOf(createEngineClient(stranger).version())).toMatchObject({ code: 'unavailable', message: expect.stringMatching(/certificate/) })
    expect(await rejectionOf(createEngineClient({ ...address, tls: undefined }).version())).toBeInstanceOf(Error)
  })
})
