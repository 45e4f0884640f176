import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { CellSpec, CommandRules, Driver } from '../../src/contract/driver.js'
import type { Engine } from '../../src/engine/engine.js'
import type { EngineOptions } from '../../src/engine/engine-options.js'
import { parsePolicy } from '../../src/policy/policy-file.js'
import { collect, rejectionOf } from './collect.js'
import { createPlainEngine, PlainDriver, plainProbe } from './plain-driver.js'
import { allowAll } from './postures.js'

const here = { available: true } as const

let driver: PlainDriver
let engine: Engine | undefined

beforeEach(() => {
  driver = new PlainDriver()
  driver.probeResult = {
    ...plainProbe,
    features: {
      commands: here,
      'mounts-ro': here,
      'mounts-overlay': here,
      'mounts-rw': here,
      'root-overlay': here,
      liners: here,
      pause: here,
      network: here,
      'direct-network': here,
    },
  }
})

afterEach(async () => {
  await engine?.[Symbol.asyncDispose]()
  expect(driver.openCells).toBe(0)
})

function engineWith(options: Partial<EngineOptions>): Engine {
  engine = createPlainEngine(driver, options)
  return engine
}

describe('a list of commands', () => {
  const rules = (unlisted: string | undefined): Partial<EngineOptions> => ({
    commands: (names) => Promise.resolve<CommandRules>({ executable: ['/bin', '/usr', '/lib', '/lib64', ...names], readable: ['/'], unlisted }),
  })

  test('that lets an unlisted program be started is not enforced, and nobody gets the sandbox', async () => {
    const error = await rejectionOf(engineWith(rules('/bin/true')).create({ commands: ['/bin/sh'] }))
    expect(error).toMatchObject({
      code: 'not-enforced',
      message: 'commands of cell: /bin/true, which is not listed, was started instead of being refused with EACCES',
    })
    expect(driver.openCells).toBe(0)
  })

  test('is not proven by a program that is not there', async () => {
    const error = await rejectionOf(engineWith(rules('/no/such/program')).create({ commands: ['/bin/sh'] }))
    expect(error).toMatchObject({ code: 'not-enforced', message: expect.stringContaining('/no/such/program, which is not listed, failed with') })
  })

  test('with which nothing can be tried is only asserted', async () => {
    const platform = engineWith(rules(undefined))
    const { id } = await platform.create({ commands: ['/bin/sh'] })
    expect(driver.cells[0]?.spec.commands?.unlisted).toBeUndefined()
    expect((await collect(await platform.start(id, { command: 'echo ok' }))).stdout).toBe('ok\n')
  })

  test('that names what cannot be executed opens nothing', async () => {
    const refusal = new Error('commands[0]: there is no such program')
    expect(await rejectionOf(engineWith({ commands: () => Promise.reject(refusal) }).create({ commands: ['x'] }))).toBe(refusal)
    expect(driver.cells).toHaveLength(0)
  })
})

describe('mounts', () => {
  const mount = { source: '/srv/link', target: '/workspace/data' }
  const resolved = { source: '/srv/real', target: '/workspace/data', mode: 'ro' } as const

  test('reach the driver and the sandbox with every link followed', async () => {
    const platform = engineWith({ mounts: () => Promise.resolve([resolved]) })
    const info = await platform.create({ mounts: [mount] })
    expect([driver.cells[0]?.spec.mounts, info.spec.mounts]).toEqual([[resolved], [resolved]])
  })

  test('whose source leads out of what a policy allows are refused, and nothing is opened', async () => {
    const policy = parsePolicy({ name: 'house', ceiling: { mounts: { sources: ['/srv/link'] } } })
    const error = await rejectionOf(engineWith({ policy, mounts: () => Promise.resolve([resolved]) }).create({ mounts: [mount] }))
    expect(error).toMatchObject({ code: 'invalid', message: expect.stringContaining('/srv/real') })
    expect(driver.cells).toHaveLength(0)
  })
})

describe('a policy', () => {
  test('holds what a spec asks for, and its runs', async () => {
    const policy = parsePolicy({ name: 'house', ceiling: { users: ['user'], env: ['LANG'], lifetime: '1m' }, onExceed: 'clamp' })
    const platform = engineWith({ policy })
    const info = await platform.create({ lifetime: '1h' })
    expect(info).toMatchObject({ spec: { lifetimeMs: 60_000 }, clamped: [{ field: 'lifetime', policy: 'house' }] })
    const error = await rejectionOf(platform.start(info.id, { command: 'true', env: { LD_PRELOAD: '/x' } }))
    expect(error).toMatchObject({ code: 'invalid', message: expect.stringContaining('LD_PRELOAD') })
  })
})

describe('a profile', () => {
  test('is compiled for the capabilities of the user, and each default once', async () => {
    driver.probeResult = { ...plainProbe, filtersSyscalls: true }
    const asked: unknown[] = []
    const guest = { capabilities: [], withoutNamelessFiles: false }
    const platform = engineWith({
      filter: (profile, guest) => {
        asked.push([profile, guest])
        return Promise.resolve(allowAll)
      },
    })
    await platform.create({})
    await platform.create({})
    await platform.create({ seccomp: './own.json' })
    expect(asked).toEqual([
      [undefined, guest],
      ['./own.json', guest],
      ['./own.json', guest],
    ])
  })

  test('that is wrong opens nothing', async () => {
    driver.probeResult = { ...plainProbe, filtersSyscalls: true }
    const refusal = new Error('seccomp: no such action')
    expect(await rejectionOf(engineWith({ filter: () => Promise.reject(refusal) }).create({ seccomp: {} }))).toBe(refusal)
    expect(driver.cells).toHaveLength(0)
  })
})

test('a template adds variables, and does not say who a program is run as', async () => {
  const root = { name: 'own', binds: [], symlinks: [], shell: '/bin/sh', env: { HOME: '/template', USER: 'template', TERM: 'vt100', EXTRA: 'yes' } }
  const platform = engineWith({ templates: { resolve: () => Promise.resolve(root) } })
  const { id } = await platform.create({})
  const { stdout } = await collect(await platform.start(id, { command: 'echo $HOME $USER $TERM $EXTRA' }))
  expect(stdout).toBe('/home/user user vt100 yes\n')
})

describe('a driver that stands by', () => {
  const strong = (): Driver & { asked: number } => {
    const plain = new PlainDriver()
    const made = {
      name: 'strong',
      tier: 'container' as const,
      standby: true,
      asked: 0,
      probe: () => {
        made.asked += 1
        return Promise.resolve({ ...plainProbe, driver: 'strong', tier: 'container' as const })
      },
      open: (spec: CellSpec, signal: AbortSignal) => plain.open(spec, signal),
    }
    return made
  }

  test('is not even asked while another can do what is wanted, and serves when it is named or nobody else can', async () => {
    const other = strong()
    const made = createPlainEngine(driver, { drivers: [driver, other] })
    const chosen = async (spec: object): Promise<[string, number]> => {
      const { id, driver: name } = await made.create(spec)
      await made.close(id)
      return [name, other.asked]
    }
    expect(await chosen({})).toEqual([driver.name, 0])
    expect(await chosen({ minTier: 'container' })).toEqual(['strong', 1])
    expect(await chosen({ driver: 'strong' })).toEqual(['strong', 1])
    const refusal = await rejectionOf(made.create({ minTier: 'vm' }))
    expect(refusal).toMatchObject({ code: 'unsupported', message: expect.not.stringContaining('strong') })
    await made[Symbol.asyncDispose]()
  })
})
