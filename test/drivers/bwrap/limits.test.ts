import { beforeAll, describe, expect, type TestContext, test } from 'vitest'
import type { Probe } from '../../../src/contract/driver.js'
import type { Limits } from '../../../src/contract/limits.js'
import { defaultLimits } from '../../../src/contract/limit-words.js'
import { createBwrapDriver } from '../../../src/drivers/bwrap/driver.js'
import { leastLimits } from '../../../src/cell/judgement.js'
import { openGuest } from './open-guest.js'

const MiB = 2 ** 20
const driver = createBwrapDriver()
let limits: Probe['limits']

beforeAll(async () => {
  limits = (await driver.probe()).limits
})

/** What these tests need is skipped where nothing enforces it, in the probe's own words. */
function needs(context: { skip(reason: string): void }, ...names: (keyof Probe['limits'])[]): void {
  for (const name of names) {
    const row = limits[name]
    if (!row.enforced) context.skip(row.why)
  }
}

const live = (changes: Partial<Limits>): Limits => ({
  ...defaultLimits,
  inodes: 25_600,
  fileSizeBytes: defaultLimits.diskBytes,
  stated: [],
  ...changes,
})

/** Takes so much memory, all of it touched. */
const take = (mebibytes: number): string => `/usr/bin/python3 -c 'x = b"x" * (${mebibytes} * 2**20)'; echo $?`

describe('a run in a cell', () => {
  test('is the one that is told to have run out of memory, and the neighbour that runs beside it is not', async (context) => {
    needs(context, 'memory')
    await using guest = await openGuest({ driver, limits: { memoryBytes: 64 * MiB, cpus: 2 } })
    const [greedy, modest] = await Promise.all([guest.run(take(200)), guest.run('sleep 1; echo fine')])
    expect([greedy.said, modest.said]).toEqual([expect.stringMatching(/137\n$/) as string, 'fine\n'])
    expect([greedy.counts.hits.memory, modest.counts.hits.memory]).toEqual([1, 0])
    expect((await guest.cell.usage()).hits.memory).toBe(1)
  })

  test('may have less memory than its sandbox', async (context) => {
    needs(context, 'memory')
    await using guest = await openGuest({ driver, limits: { memoryBytes: 256 * MiB, cpus: 2 } })
    const [small, large] = [await guest.run(take(64), { memoryBytes: 32 * MiB }), await guest.run(take(64))]
    expect([small.said, small.counts.hits.memory, large.said]).toEqual([expect.stringMatching(/137\n$/) as string, 1, '0\n'])
  })

  test('counts refused forks, and the sandbox those of all its runs', async (context) => {
    needs(context, 'processes')
    await using guest = await openGuest({ driver, limits: { processes: 8 } })
    const bomb = await guest.run('for i in 1 2 3 4 5 6 7 8 9 10; do sleep 3 & done; wait; echo end')
    if (bomb.counts.hits.processes === undefined) context.skip('processes are held by an rlimit here, which counts nothing')
    expect(bomb.counts.hits.processes).toBeGreaterThan(0)
    expect(bomb.counts.processesPeak).toBe(8)
    const calm = await guest.run('true')
    expect(calm.counts).toMatchObject({ hits: { processes: 0 }, processesPeak: 1 })
    expect((await guest.cell.usage()).hits.processes).toBe(bomb.counts.hits.processes)
  })

  test('has its own processor time, which adds up to the sandbox’s', async (context) => {
    needs(context, 'cpuTime')
    await using guest = await openGuest({ driver, limits: { cpus: 2 } })
    const burn = 'import time\nwhile time.process_time() < 0.5: pass'
    const runs = [await guest.run(`/usr/bin/python3 -c '${burn}'`), await guest.run('true')]
    const [burnt = 0, idle = 0] = runs.map(({ counts }) => counts.cpuMs)
    expect(burnt).toBeGreaterThanOrEqual(500)
    expect(idle).toBeLessThan(100)
    expect((await guest.cell.usage()).cpuMs).toBeCloseTo(burnt + idle, -1)
  })

  test('that ended leaves no group; one with processes left keeps it until its cell is closed', async (context) => {
    needs(context, 'memory')
    const guest = await openGuest({ driver })
    await guest.run('sleep 60 >/dev/null 2>&1 &')
    await expect.poll(async () => (await guest.cell.usage()).processes).toBe(1)
    await guest[Symbol.asyncDispose]()
  })
})

describe('limits of a cell that lives', () => {
  test('are changed where cgroups hold them: what did not fit does afterwards', async (context) => {
    needs(context, 'memory', 'cpus')
    await using guest = await openGuest({ driver, limits: { memoryBytes: 64 * MiB, cpus: 2 } })
    expect(await guest.sh(take(100))).toMatch(/137\n$/)
    await guest.cell.limit(live({ memoryBytes: 256 * MiB, cpus: 1 }))
    expect(await guest.sh(take(100))).toBe('0\n')
  })

  test('below what is used are a conflict that names how much', async (context) => {
    needs(context, 'memory')
    await using guest = await openGuest({ driver, limits: { memoryBytes: 128 * MiB, cpus: 2 } })
    await guest.sh('head -c 50331648 /dev/zero > /tmp/held')
    await expect(guest.cell.limit(live({ memoryBytes: 16 * MiB, cpus: 2 }))).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringMatching(/^limits\.memory: (4[89]|5\d)(\.\d)?m is in use, and 16m was asked for$/) as string,
    })
    expect(await guest.sh('stat -c %s /tmp/held')).toBe('50331648\n')
  })

  test('may be those of its disk, but not below what is on it, and then nothing is changed', async () => {
    await using guest = await openGuest({ driver, limits: { diskBytes: 4 * MiB, inodes: 500, cpus: 2 } })
    const size = () => guest.sh('df --output=size,itotal -B1 /tmp | tail -1 | xargs')
    await guest.cell.limit(live({ diskBytes: 8 * MiB, inodes: 700, cpus: 2 }))
    expect(await size()).toBe(`${8 * MiB} 700\n`)
    await guest.sh('head -c 6291456 /dev/zero > /tmp/held')
    const changes = live({ diskBytes: 4 * MiB, inodes: 700, cpus: 2, ...(limits.memory.enforced ? { memoryBytes: 256 * MiB } : {}) })
    await expect(guest.cell.limit(changes)).rejects.toMatchObject({ code: 'conflict', message: expect.stringMatching(/^limits\.disk: /) as string })
    expect(await size()).toBe(`${8 * MiB} 700\n`)
    if (limits.memory.enforced) expect(guest.cell.expects).toContainEqual({ control: 'limit.memory', value: 512 * MiB })
  })

  test('that nothing holds are refused by name', async (context) => {
    if (limits.memory.enforced) context.skip('here cgroups hold the memory of a cell')
    await using guest = await openGuest({ driver })
    await expect(guest.cell.limit(live({ memoryBytes: 256 * MiB }))).rejects.toMatchObject({
      code: 'unsupported',
      message: expect.stringMatching(/^limits\.memory cannot be changed: /) as string,
    })
    await expect(guest.run('true', { memoryBytes: 32 * MiB })).rejects.toMatchObject({ code: 'unsupported' })
  })
})

describe('the least limits that are accepted', () => {
  test.for(['readonly', 'overlay'] as const)(
    'are enough for a shell that writes a file, in a cell whose root is %s',
    async (rootMode, { skip }: TestContext) => {
      const overlay = (await driver.probe()).features['root-overlay']
      if (rootMode === 'overlay' && !overlay.available) skip(overlay.why)
      const { memory, disk, inodes, processes } = leastLimits
      const least = { memoryBytes: memory, diskBytes: disk, inodes, fileSizeBytes: disk, processes, cpus: 2 }
      await using guest = await openGuest({ driver, limits: least, spec: { rootMode } })
      expect(await guest.sh('echo written > /tmp/file; read -r line < /tmp/file; echo $line')).toBe('written\n')
    },
  )
})

describe('a rate of reading from disks', () => {
  test('holds for what a template shows, and without it the same is several times as fast', async (context) => {
    needs(context, 'readRate')
    const read = `/usr/bin/python3 -c '
import mmap, os, time
names = (os.path.join(at, name) for at, _, found in os.walk("/usr/lib") for name in found)
path = next(path for path in names if not os.path.islink(path) and os.stat(path).st_size > 6 << 20)
file, buffer, got = os.open(path, os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, 1 << 20), 0
started = time.monotonic()
while got < 6 << 20: got += os.preadv(file, [buffer], got)
print(got / (time.monotonic() - started))'`
    const rateWith = async (readBytesPerSecond: number | undefined): Promise<number> => {
      await using guest = await openGuest({ driver, limits: { cpus: 2, readBytesPerSecond } })
      return Number(await guest.sh(read))
    }
    const [held, free] = [await rateWith(4 * MiB), await rateWith(undefined)]
    expect(held).toBeGreaterThan(0)
    expect(held).toBeLessThan(1.5 * 4 * MiB)
    expect(free).toBeGreaterThan(2 * held)
  })
})
