import { chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Platform } from '../../../src/contract/platform.js'
import { createDockerDriver } from '../../../src/drivers/docker/driver.js'
import { createPlatform, Sandbox } from '../../../src/index.js'
import { type DockerEngine, noDockerEngine, startDockerEngine } from '../../docker-engine.js'
import { rejectionOf } from '../../engine/collect.js'
import { skipGroup } from '../../unless.js'

const impossible = noDockerEngine()
const place = mkdtempSync(join(tmpdir(), 'gbx-docker-mounts-'))
let engine: DockerEngine
let platform: Platform

beforeAll(async () => {
  if (impossible !== undefined) return
  engine = await startDockerEngine()
  platform = createPlatform({ drivers: [createDockerDriver({ address: engine.address })] })
})
afterAll(async () => {
  await platform?.[Symbol.asyncDispose]()
  await engine?.[Symbol.asyncDispose]()
  rmSync(place, { recursive: true, force: true })
})

/** Of somebody who is neither root nor the cell's user. */
function folder(name: string, owner = 4321): string {
  const path = join(place, name)
  mkdirSync(path)
  writeFileSync(join(path, 'old.txt'), 'old\n')
  for (const each of [path, join(path, 'old.txt')]) chownSync(each, owner, owner)
  return path
}

type Mounts = NonNullable<Parameters<typeof Sandbox.create>[0]>['mounts']
const create = (mounts: Mounts): Promise<Sandbox> => Sandbox.create({ platform, driver: 'docker', mounts: mounts ?? [] })

describe('folders of the host in a container', () => {
  skipGroup(impossible ?? false)

  test('are seen where they are mounted, by the modes that were asked for, and what is written belongs to the owner', async () => {
    const [input, output, laid] = [folder('input'), folder('output'), folder('laid', 0)]
    await using sandbox = await create([
      { source: input, target: '/input' },
      { source: output, target: '/output', mode: 'rw' },
      { source: laid, target: '/workspace', mode: 'overlay' },
      { source: join(input, 'old.txt'), target: '/mnt/one.txt' },
    ])
    const words = 'cat /input/old.txt /mnt/one.txt; echo x > /input/y; echo new > /output/new.txt; rm /workspace/old.txt; stat -c %u /output/old.txt /workspace'
    const ran = await sandbox.run(['sh', '-c', words])
    expect([ran.stdout, ran.stderr]).toEqual(['old\nold\n1000\n1000\n', expect.stringContaining('Read-only file system')])
    expect([readdirSync(input), readFileSync(join(output, 'new.txt'), 'utf8'), readdirSync(laid)]).toEqual([['old.txt'], 'new\n', ['old.txt']])
    const { uid, gid } = statSync(join(output, 'new.txt'))
    expect([uid, gid]).toEqual([4321, 4321])
  })

  test('are told by a receipt as the kernel tells them, and the engine knows nothing of them', async () => {
    const source = folder('told')
    await using sandbox = await create([{ source, target: '/data', mode: 'rw' }])
    const { controls } = await sandbox.receipt()
    const mounts = controls.find(({ control }) => control === 'mounts')
    expect(mounts).toMatchObject({ evidence: 'kernel', verdict: 'proven' })
    expect(mounts?.enforced).toContainEqual(expect.objectContaining({ target: '/data', access: 'rw', nosuid: true, nodev: true }))
    const [{ Id }] = (await engine.client.call('GET', '/containers/json')) as [{ readonly Id: string }]
    expect(JSON.stringify(await engine.client.call('GET', `/containers/${Id}/json`))).not.toContain(source)
  })

  test('that a link was put in the place of are not followed, inside or outside', async () => {
    const source = folder('outer')
    symlinkSync('/etc', join(source, 'in'))
    const other = folder('inner')
    const error = await rejectionOf(
      create([
        { source, target: '/data', mode: 'rw' },
        { source: other, target: '/data/in' },
      ]),
    )
    expect(error).toMatchObject({ message: expect.stringContaining('mounts[1].target') })
    expect(existsSync('/etc/old.txt')).toBe(false)
  })

  test("are never the engine's socket, its data, or what leads there", async () => {
    const why = 'whoever has it rules the containers of this machine'
    for (const source of [join(engine.folder, 'data'), join(engine.folder, 'data/containers'), engine.folder]) {
      expect(await rejectionOf(create([{ source, target: '/data' }])), source).toMatchObject({
        code: 'invalid',
        message: expect.stringMatching(/rules the containers|socket/),
      })
    }
    expect(await rejectionOf(create([{ source: join(engine.folder, 'data/containers'), target: '/data' }]))).toMatchObject({
      message: expect.stringContaining(why),
    })
    for (const source of ['/run', '/var/run', '/', engine.address.path])
      expect(await rejectionOf(create([{ source, target: '/data' }])), source).toMatchObject({ code: 'invalid' })
    const inside = join(place, 'service')
    mkdirSync(inside)
    const server = createServer().listen(join(inside, 'at'))
    await new Promise((resolve) => server.once('listening', resolve))
    expect(await rejectionOf(create([{ source: inside, target: '/data' }]))).toMatchObject({ message: expect.stringContaining('socket') })
    server.close()
  })

  test("of root's are not given away: read-write is refused with the way on", async () => {
    const source = folder('roots', 0)
    expect(await rejectionOf(create([{ source, target: '/data', mode: 'rw' }]))).toMatchObject({
      code: 'unsupported',
      message: expect.stringContaining('belongs to root'),
    })
  })
})
