import { readdirSync, readFileSync } from 'node:fs'

export interface ProcessRow {
  readonly pid: number
  readonly parent: number
  readonly state: string
}

function rowOf(pid: string): ProcessRow[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const [state = '', parent = ''] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return [{ pid: Number(pid), parent: Number(parent), state }]
  } catch {
    return []
  }
}

/** Every process below this one, the dead ones too. */
export function descendantsOf(root: number): ProcessRow[] {
  const rows = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap(rowOf)
  const found: ProcessRow[] = []
  for (const parents = [root]; parents.length > 0; ) {
    const parent = parents.pop()
    const children = rows.filter((row) => row.parent === parent)
    found.push(...children)
    parents.push(...children.map((row) => row.pid))
  }
  return found
}

/** What the cell calls `pid`, as this machine calls it. */
export function hostPid(root: number, pid: number): number {
  const found = descendantsOf(root).find((row) => new RegExp(`^NSpid:.*\\s${pid}$`, 'm').test(readFileSync(`/proc/${row.pid}/status`, 'latin1')))
  if (!found) throw new Error(`no process below ${root} is called ${pid}`)
  return found.pid
}

/** Processes whose environment carries this mark, wherever they went. */
export function markedBy(mark: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, 'latin1').includes(mark)
      } catch {
        return false
      }
    })
    .map(Number)
}

/** A program that says ready and forks for ever, also when it cannot; `each` is done by every process of it before each fork. */
export const forkBomb = (each = 'pass'): string[] => [
  '/usr/bin/python3',
  '-c',
  `import os,signal\nkeeper=os.getppid()\nprint("ready",flush=True)\nwhile True:\n  try:\n    ${each}\n    os.fork()\n  except OSError: pass`,
]
