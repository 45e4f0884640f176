import { childrenOf, innerPid } from '../sys/posture/process-tree.js'

/**
 * The host pid of a cell's first process, a child of its monitor; undefined when it is gone. A runtime that starts cells and exits has it as its own child until then,
 * so it may be handed over just while it is looked for: that happens once.
 */
export function findFirstProcess(monitorPid: number): number | undefined {
  const isFirst = (pid: number): boolean => innerPid(pid) === 1
  for (let look = 0; look < 3; look += 1) {
    const children = childrenOf(monitorPid)
    const first = children.find(isFirst) ?? children.flatMap(childrenOf).find(isFirst)
    if (first !== undefined) return first
  }
  return undefined
}
