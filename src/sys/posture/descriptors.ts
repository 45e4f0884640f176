import { isGone, listProc, readProc } from './proc-files.js'

const closeOnExec = 0o2000000

/** Told from a file of fdinfo; not where that says nothing. */
export function closesOnExec(info: string): boolean {
  const flags = /^flags:\s*([0-7]+)/m.exec(info)?.[1]
  return flags !== undefined && (Number.parseInt(flags, 8) & closeOnExec) !== 0
}

/** Numbers of the descriptors that a process would keep through execve, smallest first. Throws EACCES where the kernel tells only root (before 5.14). */
export function survivingDescriptors(pid: number): number[] {
  return listProc(pid, 'fdinfo')
    .map(Number)
    .filter((number) => survives(pid, number))
    .sort((one, other) => one - other)
}

function survives(pid: number, number: number): boolean {
  try {
    return !closesOnExec(readProc(pid, `fdinfo/${number}`))
  } catch (error) {
    if (isGone(error)) return false
    throw error
  }
}
