import { type LimitName, limitNames } from '../contract/limit-words.js'
import type { Ceiling } from '../contract/policy.js'
import type { Finding } from './audit.js'
import { valueInWords } from './policy-words.js'

/** What a policy's caps are compared with. */
export interface Machine {
  readonly memoryBytes: number
  readonly processors: number
}

const uncapped: Readonly<Record<LimitName, readonly [severity: Finding['severity'], consequence: string]>> = {
  memory: ['high', 'one sandbox may ask for all the memory there is, and others are killed for it'],
  processes: ['high', 'one sandbox may fill the process table of this machine'],
  cpus: ['medium', 'one sandbox may keep every processor busy'],
  time: ['medium', 'a run may last for a week'],
  disk: ['medium', 'one sandbox may fill the memory or disk that holds its files'],
  output: ['medium', 'a captured run may keep a gigabyte in the memory of whoever called it'],
  cpuTime: ['low', 'a run may compute for as long as its wall time lasts'],
  inodes: ['low', 'a sandbox may hold as many small files as its disk has room for'],
  fileSize: ['low', 'one file may be as large as the disk'],
  openFiles: ['low', 'a process may hold thousands of files open'],
  readRate: ['low', 'a sandbox may read as fast as the disk can, and slow others down'],
  writeRate: ['low', 'a sandbox may write as fast as the disk can, and slow others down'],
}

/** Caps that are missing, and caps that are none on this machine. */
export function auditLimits({ limits = {}, lifetime }: Ceiling, machine: Machine): Finding[] {
  const names: readonly LimitName[] = limitNames
  const missing = names
    .filter((name) => limits[name] === undefined)
    .map((name): Finding => ({ severity: uncapped[name][0], field: `ceiling.limits.${name}`, grant: 'no cap', consequence: uncapped[name][1] }))
  return [...missing, ...large(limits, machine), ...long(lifetime)]
}

const manyProcesses = 4096

function large(limits: NonNullable<Ceiling['limits']>, { memoryBytes, processors }: Machine): Finding[] {
  const found: (Finding | undefined)[] = [
    tooMuchMemory(limits.memory, memoryBytes),
    limits.cpus !== undefined && limits.cpus >= processors
      ? {
          severity: 'medium',
          field: 'ceiling.limits.cpus',
          grant: `${limits.cpus} of the ${processors} processors of this machine`,
          consequence: 'one sandbox may keep every processor busy',
        }
      : undefined,
    limits.processes !== undefined && limits.processes > manyProcesses
      ? {
          severity: 'medium',
          field: 'ceiling.limits.processes',
          grant: `${limits.processes} processes`,
          consequence: 'a fork bomb of that size is felt by everything else on this machine',
        }
      : undefined,
  ]
  return found.filter((finding) => finding !== undefined)
}

function tooMuchMemory(cap: number | undefined, machineBytes: number): Finding | undefined {
  if (cap === undefined || cap <= machineBytes / 2) return undefined
  const isAll = cap >= machineBytes
  return {
    severity: isAll ? 'high' : 'medium',
    field: 'ceiling.limits.memory',
    grant: `${valueInWords('limits.memory', cap, Math.floor)} of the ${valueInWords('limits.memory', machineBytes, Math.floor)} of this machine`,
    consequence: isAll ? 'which is no cap here: one sandbox may take all of it' : 'two such sandboxes take all of it',
  }
}

const hourMs = 3_600_000

function long(lifetime: number | undefined): Finding[] {
  if (lifetime !== undefined && lifetime <= hourMs) return []
  const isVeryLong = lifetime === undefined || lifetime > 24 * hourMs
  const consequence = 'what was started and forgotten goes on until then, background processes included'
  const grant = lifetime === undefined ? 'no cap: up to 30 days' : valueInWords('lifetime', lifetime, Math.floor)
  return [{ severity: isVeryLong ? 'medium' : 'low', field: 'ceiling.lifetime', grant, consequence }]
}
