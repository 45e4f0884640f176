/**
 * The bundle of a container is a folder of ours, beside it what the runtime keeps of it; both have the name of whoever made them, so that what a killed engine left is
 * known by its bundle, and ended and removed by the next.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join, normalize } from 'node:path'
import type { Lease } from '../../cell/lease.js'
import { writingTo } from '../../sys/folder-error.js'
import { parseHierarchies } from '../../sys/cgroup-mounts.js'
import { currentOwner, ownerName } from '../../sys/owner.js'
import { statePlace } from '../../sys/places.js'
import { argumentsOf, endAll, findOwnProcesses, mountTableOf } from '../../sys/processes.js'
import { Sweeper } from '../../sys/sweeper.js'

export interface Bundle {
  readonly folder: string
  /** What the runtime keeps of its containers: this one alone. */
  readonly state: string
  write(config: object): void
  /** Host pids of the runtime's own processes for it. */
  processes(): number[]
  /** Idempotent. Only when no process of the cell is left. */
  remove(): void
}

export interface Bundles {
  /** With cgroups that the runtime makes for it, which go with it. */
  make(cellId: string, groups?: readonly string[]): Bundle
}

const folderName = 'bundles'
const groupsName = 'groups'

/** Ends and removes what dead owners left. */
export function createBundles(folder = join(statePlace(), folderName)): Bundles {
  const owner = ownerName(currentOwner())
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  sweep(folder, new Sweeper())
  return {
    make(cellId, groups = []) {
      const own = join(folder, `${owner}-${cellId}`)
      const state = join(own, 'state')
      writingTo(folder, () => {
        mkdirSync(own, { mode: 0o700 })
        try {
          if (groups.length > 0) writeFileSync(join(own, groupsName), groups.join('\n'), { mode: 0o600 })
        } catch (error) {
          rmSync(own, { recursive: true })
          throw error
        }
      })
      return {
        folder: own,
        state,
        write: (config) => writeFileSync(join(own, 'config.json'), JSON.stringify(config), { flag: 'wx', mode: 0o600 }),
        processes: () => processesOf(own),
        remove: () => removeBundle(own, groups),
      }
    },
  }
}

/** Of a state folder; makes nothing. */
export function sweepBundles(state: string, sweeper: Sweeper): void {
  const folder = join(state, folderName)
  if (existsSync(folder)) sweep(folder, sweeper)
}

/** The groups first: as long as there is one of them, it is known by the bundle. */
function sweep(folder: string, sweeper: Sweeper): void {
  for (const name of readdirSync(folder)) {
    const bundle = join(folder, name)
    const owner = name.split('-')[0] ?? ''
    sweeper.attempt({ kind: 'bundle', what: bundle, owner }, () => {
      sweeper.ended(
        endAll(() => processesOf(bundle)),
        owner,
      )
      removeBundle(bundle, groupsOf(bundle))
    })
  }
}

/** The groups first: as long as there is one of them, it is known by the bundle. */
function removeBundle(bundle: string, groups: readonly string[]): void {
  for (const group of groups) removeGroup(group)
  rmSync(bundle, { recursive: true, force: true })
}

function groupsOf(bundle: string): readonly string[] {
  const file = join(bundle, groupsName)
  const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : []
  // Whatever became of the file: nothing but a group that bears our name is ever removed for it.
  const mountPoints = parseHierarchies(readFileSync('/proc/self/mountinfo', 'utf8')).map(({ mountPoint }) => `${mountPoint}/`)
  return lines.filter(
    (line) => normalize(line) === line && basename(line).startsWith('glovebox') && mountPoints.some((mountPoint) => line.startsWith(mountPoint)),
  )
}

function removeGroup(folder: string): void {
  try {
    rmdirSync(folder)
  } catch (error) {
    // The runtime did not come so far.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}

/**
 * Those of the runtime name it, wherever it was shown to them; the cell's own are known by their ids. What a runtime starts before the container's first process is
 * executed has no word of it and outlives a runtime that is killed: where there are no ids to know it by, it is known by what it sees mounted.
 */
function processesOf(bundle: string): number[] {
  const name = basename(bundle)
  return findOwnProcesses((pid) => argumentsOf(pid).some((word) => word.includes(name)) || mountTableOf(pid).includes(`/${name} `))
}

/** The bundle goes last: as long as anything of the cell is left, it is known by it. */
export function withBundle(lease: Lease, bundle: Bundle): Lease {
  return {
    ...lease,
    remains: () => [...lease.remains(), ...bundle.processes()],
    release: async () => {
      try {
        await lease.release()
      } finally {
        bundle.remove()
      }
    },
  }
}
