import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import type { CellCgroup } from '../../src/sys/cell-cgroup.js'
import { parseCgroupMounts } from '../../src/sys/cgroup-mounts.js'
import { currentOwner, ownerName } from '../../src/sys/owner.js'
import { skipGroup } from '../unless.js'
import { type CgroupCells, findCgroupCells } from './cgroup-cells.js'
import { doorsOf, endOf, python, startIn } from './cgroup-programs.js'

const MiB = 2 ** 20
const found = findCgroupCells()
const { cgroups, create, removeAll } = found as CgroupCells

afterEach(async () => {
  if (typeof found !== 'string') await removeAll()
})

const unlimited = { memoryBytes: undefined, processes: undefined }

/** The ways into a run of its own. */
function doorsOfRun(cell: CellCgroup): string[] {
  return doorsOf(cell, cell.beginRun(unlimited).name)
}

function ours(): string[] {
  const texts = { mountinfo: readFileSync('/proc/self/mountinfo', 'utf8'), cgroup: readFileSync('/proc/self/cgroup', 'utf8') }
  const own = `.${process.pid}.`
  return parseCgroupMounts(texts).flatMap((mount) => readdirSync(mount.own).filter((name) => name.startsWith('glovebox') && name.includes(own)))
}

describe('cgroups of this machine', () => {
  skipGroup(typeof found === 'string' && found)
  it('state the limits they were given', async () => {
    const cell = await create({ memoryBytes: 100 * MiB + 1, cpus: 0.25, processes: 7 })
    expect(cell.stated()).toEqual({ memoryBytes: 100 * MiB, cpus: 0.25, processes: 7 })
  })

  it('kill what takes more memory than it may, and count it', async () => {
    const cell = await create({ memoryBytes: 48 * MiB })
    expect(cell.usage().oomKills).toBe(0)
    const ended = await endOf(startIn(doorsOfRun(cell), python('x = bytearray(200 * 2**20)')))
    expect(ended.signal).toBe('SIGKILL')
    const { oomKills, memoryPeakBytes } = cell.usage()
    expect(oomKills).toBe(1)
    expect(memoryPeakBytes).toBeGreaterThan(40 * MiB)
    expect(memoryPeakBytes).toBeLessThanOrEqual(48 * MiB)
  })

  it('leave alone what keeps to its memory', async () => {
    const cell = await create({ memoryBytes: 64 * MiB })
    expect((await endOf(startIn(doorsOfRun(cell), python('x = bytearray(20 * 2**20); print(len(x))')))).stdout).toBe(`${20 * MiB}\n`)
    expect(cell.usage().oomKills).toBe(0)
  })

  it('bound what sockets hold as well', async () => {
    const cell = await create({ memoryBytes: 48 * MiB })
    const queue = [
      'import socket, sys',
      'listener = socket.create_server(("127.0.0.1", 0)); pairs = []; sent = 0',
      'for _ in range(60):',
      '    one = socket.create_connection(listener.getsockname()); pairs.append((one, listener.accept()[0])); one.setblocking(False)',
      '    try:',
      '        while True: sent += one.send(bytes(65536))',
      '    except BlockingIOError: pass',
      'print(sent)',
    ].join('\n')
    const queued = Number((await endOf(startIn(doorsOfRun(cell), python(queue)))).stdout)
    expect(queued).toBeGreaterThan(0)
    expect(queued).toBeLessThan(48 * MiB)
    // The same without a limit shows that the attack would otherwise get through.
    expect(Number((await endOf(startIn([], python(queue)))).stdout)).toBeGreaterThan(100 * MiB)
  })

  it('spare the warden when guests have taken all there is', async () => {
    const cell = await create({ memoryBytes: 48 * MiB, processes: 8 })
    const warden = startIn(cell.joins, ['sleep', '60'])
    await endOf(startIn(doorsOfRun(cell), python('x = bytearray(200 * 2**20)')))
    expect([warden.exitCode, warden.signalCode]).toEqual([null, null])
    warden.kill('SIGKILL')
    await endOf(warden)
  })

  it('stop a fork bomb, and count how often it met the limit', async () => {
    const cell = await create({ processes: 10 })
    const code = `
import os, time
made = 0
try:
    while True:
        if os.fork() == 0: time.sleep(60)
        made += 1
except BlockingIOError: print(made, flush=True)
os.kill(os.getpid(), 9)`
    const { stdout } = await endOf(startIn(doorsOfRun(cell), python(code)).on('exit', () => cell.kill()))
    expect(stdout).toBe('9\n')
    expect(cell.usage()).toMatchObject({ processesPeak: 10, processHits: 1 })
  })

  it('hold busy processes to their share of the processor', async () => {
    const cell = await create({ cpus: 0.4 })
    const busy = 'import multiprocessing as m\nfor _ in range(3): m.Process(target=exec, args=("while True: pass",)).start()'
    const started = performance.now()
    const child = startIn(doorsOfRun(cell), python(busy))
    await new Promise((resolve) => setTimeout(resolve, 2500))
    const { cpuMs } = cell.usage()
    const wallMs = performance.now() - started
    cell.kill()
    await endOf(child)
    expect(cpuMs).toBeGreaterThan(0)
    expect(cpuMs as number).toBeLessThan(0.45 * wallMs + 50)
  })

  it('are removed together with what still runs in them, twice if need be', async () => {
    const cell = await create()
    const groups = [cell.joins, doorsOfRun(cell)]
    const ended = groups.map((doors) => endOf(startIn(doors, ['sleep', '60'])))
    while (groups.some((doors) => readFileSync(doors.at(-1) as string, 'latin1') === '')) await new Promise((resolve) => setTimeout(resolve, 2))
    await cell.remove()
    await cell.remove()
    expect((await Promise.all(ended)).map(({ signal }) => signal)).toEqual(['SIGKILL', 'SIGKILL'])
    expect(groups.flat().filter((path) => existsSync(dirname(path)))).toEqual([])
  })

  it('leave nothing after 200 were made and removed', async () => {
    const before = ours()
    for (let round = 0; round < 20; round++) {
      const cells = await Promise.all(Array.from({ length: 10 }, () => create()))
      await Promise.all(cells.map((cell) => cell.remove()))
    }
    expect(ours()).toEqual(before)
  })

  it('of an owner that died are swept, those of a living one are not', async () => {
    const mine = await create()
    const orphan = await create()
    // Alive until all is ready: whatever else runs on this machine may sweep too.
    const owner = spawn('sleep', ['60'])
    const startTime = readFileSync(`/proc/${owner.pid}/stat`, 'latin1').split(') ')[1]?.split(' ')[19] as string
    const named = (path: string) => path.replace(ownerName(currentOwner()), ownerName({ ...currentOwner(), pid: owner.pid as number, startTime }))
    const folders = [...orphan.guestJoins.map(dirname), ...orphan.runJoins.map(({ folder }) => join(folder, 'r1'))].map(named)
    for (const folder of folders) mkdirSync(folder, { recursive: true })
    const left = endOf(
      startIn(
        folders.map((folder) => `${folder}/cgroup.procs`),
        ['sleep', '60'],
      ),
    )
    while (readFileSync(`${folders.at(-1)}/cgroup.procs`, 'latin1') === '') await new Promise((resolve) => setTimeout(resolve, 2))
    await cgroups.sweep()
    expect(folders.filter((folder) => existsSync(folder))).toEqual(folders)
    owner.kill('SIGKILL')
    await endOf(owner)
    await cgroups.sweep()
    expect((await left).signal).toBe('SIGKILL')
    expect(folders.filter((folder) => existsSync(folder))).toEqual([])
    expect(existsSync(mine.places(undefined)[0] as string)).toBe(true)
  })

  it('refuse limits the kernel does not take, and leave nothing of the attempt', async () => {
    const before = ours()
    await expect(create({ cpus: 0.000001 })).rejects.toMatchObject({ code: 'unsupported' })
    expect(ours()).toEqual(before)
  })
})
