import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createBwrapDriver } from '../../../src/drivers/bwrap/driver.js'
import { currentOwner, ownerName } from '../../../src/sys/owner.js'
import { statePlace } from '../../../src/sys/places.js'
import { innerPid } from '../../../src/sys/posture/process-tree.js'
import { argumentsOf, findProcesses, parentOf } from '../../../src/sys/processes.js'
import { mountsButThoseOfTests } from '../../mounts.js'
import { testUnless } from '../../unless.js'
import { startScript } from '../../sys/run-script.js'
import { openGuest, specOf } from './open-guest.js'

const never = new AbortController().signal
const keepsNothing =
  (process.getuid?.() !== 0 || !existsSync('/sys/fs/cgroup/pids')) && 'only with ids of their own and cgroups of version 1 do cells leave anything to others'
/** One for all that count what is left, so that there is one server which launches for it. */
const driver = createBwrapDriver()

function isServer(pid: number): boolean {
  return argumentsOf(pid)[1] === '--serve'
}

const servers = (): number => findProcesses((pid) => parentOf(pid) === process.pid && isServer(pid)).length
/** What this process has of each: where it orders, and where it is told. */
const descriptorsOfServer = 2

/** The server comes with the second cell, and stays for a while. */
async function settle(): Promise<void> {
  await driver.probe()
  for (let n = 0; servers() === 0 || n < 2; n++) await (await openGuest({ driver })).cell.close()
}

/** What this process has of the host's: cells by their processes, mounts, records, cgroups and descriptors. */
function holdings() {
  return {
    processes: findProcesses((pid) => isOurs(parentOf(pid)) && argumentsOf(pid).some((argument) => /bwrap|launcher/.test(argument)) && !isServer(pid)),
    mounts: mountsButThoseOfTests(),
    records: recordsOf(ownerName(currentOwner())),
    cgroups: cgroupsOf(ownerName(currentOwner())),
    // One that nobody used for a while may end meanwhile, and another begin.
    descriptors: readdirSync('/proc/self/fd').length - servers() * descriptorsOfServer,
  }
}

function isOurs(pid: number | undefined): boolean {
  return pid === process.pid || (pid !== undefined && isServer(pid) && parentOf(pid) === process.pid)
}

function recordsOf(owner: string): string[] {
  return ['ranges', 'cells'].flatMap((kind) => {
    const folder = join(statePlace(), kind)
    return foldersOf(folder).flatMap((name) => [name, ...foldersOf(join(folder, name))].filter((path) => path.includes(owner)))
  })
}

function cgroupsOf(owner: string): string[] {
  const find = (folder: string): string[] => foldersOf(folder).flatMap((name) => (name.includes(owner) ? [name] : find(join(folder, name))))
  return find('/sys/fs/cgroup')
}

/** Names in a folder; none when it is gone, or is no folder: other engines of this machine come and go meanwhile. */
function foldersOf(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

test('fifty cells, five at a time, leave no process, mount, record, cgroup or descriptor', async () => {
  await settle()
  const before = holdings()
  for (let round = 0; round < 10; round++) {
    const guests = await Promise.all(Array.from({ length: 5 }, () => openGuest({ driver })))
    if (round === 0) expect(holdings().records.length).toBeGreaterThanOrEqual(5)
    const answers = await Promise.all(guests.map((guest, index) => guest.sh(`(setsid sleep 1000 > /dev/null 2>&1 &) ; echo ${index}`)))
    expect(answers).toEqual(['0\n', '1\n', '2\n', '3\n', '4\n'])
    await Promise.all(guests.map((guest) => guest[Symbol.asyncDispose]()))
  }
  // A socket that was just destroyed gives its descriptor back on the next turn of the loop.
  await expect.poll(holdings).toEqual(before)
}, 600_000)

test('closing twice, at once and again later, is quiet', async () => {
  const { cell } = await openGuest()
  await Promise.all([cell.close(), cell.close()])
  await cell.close()
  expect(cell.channel.destroyed).toBe(true)
})

test('a cell whose warden is stopped is closed by force', async () => {
  const { cell } = await openGuest()
  const [monitor] = holdings().processes
  const [warden] = findProcesses((pid) => parentOf(pid) === monitor && innerPid(pid) === 1)
  process.kill(warden as number, 'SIGSTOP')
  await cell.close()
  // Whoever it was left to may not have reaped it yet.
  await expect.poll(() => existsSync(`/proc/${warden}`)).toBe(false)
})

test('a cell whose monitor was killed is closed to its last process', async () => {
  const { cell } = await openGuest()
  const [monitor] = holdings().processes
  const inside = findProcesses((pid) => parentOf(pid) === monitor)
  process.kill(monitor as number, 'SIGKILL')
  await cell.close()
  expect(holdings().records).toEqual([])
  await expect.poll(() => inside.filter((pid) => existsSync(`/proc/${pid}`))).toEqual([])
})

test('when what launches cells is killed its cells end, nothing of them is left, and the next one opens', async () => {
  await settle()
  const [server] = findProcesses((pid) => parentOf(pid) === process.pid && isServer(pid))
  const guest = await openGuest({ driver })
  const monitors = findProcesses((pid) => parentOf(pid) === server)
  expect(monitors).toHaveLength(1)
  process.kill(server as number, 'SIGKILL')
  await guest.cell.close()
  await expect.poll(() => monitors.filter((pid) => existsSync(`/proc/${pid}`))).toEqual([])
  expect(holdings()).toMatchObject({ processes: [], records: [], cgroups: [] })
  const next = await openGuest({ driver })
  expect(await next.sh('echo here')).toBe('here\n')
  await next[Symbol.asyncDispose]()
})

test('an open that is aborted at any moment rejects with the reason and leaves nothing', async () => {
  await settle()
  const before = holdings()
  for (const delayMs of [0, 1, 2, 4, 6, 8, 12, 16, 24]) {
    const controller = new AbortController()
    const reason = new Error(`after ${delayMs} ms`)
    const opening = driver.open(await specOf(), controller.signal)
    await sleep(delayMs)
    controller.abort(reason)
    const cell = await opening.catch((error: unknown) => {
      expect(error).toBe(reason)
      return undefined
    })
    await cell?.close()
  }
  await expect.poll(holdings).toEqual(before)
})

test('a cell that does not open gives everything back', async () => {
  await settle()
  const before = holdings()
  const spec = await specOf({ root: { name: 'bad', binds: [{ source: '/nowhere', target: '/usr' }], symlinks: [], shell: '/bin/sh', env: {} } })
  // Often, because its launcher may be gone before anyone listens to it.
  for (let times = 0; times < 50; times++) await expect(driver.open(spec, never)).rejects.toMatchObject({ code: 'unavailable' })
  await expect.poll(holdings).toEqual(before)
})

test('kill -9 of the owner leaves no process, and the next engine sweeps its records', async () => {
  const { child, firstLine, ended } = await startScript(new URL('./programs/hold-cells.ts', import.meta.url), ['3'])
  const { owner, monitors, server } = JSON.parse(await firstLine) as { owner: string; monitors: number[]; server: number }
  const inside = monitors.flatMap((monitor) => findProcesses((pid) => parentOf(pid) === monitor))
  // Where filters can be read, one who waits to do so is beside each warden.
  expect(monitors.length).toBeGreaterThanOrEqual(3)
  expect(inside.length).toBe(monitors.length * (process.getuid?.() === 0 ? 2 : 1))
  child.kill('SIGKILL')
  await ended
  await expect.poll(() => [server, ...monitors, ...inside].filter((pid) => existsSync(`/proc/${pid}`))).toEqual([])
  await (await openGuest())[Symbol.asyncDispose]()
  expect(recordsOf(owner)).toEqual([])
  expect(cgroupsOf(owner)).toEqual([])
})

testUnless(keepsNothing)("what an ended cell had is another's while there are cells, and with the last of them nothing is left", async () => {
  await settle()
  const before = holdings()
  const [stays, first] = [await openGuest({ driver }), await openGuest({ driver })]
  expect(await first.sh('echo 1 > /tmp/mine; echo first')).toBe('first\n')
  const had = holdings()
  await first[Symbol.asyncDispose]()
  expect(holdings()).toMatchObject({ records: had.records, cgroups: had.cgroups })
  const next = await openGuest({ driver })
  expect(holdings()).toMatchObject({ records: had.records, cgroups: had.cgroups })
  expect(await next.sh('ls -A /tmp; echo next')).toBe('next\n')
  expect(await next.cell.usage()).toMatchObject({ processesPeak: expect.any(Number) as number, hits: { memory: 0, processes: 0 } })
  await next[Symbol.asyncDispose]()
  await stays[Symbol.asyncDispose]()
  await expect.poll(holdings).toEqual(before)
})

testUnless(keepsNothing)("what a cell had whose monitor was killed is nobody else's", async () => {
  await settle()
  await using _stays = await openGuest({ driver })
  const before = new Set(holdings().processes)
  const { cell } = await openGuest({ driver })
  const had = holdings().cgroups
  const [monitor] = holdings().processes.filter((pid) => !before.has(pid))
  process.kill(monitor as number, 'SIGKILL')
  await cell.close()
  expect(holdings().cgroups.length).toBe(had.length / 2)
})

testUnless(keepsNothing)('kill -9 of an owner that keeps what ended cells had leaves nothing that the next engine does not sweep', async () => {
  const { child, firstLine, ended } = await startScript(new URL('./programs/hold-cells.ts', import.meta.url), ['4', 'keep'])
  const { owner, monitors } = JSON.parse(await firstLine) as { owner: string; monitors: number[] }
  // More than one of each for each cell that is left.
  expect(recordsOf(owner).length).toBeGreaterThan(monitors.length)
  child.kill('SIGKILL')
  await ended
  expect([recordsOf(owner).length > 0, cgroupsOf(owner).length > 0]).toEqual([true, true])
  await (await openGuest())[Symbol.asyncDispose]()
  expect([recordsOf(owner), cgroupsOf(owner)]).toEqual([[], []])
})

test('a process with an idle cell ends by itself, and takes the cell with it', async () => {
  const { firstLine, ended } = await startScript(new URL('./programs/hold-cells.ts', import.meta.url), ['1', 'idle'])
  const { owner, monitors } = JSON.parse(await firstLine) as { owner: string; monitors: number[] }
  expect(await ended).toMatchObject({ code: 0 })
  await expect.poll(() => monitors.filter((pid) => existsSync(`/proc/${pid}`))).toEqual([])
  expect(recordsOf(owner)).toEqual([])
})
