import type { WorkerProcessRow } from '../channel/index.js'
import type { ProcessState } from '../contract/processes.js'
import { FileOperation, type FilesHost } from './file-operation.js'

/** One process of a cell, as its /proc tells. */
export type ProcessRow = Pick<WorkerProcessRow, 'pid' | 'parent' | 'state' | 'cpuMs' | 'residentBytes'>

/** Every process of a cell, looked at now by a worker in it. */
export function readProcesses(host: FilesHost): Promise<readonly ProcessRow[]> {
  const order = { host, call: { name: 'processes.list', path: '/proc' }, user: host.defaultUser, signal: undefined }
  return FileOperation.run(order, ({ client }) => client.processes())
}

export interface TreeUsage {
  readonly state: ProcessState
  readonly cpuMs: number
  readonly memoryBytes: number
  readonly processes: number
}

/**
 * What a program and all that it started use, by its pid. Above each program is its keeper, which adopts what the program's children leave behind: so all
 * that descends from the keeper, however it detached itself, is of this program. Undefined when there is no such process any more.
 */
export function treeUsage(rows: readonly ProcessRow[], pid: number): TreeUsage | undefined {
  const program = rows.find((row) => row.pid === pid)
  if (!program) return undefined
  const tree = descendants(rows, program.parent)
  return {
    state: stateOf(program.state),
    cpuMs: sum(tree.map(({ cpuMs }) => cpuMs)),
    memoryBytes: sum(tree.map(({ residentBytes }) => residentBytes)),
    processes: tree.length,
  }
}

function descendants(rows: readonly ProcessRow[], ancestor: number): ProcessRow[] {
  const children = new Map<number, ProcessRow[]>()
  for (const row of rows) {
    const siblings = children.get(row.parent)
    if (siblings) siblings.push(row)
    else children.set(row.parent, [row])
  }
  const found: ProcessRow[] = []
  const open = [ancestor]
  for (let parent = open.pop(); parent !== undefined; parent = open.pop()) {
    for (const child of children.get(parent) ?? []) {
      found.push(child)
      open.push(child.pid)
    }
    // Rows are read one after the other while processes come and go: no pid is gone through twice.
    children.delete(parent)
  }
  return found
}

function stateOf(letter: string): ProcessState {
  if (letter === 'R') return 'running'
  return letter === 'T' || letter === 't' ? 'stopped' : 'sleeping'
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
