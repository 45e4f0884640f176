import { readdirSync, readFileSync } from 'node:fs'
import { SandboxError } from '../contract/errors.js'

/** The processes below one, however deep; those that have ended and are not read yet hold nothing. */
export function descendantsOf(ancestor: number): readonly number[] {
  const children = new Map<number, number[]>()
  for (const name of readdirSync('/proc')) {
    const pid = Number(name)
    const parent = Number.isInteger(pid) ? parentOf(pid) : undefined
    if (parent === undefined) continue
    const siblings = children.get(parent)
    if (siblings) siblings.push(pid)
    else children.set(parent, [pid])
  }
  const found: number[] = []
  const waiting = [ancestor]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const below = children.get(next) ?? []
    found.push(...below)
    waiting.push(...below)
  }
  return found
}

function parentOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name in parentheses may hold anything, so fields are counted from its end.
    const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return state === 'Z' || state === 'X' ? undefined : Number(parent)
  } catch {
    return undefined
  }
}

/** Proportional set size of all of them together: what is shared counts once, divided among those that share it. */
export function pssBytes(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + pssOf(pid), 0)
}

function pssOf(pid: number): number {
  let text: string
  try {
    text = readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1')
  } catch (error) {
    // It ended meanwhile; anything else would make the sum too small.
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return 0
    throw new SandboxError(
      'unsupported',
      `memory of process ${pid} cannot be read (${(error as NodeJS.ErrnoException).code}); the kernel does not tell it to this user`,
    )
  }
  // Of one that is just ending the file is empty.
  if (text === '') return 0
  const [, kibibytes] = /^Pss:\s+(\d+) kB/m.exec(text) ?? []
  if (kibibytes === undefined) throw new SandboxError('unsupported', `memory of process ${pid} cannot be read: the kernel tells no Pss`)
  return Number(kibibytes) * 1024
}

export function availableBytes(): number {
  return Number(/^MemAvailable:\s*(\d+) kB/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1]) * 1024
}
