import { readFileSync } from 'node:fs'
import type { MountEntry } from './mount-table.js'
import { pageBytes } from './page-size.js'

export interface DiskBounds {
  readonly bytes: number
  readonly inodes: number
}

const units = new Map([
  ['k', 2 ** 10],
  ['m', 2 ** 20],
  ['g', 2 ** 30],
])

/**
 * What all memory file systems that can be written to can hold together. The kernel leaves out what is as by default, and that is half of the
 * machine's memory.
 */
export function boundsOfDisk(mounts: readonly MountEntry[]): DiskBounds {
  const disks = new Map(mounts.filter(({ type, access }) => type === 'tmpfs' && access === 'rw').map((mount) => [mount.device, mount.options]))
  const each = [...disks.values()].map((options) => ({
    bytes: sizeOf(options, 'size') ?? defaultPages() * pageBytes(),
    inodes: sizeOf(options, 'nr_inodes') ?? defaultPages(),
  }))
  return { bytes: sum(each.map(({ bytes }) => bytes)), inodes: sum(each.map(({ inodes }) => inodes)) }
}

function sizeOf(options: string, name: string): number | undefined {
  const match = new RegExp(`(?:^|,)${name}=(\\d+)([kmg]?)(?:,|$)`).exec(options)
  return match ? Number(match[1]) * (units.get(match[2] ?? '') ?? 1) : undefined
}

function defaultPages(): number {
  const kibibytes = Number(/^MemTotal:\s*(\d+) kB/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1] ?? 0)
  return Math.floor((kibibytes * 1024) / pageBytes() / 2)
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
