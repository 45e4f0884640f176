import { isGone, listProc, readProc } from './proc-files.js'

const closesOnExec = 0o2000000

/** Numbers of the descriptors that a process would keep through execve, smallest first. Throws EACCES where the kernel tells only root (before 5.14). */
export function survivingDescriptors(pid: number): number[] {
  return listProc(pid, 'fdinfo')
    .map(Number)
    .filter((number) => survives(pid, number))
    .sort((one, other) => one - other)
}

function survives(pid: number, number: number): boolean {
  try {
    const flags = /^flags:\s*([0-7]+)/m.exec(readProc(pid, `fdinfo/${number}`))?.[1]
    return flags === undefined || (Number.parseInt(flags, 8) & closesOnExec) === 0
  } catch (error) {
    if (isGone(error)) return false
    throw error
  }
}
