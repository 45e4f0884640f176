import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { Sandbox } from '../../src/sandbox/index.js'
import { openSite, type Site } from '../egress/clients-site.js'
import { type NetworkGround, openGround } from '../engine/network-ground.js'
import { rejectionOf } from '../engine/collect.js'

let ground: NetworkGround
let site: Site

beforeAll(async () => {
  ground = await openGround({ policy: { defaults: { limits: { cpus: 2, memory: '1g' } } } })
  site = await openSite(ground.authority)
})
afterAll(async () => {
  await ground[Symbol.asyncDispose]()
  await site[Symbol.asyncDispose]()
})
beforeEach(({ skip }) => {
  if (ground.without !== undefined) skip(ground.without)
})

const index = (): string => `https://index.example.com:${site.port}/`
const open = (allow: string[]): Promise<Sandbox> => Sandbox.create({ platform: ground.platform, network: { allow } })

test('packages of pip and npm come by the network of the sandbox, and are told of as they come', async () => {
  await using sandbox = await open([`index.example.com:${site.port}`])
  const lines: string[] = []
  await sandbox.install(['tiny==1.0'], { index: `${index()}simple`, onProgress: (line) => lines.push(line) })
  expect(lines.at(-1)).toBe('Successfully installed tiny-1.0')
  expect((await sandbox.run(['python3', '-c', 'import tiny; print(tiny.value)'])).stdout).toBe('tiny of pip\n')
  await sandbox.install(['tiny'], { manager: 'npm', index: index() })
  expect((await sandbox.run(['node', '-p', "require('tiny')"])).stdout).toBe('tiny of npm\n')
})

test('without a network the error says what to allow', async () => {
  await using sandbox = await Sandbox.create({ platform: ground.platform })
  expect(await rejectionOf(sandbox.install(['six']))).toMatchObject({
    code: 'conflict',
    message: `sandbox ${sandbox.id} was created without a network, and pip needs the hosts of its index`,
    hint: 'glovebox run --learn-network -- pip install …',
  })
})

test('an index that is not allowed is named, and nothing reaches it', async () => {
  await using sandbox = await open([])
  const before = site.connections()
  expect(await rejectionOf(sandbox.install(['tiny'], { index: `${index()}simple` }))).toMatchObject({
    code: 'denied',
    message: `pip was denied index.example.com:${site.port}: no rule allows it`,
    hint: `sandbox.network.update({ allow: ['index.example.com:${site.port}', …] })`,
  })
  expect(site.connections()).toBe(before)
})

test('a package that is not there is told in the words of the manager', async () => {
  await using sandbox = await open([`index.example.com:${site.port}`])
  expect(await rejectionOf(sandbox.install(['nothing'], { index: `${index()}simple` }))).toMatchObject({
    code: 'conflict',
    message: 'pip installed nothing: ERROR: No matching distribution found for nothing',
  })
})

test('a sandbox without the manager says so', async () => {
  await using sandbox = await Sandbox.create({ platform: ground.platform, network: { allow: [] }, env: { PATH: '/nowhere' } })
  expect(await rejectionOf(sandbox.install(['x'], { manager: 'npm' }))).toMatchObject({ code: 'unsupported', message: 'there is no npm in template host' })
})

test.each([
  [[], {}, 'packages: expected a list of 1 to 256 names'],
  [['--index-url=http://x'], {}, 'packages[0]: must be the name of a package'],
  [['a', 'b\nc'], {}, 'packages[1]: must be the name of a package'],
  [['a'], { manager: 'apt' }, 'manager: expected one of pip, npm'],
  [['a'], { index: 'file:///etc' }, 'index: must be a URL'],
  [['a'], { index: 'https://me:word@x' }, 'index: must be a URL without a user'],
  [['a'], { onprogress: 1 }, 'onprogress: is not a known field'],
])('%j with %j is refused', async (packages, options, words) => {
  await using sandbox = await open([])
  const error = await rejectionOf(sandbox.install(packages, options as never))
  expect(error).toMatchObject({ code: 'invalid', message: expect.stringContaining(words) as string })
})
