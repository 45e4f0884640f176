import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { CellCgroup } from '../../src/sys/cell-cgroup.js'
import { type Cgroups, detectCgroups } from '../../src/sys/cgroups.js'
import { createCgroupModel } from './cgroup-model.js'

const MiB = 2 ** 20
const limits = { memoryBytes: 64 * MiB, cpus: 0.5, processes: 20 }
const devices = ['254:0']
let root: string
let cell: CellCgroup
/** What was written since the cell was settled, as `group/file value`. */
let written: string[]
/** Files that take a write and do nothing. */
let deaf: string[]

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), 'cgroup-change-'))
  const { tree, populate } = createCgroupModel({ root, delegated: root })
  populate(root)
  const texts = { mountinfo: `30 24 0:26 / ${root} rw - cgroup2 cgroup2 rw\n`, cgroup: '0::/\n' }
  deaf = []
  const write = (file: string, value: string): void => {
    written.push(`${relative(base(), file)} ${value}`)
    if (!deaf.some((name) => file.endsWith(name))) tree.write(file, value)
  }
  written = []
  cell = await (detectCgroups({ tree: { ...tree, write }, texts, devices }) as Cgroups).create({ id: 'abcdefghij0123456789', ...limits })
  cell.settle()
  written = []
})
afterEach(async () => {
  await cell.remove()
  rmSync(root, { recursive: true })
})

const guest = (): string => cell?.places(undefined)[0] ?? root
const base = (): string => join(guest(), '..')
const text = (file: string): string => readFileSync(join(guest(), file), 'utf8')
const headroom = (memoryBytes: number, processes: number): number => memoryBytes + 16 * MiB + processes * 256 * 1024

describe('limits of a cell that lives, in version 2', () => {
  it('are raised from the outside in, memory last, and lowered from the inside out', () => {
    cell.limit({ memoryBytes: 128 * MiB, cpus: 1, processes: 40 })
    expect(written).toHaveLength(7)
    expect(written).toContain('guest/cpu.max 100000 100000')
    expect(written.filter((line) => /memory\.max|pids/.test(line))).toEqual([
      'pids.max 96',
      'guest/pids.max 40',
      `memory.max ${headroom(128 * MiB, 40)}`,
      `guest/memory.max ${128 * MiB}`,
    ])
    written = []
    cell.limit(limits)
    expect(written.filter((line) => line.startsWith('guest/') && line.includes('.max ')).length).toBeGreaterThan(2)
    expect(written.findLastIndex((line) => line.startsWith('guest/'))).toBeLessThan(written.findIndex((line) => !line.startsWith('guest/')))
  })

  it('are not lowered below the memory in use: it is squeezed first, and killed never', () => {
    writeFileSync(join(guest(), 'memory.current'), `${40 * MiB}`)
    expect(() => cell.limit({ ...limits, memoryBytes: 16 * MiB })).toThrow(
      expect.objectContaining({ code: 'conflict', message: 'limits.memory: 40m is in use, and 16m was asked for' }),
    )
    expect(written.slice(0, 2)).toEqual([`guest/memory.high ${16 * MiB}`, 'guest/memory.high max'])
    expect(written).not.toContain(`guest/memory.max ${16 * MiB}`)
    expect([text('memory.max'), text('memory.high')]).toEqual([`${64 * MiB}`, 'max'])
  })

  it('that the kernel states otherwise are refused and put back', () => {
    deaf = ['guest/cpu.max']
    expect(() => cell.limit({ memoryBytes: 32 * MiB, cpus: 1, processes: 5 })).toThrow(
      expect.objectContaining({ code: 'unsupported', message: 'the kernel states other limits than it was given: cpus' }),
    )
    expect(cell.stated()).toEqual({ ...limits, readBytesPerSecond: undefined, writeBytesPerSecond: undefined })
  })

  it('may be rates of reading and writing, set for each disk, changed and lifted', () => {
    const rates = { devices, readBytesPerSecond: MiB, writeBytesPerSecond: 2 * MiB }
    cell.limit({ ...limits, rates })
    expect([text('io.max'), cell.stated()]).toEqual([
      `254:0 rbps=${MiB} wbps=${2 * MiB} riops=max wiops=max`,
      { ...limits, readBytesPerSecond: MiB, writeBytesPerSecond: 2 * MiB },
    ])
    cell.limit({ ...limits, rates: { ...rates, readBytesPerSecond: undefined } })
    expect(text('io.max')).toBe(`254:0 rbps=max wbps=${2 * MiB} riops=max wiops=max`)
    cell.limit(limits)
    expect(text('io.max')).toBe('')
  })

  it('reach the runs that have none of their own, so that a refused fork is counted where it was tried', () => {
    const [free, held] = [undefined, 4].map((processes) => cell.beginRun({ memoryBytes: undefined, processes }))
    cell.limit({ ...limits, processes: 30 })
    expect([free, held].map((run) => text(`${run?.name}/pids.max`))).toEqual(['30', '4'])
    writeFileSync(join(guest(), free?.name as string, 'pids.events.local'), 'max 2')
    expect(free?.counts().processHits).toBe(2)
    // A fork that met the limit of all runs together may have been anybody's.
    writeFileSync(join(guest(), 'pids.events.local'), 'max 1')
    expect([free?.counts().processHits, cell.usage().processHits]).toEqual([undefined, 3])
  })

  it('are met by a run that was made ahead only from when it is told to count', () => {
    const ready = cell.beginRun({ memoryBytes: undefined, processes: undefined })
    writeFileSync(join(guest(), ready.name as string, 'pids.events.local'), 'max 0')
    writeFileSync(join(guest(), 'pids.events.local'), 'max 5')
    expect(ready.counts().processHits).toBe(undefined)
    ready.countFromNow()
    expect(ready.counts().processHits).toBe(0)
    writeFileSync(join(guest(), 'pids.events.local'), 'max 6')
    expect(ready.counts().processHits).toBe(undefined)
  })
})
