import { argumentsOf, findProcesses, uidOf } from '../../../src/sys/processes.js'

/** The id of the host that all processes of a cell have, and nobody else. */
export function idOfCell(cellId: string): number {
  const [launcher] = findProcesses((pid) => argumentsOf(pid).includes(cellId))
  if (launcher === undefined) throw new Error(`there is no process of ${cellId}`)
  return uidOf(launcher)
}

export const processesOf = (uid: number): number[] => findProcesses((pid) => uidOf(pid) === uid)
