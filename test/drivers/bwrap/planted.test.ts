import { chownSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createPlatform } from '../../../src/compose.js'
import type { Driver } from '../../../src/contract/driver.js'
import { SandboxError } from '../../../src/contract/errors.js'
import type { SpecInput } from '../../../src/contract/spec.js'
import { createBwrapDriver } from '../../../src/drivers/bwrap/driver.js'
import { fullProgramExpectations } from '../../../src/engine/program-expectations.js'
import { judge, type Mismatch } from '../../../src/receipt/judge.js'
import { detectCgroups } from '../../../src/sys/cgroups.js'
import { plantedDriver } from './planted-drivers.js'
import { type Planted, plantedMistakes } from './planted-table.js'
import { defaultFilter, poseCell } from './posture-cell.js'

const isRoot = process.getuid?.() === 0
const hasCgroups = !('unavailable' in detectCgroups())
const limits = { diskBytes: 52_428_800, inodes: 4321 }
let place: string
let shared: string
const ran = (): string => join(shared, 'ran')

beforeAll(() => {
  place = mkdtempSync(join(tmpdir(), 'gbx-planted-'))
  shared = mkdtempSync(join(tmpdir(), 'gbx-canary-'))
  // Root’s own folders are given to no cell, nor those of a group that is not known to be their owner’s alone.
  if (isRoot) chownSync(shared, 54_321, 54_321)
})

beforeEach(() => rmSync(ran(), { force: true }))

afterAll(() => {
  for (const folder of [place, shared]) rmSync(folder, { recursive: true, force: true })
})

function obstacleOf({ needs }: Planted): string | undefined {
  if (needs === 'root' && !isRoot) return 'only root can make or see this mistake'
  return needs === 'cgroups' && !hasCgroups ? 'no cgroups can be made here' : undefined
}

/** Where its warden is built; looked for again by each test that needs it. */
async function driverOf(planted: Planted): Promise<Driver> {
  return plantedDriver(planted, join(place, planted.mistake.replaceAll(/[^a-z]+/gi, '-')))
}

/** All that the engine is to find, asked of the driver alone. */
async function mismatchesIn(driver: Driver): Promise<Mismatch[]> {
  await using posed = await poseCell({ driver, limits })
  const cell = judge({ expectations: posed.cell.expects, posture: await posed.cell.posture({ kind: 'cell' }) })
  const { hash } = await defaultFilter()
  const programs: Mismatch[] = []
  await posed.script('true', {
    atGate: (posture, request) => {
      const demand = { request, groups: posed.cell.users[0]?.groups, filterHash: hash, warden: { filters: 1, hasCgroup: hasCgroups } }
      programs.push(...judge({ expectations: fullProgramExpectations(demand), posture }))
    },
  })
  return [...cell, ...programs]
}

const spec = (): SpecInput => ({
  limits: { disk: limits.diskBytes, inodes: limits.inodes },
  mounts: [{ source: shared, target: '/mnt/canary', mode: 'rw' }],
})

/** How far it got, and what it was refused with. */
async function attempt(driver: Driver): Promise<{ readonly reached: 'create' | 'run' | 'end'; readonly error: unknown }> {
  await using platform = createPlatform({ drivers: [driver] })
  let reached: 'create' | 'run' = 'create'
  try {
    const { id } = await platform.create(spec())
    reached = 'run'
    const program = await platform.start(id, { command: 'echo yes > /mnt/canary/ran' })
    for await (const _ of program.output) expect.unreachable()
    await program.ended
    return { reached: 'end', error: undefined }
  } catch (error) {
    return { reached, error }
  }
}

describe('without a mistake', () => {
  test('a driver’s cell and its programs are as demanded', async () => {
    expect(await mismatchesIn(createBwrapDriver())).toEqual([])
  })

  test('a sandbox is created and its program runs', async () => {
    expect(await attempt(createBwrapDriver())).toEqual({ reached: 'end', error: undefined })
    expect(readFileSync(ran(), 'utf8')).toBe('yes\n')
  })

  test('but with every part exchanged for its like it is the same', async () => {
    const driver = await plantedDriver({ words: { '--proc': ['--proc'] }, start: (payload) => payload, groups: () => undefined }, join(place, 'none'))
    expect(await mismatchesIn(driver)).toEqual([])
    expect(await attempt(driver)).toEqual({ reached: 'end', error: undefined })
  })
})

describe.for(plantedMistakes)('$mistake', (planted) => {
  test(`is seen in the ${planted.control}`, { timeout: 300_000 }, async (context) => {
    const obstacle = obstacleOf(planted)
    if (obstacle !== undefined) context.skip(obstacle)
    const controls = (await mismatchesIn(await driverOf(planted))).map(({ control }) => control)
    expect(controls).toContain(planted.control)
  })

  test('is refused before anything of the guest runs', { timeout: 300_000 }, async (context) => {
    const obstacle = obstacleOf(planted)
    if (obstacle !== undefined) context.skip(obstacle)
    const { reached, error } = await attempt(await driverOf(planted))
    expect([reached, error]).toEqual([planted.noticed, expect.any(SandboxError)])
    expect(error).toMatchObject({ code: 'not-enforced', message: expect.stringContaining(planted.control) as string })
    expect(existsSync(ran())).toBe(false)
  })
})
