import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createDockerDriver } from '../../../src/drivers/docker/driver.js'
import { createPlatform, Sandbox } from '../../../src/index.js'
import { type EngineAddress, engineAddress } from '../../../src/sys/docker/address.js'
import { createEngineClient } from '../../../src/sys/docker/client.js'
import type { DockerEngine } from '../../docker-engine.js'
import { noTlsEngine, startTlsEngine, strangersPair } from '../../docker-tls.js'
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
    const where = `the container engine at ${env.DOCKER_HOST} (TLS) cannot be reached`
    const hint = 'ls -l "${DOCKER_CERT_PATH:-$HOME/.docker}"'
    const { tls } = address
    const refusalOf = (changed: EngineAddress): Promise<unknown> => rejectionOf(createEngineClient(changed).version())
    expect(await refusalOf({ ...address, tls: { ...tls, ca: Buffer.from('') } })).toMatchObject({
      code: 'unavailable',
      message: `${where}: its certificate is not vouched for by ca.pem`,
      hint,
    })
    expect(await refusalOf({ ...address, tls: { ...tls, ...strangersPair(engine.folder) } })).toMatchObject({
      code: 'unavailable',
      message: `${where}: it does not accept cert.pem`,
      hint,
    })
    expect(await refusalOf({ ...address, host: 'localhost' })).toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/cannot be reached: its certificate is for another name than localhost$/),
    })
    expect(await refusalOf({ ...address, tls: undefined })).toMatchObject({ code: 'unavailable', message: expect.stringContaining('is asked without TLS') })
  })
})
