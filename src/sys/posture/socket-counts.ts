import { SandboxError } from '../../contract/errors.js'
import { isGone, readProc } from './proc-files.js'

/** How many sockets of each kind a network namespace has. The kernel keeps these counts; its tables with addresses take it milliseconds, since all namespaces share them. */
export interface SocketCounts {
  readonly tcp: number
  readonly tcp6: number
  readonly udp: number
  readonly udp6: number
  /** Raw ones, and of kinds that nobody uses. */
  readonly other: number
}

export function readSocketCounts(pid: number): SocketCounts {
  return parseSocketCounts(readProc(pid, 'net/sockstat') + sixOf(pid))
}

/** Lines as `TCP: inuse 1 orphan 0 …`, of both files. Throws SandboxError('broken') when that of IPv4 is not among them: what is not told is not none. */
export function parseSocketCounts(text: string): SocketCounts {
  const counts = new Map<string, number>()
  for (const [, kind = '', count] of text.matchAll(/^([A-Z0-9]+): inuse (\d+)/gm)) counts.set(kind, Number(count))
  for (const kind of ['TCP', 'UDP']) if (!counts.has(kind)) throw new SandboxError('broken', `the kernel does not tell how many sockets of ${kind} there are`)
  const take = (kind: string): number => {
    // Without IPv6 there are none of its kinds.
    const count = counts.get(kind) ?? 0
    counts.delete(kind)
    return count
  }
  const known = { tcp: take('TCP'), tcp6: take('TCP6'), udp: take('UDP'), udp6: take('UDP6') }
  for (const fragments of ['FRAG', 'FRAG6']) counts.delete(fragments)
  return { ...known, other: [...counts.values()].reduce((sum, count) => sum + count, 0) }
}

/** Without IPv6 there is no such file. */
function sixOf(pid: number): string {
  try {
    return readProc(pid, 'net/sockstat6')
  } catch (error) {
    // Of a process that is gone the file before it would not have been there either.
    if (isGone(error)) return ''
    throw error
  }
}
