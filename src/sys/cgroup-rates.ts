import type { Group } from './cgroup-files.js'
import type { ControllerFiles } from './cgroup-limits.js'

/** Bytes per second from and to block devices; undefined: not limited. */
export interface CgroupRates {
  /** Whole disks as `major:minor`; the kernel refuses partitions. */
  readonly devices: readonly string[]
  readonly readBytesPerSecond: number | undefined
  readonly writeBytesPerSecond: number | undefined
}

const counts = { usage: () => ({}), now: () => ({}), hits: () => ({}) } as const

/**
 * Version 1 holds back only who starts the transfer. For reads that is the reader; what is written goes to memory first and later to
 * the disk by the kernel itself, outside of every group: so no rate of writing holds, and none is stated.
 */
export const blkio1: ControllerFiles = {
  ...counts,
  needs: 'blkio.throttle.read_bps_device',
  limit(group, { rates }) {
    // 0 lifts it.
    for (const device of rates?.devices ?? []) group.write('blkio.throttle.read_bps_device', `${device} ${rates?.readBytesPerSecond ?? 0}`)
  },
  stated(group, { rates }) {
    const lines = (group.read('blkio.throttle.read_bps_device') ?? '').split('\n')
    const rateOf = (device: string): string | undefined => lines.find((line) => line.startsWith(`${device} `))?.split(' ')[1]
    return { readBytesPerSecond: weakest((rates?.devices ?? []).map(rateOf)) }
  },
}

export const io2: ControllerFiles = {
  ...counts,
  needs: 'io.max',
  limit(group, { rates }) {
    const [read, write] = [rates?.readBytesPerSecond ?? 'max', rates?.writeBytesPerSecond ?? 'max']
    for (const device of rates?.devices ?? []) group.write('io.max', `${device} rbps=${read} wbps=${write}`)
  },
  stated: (group, { rates }) => ({
    readBytesPerSecond: weakest((rates?.devices ?? []).map((device) => ioMax(group, device, 'rbps'))),
    writeBytesPerSecond: weakest((rates?.devices ?? []).map((device) => ioMax(group, device, 'wbps'))),
  }),
}

/** `254:0 rbps=1048576 wbps=max riops=max wiops=max` */
function ioMax(group: Group, device: string, key: 'rbps' | 'wbps'): string | undefined {
  const line = (group.read('io.max') ?? '').split('\n').find((each) => each.startsWith(`${device} `))
  return line?.split(' ').flatMap((word) => (word.startsWith(`${key}=`) ? [word.slice(key.length + 1)] : []))[0]
}

/** Undefined when one of them is not held to a number, or there is none. */
function weakest(rates: readonly (string | undefined)[]): number | undefined {
  const numbers = rates.map((rate) => (rate !== undefined && /^\d+$/.test(rate) ? Number(rate) : Number.POSITIVE_INFINITY))
  const most = Math.max(...numbers)
  return Number.isFinite(most) ? most : undefined
}
