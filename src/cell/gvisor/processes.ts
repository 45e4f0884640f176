import { argumentsOf } from '../../sys/processes.js'
import { childrenOf } from '../../sys/posture/process-tree.js'

/** The two processes of a sandbox that the runtime leaves to the cell's monitor: its kernel, and who opens files for that. */
export interface SandboxProcesses {
  readonly sentry: number
  readonly gofer: number
}

/**
 * Undefined when one of them is gone. Each is told by a word of the runtime's own among its arguments. Until the runtime exits they are its own children, so they may be
 * handed over just while they are looked for: that happens once.
 */
export function findSandbox(monitorPid: number): SandboxProcesses | undefined {
  for (let look = 0; look < 3; look += 1) {
    const children = childrenOf(monitorPid)
    const all = [...children, ...children.flatMap(childrenOf)]
    const [sentry, gofer] = ['boot', 'gofer'].map((word) => all.find((pid) => says(pid, word)))
    if (sentry !== undefined && gofer !== undefined) return { sentry, gofer }
  }
  return undefined
}

function says(pid: number, word: string): boolean {
  try {
    return argumentsOf(pid).includes(word)
  } catch {
    return false
  }
}
