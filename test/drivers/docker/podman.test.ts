import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createDockerDriver } from '../../../src/drivers/docker/driver.js'
import { createPlatform, Sandbox } from '../../../src/index.js'
import { noPodmanEngine, type PodmanEngine, startPodmanEngine } from '../../podman-engine.js'
import { skipGroup } from '../../unless.js'

const impossible = noPodmanEngine()
let engine: PodmanEngine

beforeAll(async () => {
  if (impossible === undefined) engine = await startPodmanEngine()
})
afterAll(async () => {
  await engine?.[Symbol.asyncDispose]()
})

describe("Podman's socket", () => {
  skipGroup(impossible ?? false)

  test('serves cells that are looked at like any other, and leaves no container', async () => {
    const platform = createPlatform({ drivers: [createDockerDriver({ address: engine.address })] })
    const sandbox = await Sandbox.create({ platform, driver: 'docker' })
    const sent = 'y'.repeat(200_000)
    expect((await sandbox.run(['cat'], { stdin: sent })).stdout).toBe(sent)
    const { stdout } = await sandbox.run(['sh', '-c', 'id -u; grep -c . /proc/kallsyms; ls /sys 2>&1; ls / | tr "\\n" " "'])
    expect(stdout).toMatch(/^1000\n0\nls: .*\/sys.*\n/)
    expect(stdout).not.toMatch(/launcher|template|groups/)
    await sandbox.close()
    await platform[Symbol.asyncDispose]()
    expect(await engine.client.call('GET', '/containers/json', { query: { all: '1' } })).toEqual([])
  })
})
