import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Driver } from '../../../src/contract/driver.js'
import type { Platform } from '../../../src/contract/platform.js'
import { createPlatform } from '../../../src/compose.js'
import { createDockerDriver } from '../../../src/drivers/docker/driver.js'
import { Sandbox } from '../../../src/index.js'
import { engineAddress } from '../../../src/sys/docker/address.js'
import type { DockerEngine } from '../../docker-engine.js'
import { noTlsEngine, startTlsEngine } from '../../docker-tls.js'
import { rejectionOf } from '../../engine/collect.js'
import { whyNotBuilt } from '../../templates/reachable.js'
import { skipGroup } from '../../unless.js'

const place = mkdtempSync(join(tmpdir(), 'gbx-far-'))
const templateDir = join(place, 'store')
const impossible = noTlsEngine() ?? ((await whyNotBuilt(templateDir)) || undefined)
let engine: DockerEngine
let driver: Driver
let platform: Platform

beforeAll(async () => {
  if (impossible !== undefined) return
  const started = await startTlsEngine({ without: [place] })
  engine = started.engine
  driver = createDockerDriver({ address: engineAddress(started.env) })
  platform = createPlatform({ templateDir, drivers: [driver] })
})
afterAll(async () => {
  await platform?.[Symbol.asyncDispose]()
  await engine?.[Symbol.asyncDispose]()
  rmSync(place, { recursive: true, force: true })
})

const containers = (): Promise<unknown> => engine.client.call('GET', '/containers/json', { query: { all: '1' } })

describe('an engine whose processes and folders are not those of this machine', { timeout: 60_000 }, () => {
  skipGroup(impossible ?? false)

  test('is known for one, and offers what holds there: no mounts, no pause, no memory that only some of is bounded', async () => {
    const probe = await driver.probe()
    expect(probe).toMatchObject({
      available: true,
      obstacles: [],
      limits: { cpus: { enforced: true }, disk: { enforced: true }, processes: { enforced: true } },
    })
    for (const name of ['mounts-ro', 'mounts-rw', 'mounts-overlay', 'pause', 'root-overlay'] as const)
      expect(probe.features[name], name).toMatchObject({ available: false })
    expect(probe.features).toMatchObject({ liners: { available: true }, network: { available: true }, commands: { available: true } })
  })

  test('has cells of templates that are sent there, with all that a cell does', async () => {
    await using sandbox = await Sandbox.create({ platform, driver: 'docker', template: 'busybox', limits: { cpus: 0.25, processes: 16 } })
    const sent = 'z'.repeat(300_000)
    const echoed = await sandbox.run(['busybox', 'cat'], { stdin: sent })
    expect([echoed.stderr, echoed.stdout === sent]).toEqual(['', true])
    const { stdout } = await sandbox.run(
      'busybox id -u; busybox wc -l < /proc/kallsyms; busybox ls /; echo x > /usr/x; echo y > /workspace/y && busybox cat /workspace/y',
    )
    expect(stdout).toMatch(/^1000\n0\n/)
    expect(stdout).toMatch(/\ny\n$/)
    expect(stdout).not.toMatch(/launcher|template|groups|mounts/)
    expect((await sandbox.run('exit 7')).exitCode).toBe(7)
    await sandbox.files.write('/workspace/file', 'text')
    expect(await sandbox.files.read('/workspace/file')).toBe('text')
  })

  test('is asked what the kernel says there, for which a receipt says that it was told', async () => {
    await using sandbox = await Sandbox.create({ platform, driver: 'docker', template: 'busybox', limits: { cpus: 0.25, processes: 16 } })
    const server = await sandbox.spawn('busybox sleep 1000 & busybox sleep 2000')
    await sandbox.run('true')
    const { controls } = await sandbox.receipt()
    const told = (name: string) => controls.find(({ control }) => control === name)
    const names = ['namespaces', 'mounts', 'uid-map', 'routes', 'sockets', 'warden', 'capabilities', 'no-new-privs', 'seccomp', 'rlimits', 'descriptors']
    for (const name of names)
      expect(told(name), name).toMatchObject({ evidence: 'runtime', verdict: 'told', source: expect.stringContaining('container engine') })
    expect(told('limit.cpus')).toMatchObject({ enforced: 0.25, verdict: 'told' })
    expect(told('filter')).toMatchObject({ verdict: 'asserted' })
    expect(controls.filter(({ verdict }) => verdict === 'proven')).toEqual([])
    await server.kill()
  })

  test('gets nothing of this machine: mounts and templates that are its folders are refused by name', async () => {
    const wish = { platform, driver: 'docker' } as const
    expect(await rejectionOf(Sandbox.create({ ...wish, template: 'busybox', mounts: [{ source: place, target: '/data' }] }))).toMatchObject({
      code: 'unsupported',
      message: expect.stringContaining('mounts'),
    })
    expect(await rejectionOf(Sandbox.create({ ...wish, template: 'shell' }))).toMatchObject({
      code: 'unsupported',
      message: expect.stringContaining('made of folders of this machine'),
      hint: expect.stringContaining('glovebox template pull'),
    })
    expect(await rejectionOf(Sandbox.create({ ...wish, template: 'busybox', limits: { readRate: '1m' } }))).toMatchObject({ code: 'unsupported' })
    expect(readdirSync(place)).toContain('store')
    expect(await containers()).toEqual([])
  })
})
