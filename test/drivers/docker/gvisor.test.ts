import { chownSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findSandbox, type SandboxProcesses } from '../../../src/cell/gvisor/processes.js'
import { createDockerDriver } from '../../../src/drivers/docker/driver.js'
import { createDockerSandboxDriver } from '../../../src/drivers/docker/sandbox-driver.js'
import { createPlatform, Sandbox } from '../../../src/index.js'
import { parentOf } from '../../../src/sys/processes.js'
import { type DockerEngine, noGvisorEngine, startDockerEngine, withGvisor } from '../../docker-engine.js'
import { skipGroup } from '../../unless.js'

const impossible = noGvisorEngine()
let engine: DockerEngine

beforeAll(async () => {
  if (impossible === undefined) engine = await startDockerEngine({ arguments: withGvisor })
})
afterAll(async () => {
  await engine?.[Symbol.asyncDispose]()
})

describe('an engine that has gVisor', () => {
  skipGroup(impossible ?? false)

  test('starts a sandbox of it, in which every mount but the disk is read-only for the kernel of the host too', async () => {
    await using platform = createPlatform({ drivers: [createDockerSandboxDriver({ address: engine.address })] })
    await using sandbox = await Sandbox.create({ platform, minTier: 'gvisor', limits: { disk: '1M', inodes: 64 } })
    const { stdout } = await sandbox.run(['cat', '/proc/version'])
    const [container] = (await engine.client.call('GET', '/containers/json')) as [{ readonly Id: string }]
    const seen = (await engine.client.call('GET', `/containers/${container.Id}/json`)) as {
      readonly State: { readonly Pid: number }
      readonly HostConfig: { readonly Privileged: boolean; readonly LogConfig: { readonly Type: string }; readonly NetworkMode: string }
    }
    const { sentry, gofer } = findSandbox(parentOf(seen.State.Pid)) as SandboxProcesses
    const threads = [sentry, gofer].flatMap((pid) => readdirSync(`/proc/${pid}/task`).map((thread) => `/proc/${pid}/task/${thread}/cgroup`))
    const outside = threads.filter((file) => !/^\d+:memory:.*glovebox|^0::.*glovebox/m.test(readFileSync(file, 'utf8')))
    expect([threads.length > 4, outside]).toEqual([true, []])
    const mounts = readFileSync(`/proc/${gofer}/mountinfo`, 'utf8').trim().split('\n')
    const writable = mounts.filter((line) => line.split(' ')[5]?.startsWith('rw')).map((line) => line.split(' ')[4])
    expect(stdout).not.toContain(readFileSync('/proc/version', 'utf8').split(' ')[2])
    expect([writable, seen.HostConfig.Privileged, seen.HostConfig.LogConfig.Type, seen.HostConfig.NetworkMode]).toEqual([['/.disk'], false, 'none', 'none'])
    expect(mounts.find((line) => line.includes(' /.disk '))).toMatch(/size=1024k,nr_inodes=64/)
  })

  test('leaves neither containers nor disks of it behind', async () => {
    const { Volumes } = (await engine.client.call('GET', '/volumes')) as { readonly Volumes: readonly unknown[] | null }
    expect([await engine.client.call('GET', '/containers/json', { query: { all: '1' } }), Volumes ?? []]).toEqual([[], []])
  })

  test('gives it mounts of root’s and of the guest’s, and refuses those whose owner it could not map', async () => {
    await using platform = createPlatform({ drivers: [createDockerSandboxDriver({ address: engine.address })] })
    await using sandbox = await Sandbox.create({ platform, mounts: [{ source: '/etc/debian_version', target: '/data/version', mode: 'ro' }] })
    const { stdout } = await sandbox.run(['cat', '/data/version'])
    expect(stdout).toBe(readFileSync('/etc/debian_version', 'utf8'))
    await expect(sandbox.run(['sh', '-c', 'echo >/data/version'])).resolves.toMatchObject({ outcome: { kind: 'exited', code: 2 } })
    const others = join(engine.folder, 'others')
    writeFileSync(others, '')
    chownSync(others, 1234, 1234)
    const mounts = [{ source: others, target: '/data/others', mode: 'ro' as const }]
    await expect(Sandbox.create({ platform, mounts })).rejects.toMatchObject({
      code: 'unsupported',
      message: expect.stringContaining('belongs to uid 1234') as string,
    })
  })

  test('is refused by the driver that builds cells within containers, with the name of the one that does not', async () => {
    const driver = createDockerDriver({ address: engine.address, runtime: 'runsc' })
    const { available, obstacles } = await driver.probe()
    expect({ available, obstacles }).toEqual({
      available: false,
      obstacles: [{ what: 'the runtime is gVisor', why: expect.stringContaining('gVisor') as string, hint: 'glovebox run --driver docker:runsc -- true' }],
    })
  })

  test('is used with its own choice of runtime, and tells that it has it', async () => {
    const probe = await createDockerDriver({ address: engine.address }).probe()
    expect([probe.available, probe.facts.runtime, probe.facts.runtimes]).toEqual([true, 'runc', expect.stringContaining('runsc')])
  })

  test('whose runtime is none of gVisor’s, whatever it is called, opens no cell', async () => {
    const driver = createDockerSandboxDriver({ address: engine.address, runtime: 'runc' })
    const { available, obstacles } = await driver.probe()
    expect([available, obstacles[0]?.why]).toEqual([false, expect.stringContaining('started no sandbox of gVisor')])
  })
})
