import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Driver } from '../../../src/contract/driver.js'
import { createDockerDriver } from '../../../src/drivers/docker/driver.js'
import { createPlatform, Sandbox } from '../../../src/index.js'
import { currentOwner, machineName, ownerName } from '../../../src/sys/owner.js'
import { type DockerEngine, noDockerEngine, startDockerEngine } from '../../docker-engine.js'
import { startScript } from '../../sys/run-script.js'
import { skipGroup } from '../../unless.js'

const impossible = noDockerEngine()
let engine: DockerEngine
let driver: Driver

beforeAll(async () => {
  if (impossible !== undefined) return
  engine = await startDockerEngine()
  driver = createDockerDriver({ address: engine.address })
})
afterAll(async () => {
  await engine?.[Symbol.asyncDispose]()
})

interface Listed {
  readonly Id: string
  readonly Labels: Readonly<Record<string, string>>
}

const containers = async (): Promise<Listed[]> => (await engine.client.call('GET', '/containers/json', { query: { all: '1' } })) as Listed[]

async function inspect(): Promise<{
  readonly Config: Record<string, unknown>
  readonly HostConfig: Record<string, unknown>
  readonly State: { readonly Pid: number }
}> {
  const [one] = await containers()
  return (await engine.client.call('GET', `/containers/${one?.Id}/json`)) as Awaited<ReturnType<typeof inspect>>
}

async function open(): Promise<Sandbox & { readonly platform: AsyncDisposable }> {
  const platform = createPlatform({ drivers: [driver] })
  const sandbox = await Sandbox.create({ platform, driver: 'docker', limits: { memory: '100m', processes: 20, cpus: 0.25 } })
  return Object.assign(sandbox, { platform })
}

describe('the container of a cell', () => {
  skipGroup(impossible ?? false)

  test('is what was asked of the engine: no privilege, no network, no log, nothing of the engine in it', async () => {
    await using sandbox = await open()
    const { Config, HostConfig } = await inspect()
    expect(Config).toMatchObject({
      User: expect.stringMatching(/^20\d{8}:20\d{8}$/),
      Tty: false,
      StdinOnce: true,
      NetworkDisabled: true,
      Labels: { 'glovebox.cell': sandbox.id, 'glovebox.owner': ownerName(currentOwner()), 'glovebox.machine': machineName() },
    })
    const bound = HostConfig.Memory as number
    expect(HostConfig).toMatchObject({
      Privileged: false,
      CapAdd: null,
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges', expect.stringMatching(/^seccomp=\{"defaultAction":"SCMP_ACT_ERRNO"/)],
      ReadonlyRootfs: true,
      NetworkMode: 'none',
      LogConfig: { Type: 'none' },
      AutoRemove: true,
      MemorySwap: bound,
      PidsLimit: 56,
      CpuQuota: 25_000,
      Devices: null,
    })
    expect(bound).toBeLessThan(130 * 2 ** 20)
    expect(JSON.stringify(HostConfig.Mounts)).not.toMatch(/docker\.sock|\/socket"/)
    await sandbox.platform[Symbol.asyncDispose]()
  })

  test('is what the kernel says: an id of its own, no capability of the host, no new privileges, a filter', async () => {
    await using sandbox = await open()
    const { State } = await inspect()
    const status = readFileSync(`/proc/${State.Pid}/status`, 'utf8')
    expect(Number(/^Uid:\s+(\d+)/m.exec(status)?.[1])).toBeGreaterThanOrEqual(0x78000000)
    expect(status).toMatch(/^CapEff:\s+0+$/m)
    expect(status).toMatch(/^NoNewPrivs:\s+1$/m)
    expect(status).toMatch(/^Seccomp:\s+2$/m)
    const receipt = await sandbox.receipt()
    expect(receipt).toMatchObject({ driver: expect.anything() })
    await sandbox.platform[Symbol.asyncDispose]()
  })

  test('leaves nothing of the channel on any disk, where a container with a log would', async () => {
    await using sandbox = await open()
    const secret = `channel-${randomBytes(16).toString('hex')}`
    expect((await sandbox.run(['cat'], { stdin: secret })).stdout).toContain(secret)
    expect(filesWith(secret)).toEqual([])
    await sandbox.platform[Symbol.asyncDispose]()
    // That the search finds what is there: the same words through a container that logs.
    const [image] = (await engine.client.call('GET', '/images/json')) as [{ readonly Id: string }]
    const logged = { Image: image.Id, Entrypoint: ['/launcher', secret], HostConfig: { LogConfig: { Type: 'json-file' }, NetworkMode: 'none' } }
    const { Id } = (await engine.client.call('POST', '/containers/create', { body: logged })) as { readonly Id: string }
    await engine.client.call('POST', `/containers/${Id}/start`)
    await engine.client.call('POST', `/containers/${Id}/wait`)
    expect(filesWith(secret)).toEqual([expect.stringContaining('-json.log'), ...Array<unknown>(filesWith(secret).length - 1).fill(expect.any(String))])
    await engine.client.call('DELETE', `/containers/${Id}`)
  })
})

function filesWith(words: string): string[] {
  try {
    const found = execFileSync('grep', ['-rlaF', '--', words, engine.folder], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
    return found
      .split('\n')
      .filter(Boolean)
      .sort((one) => (one.includes('-json.log') ? -1 : 1))
  } catch {
    return []
  }
}

describe('an owner that is killed', () => {
  skipGroup(impossible ?? false)

  test('takes its containers and all that ran in them along', async () => {
    const { child, firstLine, ended } = await startScript(new URL('programs/hold-cell.ts', import.meta.url), [engine.address.path])
    const id = JSON.parse(await firstLine) as string
    expect((await containers()).map(({ Labels }) => Labels['glovebox.cell'])).toContain(id)
    child.kill('SIGKILL')
    await ended
    await expect.poll(async () => (await containers()).map(({ Labels }) => Labels['glovebox.cell'])).not.toContain(id)
  })

  test('before it started one leaves a container that the next one knows by its label; that of a living owner stays', async () => {
    const [image] = (await engine.client.call('GET', '/images/json')) as [{ readonly Id: string }]
    const dead = { ...currentOwner(), startTime: '1' }
    const make = (name: string, owner: string, machine = machineName()) =>
      engine.client.call('POST', '/containers/create', {
        query: { name },
        body: { Image: image.Id, Entrypoint: ['/launcher'], Labels: { 'glovebox.owner': owner, 'glovebox.machine': machine } },
      })
    await make('of-dead', ownerName(dead))
    await make('of-living', ownerName(currentOwner()))
    await make('of-another-machine', ownerName(dead), 'another')
    const platform = createPlatform({ drivers: [createDockerDriver({ address: engine.address })] })
    await Sandbox.create({ platform, driver: 'docker' }).then((sandbox) => sandbox.close())
    await platform[Symbol.asyncDispose]()
    const left = (await containers()).map(({ Labels }) => Labels['glovebox.owner'])
    expect(left.sort()).toEqual([ownerName(currentOwner()), ownerName(dead)].sort())
    for (const name of ['of-living', 'of-another-machine']) await engine.client.call('DELETE', `/containers/${name}`)
  })
})

describe('a cell without cgroups of ours', () => {
  skipGroup(impossible ?? false)

  test('opens too, and claims no limit that nothing was seen to hold', async () => {
    const bare = createDockerDriver({ address: engine.address, cgroups: { unavailable: 'none are to be had' } })
    const { limits, features } = await bare.probe()
    expect([limits.memory, limits.cpus, features.pause]).toEqual([
      { enforced: false, why: 'none are to be had' },
      { enforced: false, why: 'none are to be had' },
      { available: false, why: 'none are to be had' },
    ])
    const platform = createPlatform({ drivers: [bare] })
    const sandbox = await Sandbox.create({ platform, driver: 'docker' })
    expect((await sandbox.run(['echo', 'here'])).stdout).toBe('here\n')
    await platform[Symbol.asyncDispose]()
    expect(await containers()).toEqual([])
  })
})

describe('a cell that does not open', () => {
  skipGroup(impossible ?? false)

  test('leaves no container, and says why in the words of whoever failed', async () => {
    const broken = createDockerDriver({ address: engine.address, programs: { warden: '/bin/true' } })
    const platform = createPlatform({ drivers: [broken] })
    await expect(Sandbox.create({ platform, driver: 'docker' })).rejects.toMatchObject({ message: expect.stringContaining('did not open') })
    await platform[Symbol.asyncDispose]()
    expect(await containers()).toEqual([])
  })
})
