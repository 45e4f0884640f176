import { childrenOf, innerPid } from '../sys/posture/process-tree.js'

/** `isWithin`: the cell is built within a container, by the first process of that. */
export interface FirstProcessOptions {
  readonly isWithin?: boolean | undefined
}

const isFirst = (pid: number): boolean => innerPid(pid) === 1

/** The host pid of a cell's first process; undefined when it is gone. */
export function findFirstProcess(monitorPid: number, { isWithin = false }: FirstProcessOptions = {}): number | undefined {
  const first = firstBelow(monitorPid)
  return first === undefined || !isWithin ? first : childrenOf(first).find(isFirst)
}

/**
 * The first process below a monitor, mostly its child. A runtime that starts cells and exits has it as its own child until then,
 * so it may be handed over just while it is looked for: that happens once.
 */
function firstBelow(monitorPid: number): number | undefined {
  for (let look = 0; look < 3; look += 1) {
    const children = childrenOf(monitorPid)
    const first = children.find(isFirst) ?? children.flatMap(childrenOf).find(isFirst)
    if (first !== undefined) return first
  }
  return undefined
}
