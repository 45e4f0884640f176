import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { isGone, readKernelFile } from './proc-files.js'

/** Host numbers of the threads in a cgroup itself; none when it is gone. */
export function threadsIn(folder: string): ReadonlySet<number> {
  // Version 1 has the first of these lists, version 2 the second.
  return new Set(linesOf(`${folder}/tasks`) ?? linesOf(`${folder}/cgroup.threads`))
}

/** The same of a group and all beneath it. */
export function threadsBelow(folder: string): ReadonlySet<number> {
  return new Set([...threadsIn(folder), ...groupsIn(folder).flatMap((name) => [...threadsBelow(join(folder, name))])])
}

function linesOf(file: string): number[] | undefined {
  return whenThere(() => readKernelFile(file).split('\n').filter(Boolean).map(Number))
}

function groupsIn(folder: string): string[] {
  return whenThere(() => readdirSync(folder, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []))) ?? []
}

function whenThere<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    // A group that is removed while its list is open answers ENODEV.
    if (isGone(error) || (error as NodeJS.ErrnoException).code === 'ENODEV') return undefined
    throw error
  }
}
