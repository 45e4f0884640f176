import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Cell, CellSpec, Driver } from '../../../src/contract/driver.js'
import { type BwrapDriverOptions, createBwrapDriver } from '../../../src/drivers/bwrap/driver.js'
import type { CellCgroup } from '../../../src/sys/cell-cgroup.js'
import { type Cgroups, detectCgroups } from '../../../src/sys/cgroups.js'
import { nativeProgram } from '../../../src/sys/native.js'
import { type Tampering, tamperedCell, withOther } from './planted-channel.js'
import { buildWarden, type Patch } from './planted-wardens.js'

/** One mistake in how a cell is built, in how its programs are started, or made by somebody else afterwards. */
export interface Plant extends Tampering {
  /** Words among the arguments of launcher, bwrap and warden, and what stands there instead. */
  readonly words?: Readonly<Record<string, readonly string[]>>
  readonly warden?: Patch
  /** Done to the groups of the guests, in each hierarchy, when the cell has just been built. */
  readonly groups?: (folders: readonly string[]) => void
}

/** A driver that makes the mistake, and claims what the real one does. */
export async function plantedDriver(plant: Plant, place: string): Promise<Driver> {
  mkdirSync(place, { recursive: true, mode: 0o755 })
  const real = createBwrapDriver()
  const programs = {
    ...(plant.words && { launcher: wordyLauncher(place, plant.words) }),
    ...(plant.warden && { warden: await buildWarden(place, plant.warden) }),
  }
  const driver = createBwrapDriver({ programs, ...(plant.groups && { cgroups: tamperedGroups(plant.groups) }) })
  return withOther(real, { open: (spec, signal) => openTampered(driver, plant, { spec, signal }) })
}

/** One and the same from the moment in which it can be spoken to. */
async function openTampered(driver: Driver, plant: Plant, { spec, signal }: { readonly spec: CellSpec; readonly signal: AbortSignal }): Promise<Cell> {
  let tampered: Cell | undefined
  const tamper = (cell: Cell): Cell => (tampered ??= tamperedCell(cell, plant))
  const { onLaunched } = spec
  return tamper(await driver.open({ ...spec, ...(onLaunched && { onLaunched: (cell: Cell) => onLaunched(tamper(cell)) }) }, signal))
}

/** Rotates through its arguments, so that any of them may become none or many. */
export function wordyLauncher(place: string, words: NonNullable<Plant['words']>): string {
  const cases = Object.entries(words).map(([word, instead]) => `${quoted(word)}) set -- "$@" ${instead.map(quoted).join(' ')} ;;`)
  const loop = [
    'left=$#',
    'while [ $left -gt 0 ]; do',
    'left=$((left - 1)) word=$1',
    'shift',
    'case $word in',
    ...cases,
    '*) set -- "$@" "$word" ;;',
    'esac',
    'done',
  ]
  const path = join(place, 'launcher')
  writeFileSync(path, `#!/bin/sh\n${loop.join('\n')}\nexec ${quoted(nativeProgram('launcher'))} "$@"\n`, { mode: 0o755 })
  return path
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`
}

function tamperedGroups(tamper: NonNullable<Plant['groups']>): NonNullable<BwrapDriverOptions['cgroups']> {
  const real = detectCgroups()
  if ('unavailable' in real) return real
  const tampered = (group: CellCgroup): CellCgroup =>
    withOther(group, {
      settle: () => {
        group.settle()
        tamper(group.places(undefined))
      },
    })
  return withOther<Cgroups>(real, {
    plan: (order) => {
      const { cgroup, build } = real.plan(order)
      return { cgroup: tampered(cgroup), build }
    },
  })
}
