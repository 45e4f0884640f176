import { type ChildProcess, spawn } from 'node:child_process'
import type { CellCgroup } from '../../src/sys/cell-cgroup.js'

/** Programs that put themselves into cgroups, as a cell's do. */

/** The files through which a program of a run enters. */
export function doorsOf(cell: CellCgroup, run: string | undefined): string[] {
  return [...cell.guestJoins, ...cell.runJoins.map(({ folder, file }) => [folder, ...(run === undefined ? [] : [run]), file].join('/'))]
}

export function startIn(doors: readonly string[], argv: readonly string[]): ChildProcess {
  const enter = ['true', ...doors.map((path) => `echo $$ > ${path}`)].join(' && ')
  return spawn('/bin/sh', ['-c', `${enter} && exec "$@"`, 'sh', ...argv], { stdio: ['ignore', 'pipe', 'pipe'] })
}

export interface ProgramEnd {
  readonly code: number | null
  readonly signal: string | null
  readonly stdout: string
}

export function endOf(child: ChildProcess): Promise<ProgramEnd> {
  let stdout = ''
  child.stdout?.on('data', (bytes: Buffer) => (stdout += bytes.toString()))
  return new Promise((resolve) => child.once('close', (code, signal) => resolve({ code, signal, stdout })))
}

export function python(code: string): string[] {
  return ['/usr/bin/python3', '-c', code]
}
