import type { SandboxInfo, SandboxUsage } from '../contract/platform.js'
import type { ProcessInfo } from '../contract/processes.js'
import { type Colors, escapeControls } from './print.js'
import { exitCodeOf } from './exit-codes.js'
import { tableOf } from './table.js'
import { bytesInWords, durationInWords, spanInWords } from './words.js'

const shortIdCharacters = 12
const labelWidth = 12

/** Enough to name it by. */
export function shortId(id: string): string {
  return id.slice(0, shortIdCharacters)
}

interface SandboxPage {
  readonly info: SandboxInfo
  readonly usage: SandboxUsage
  readonly processes: readonly ProcessInfo[]
}

/** All that is known of one. */
export function sandboxPage({ info, usage, processes }: SandboxPage, colors: Colors): string {
  const { id, state, spec, driver, tier, createdAt, expiresAt, templateId, unenforced } = info
  const { limits } = spec
  const rows: [string, string | undefined][] = [
    ['id', id],
    ['state', state],
    ['agent', spec.agent],
    ...Object.entries(spec.metadata).map(([key, value]): [string, string] => ['metadata', `${key}=${value}`]),
    ['template', templateId === undefined ? spec.template : `${spec.template} (${templateId})`],
    ['from', spec.from],
    ['driver', `${driver}, tier ${tier}`],
    ['created', createdAt],
    [spec.onExpiry === 'pause' && state === 'running' ? 'pauses' : 'closes', `${expiresAt} (in ${spanInWords(Date.parse(expiresAt) - Date.now())})`],
    ['idle', spec.idleMs === undefined ? undefined : `after ${durationInWords(spec.idleMs)} in which nothing happens`],
    ['cpus', `${limits.cpus}; ${durationInWords(usage.cpuMs)} used`],
    ['memory', beside(usage.memoryBytes, limits.memoryBytes)],
    ['disk', beside(usage.diskBytes, limits.diskBytes)],
    ['processes', `${usage.processes ?? '?'} of ${limits.processes}`],
    ['network', networkInWords(info)],
    ...spec.mounts.map(({ source, target, mode }): [string, string] => ['mount', `${source} at ${target} (${mode})`]),
    ['not held', unenforced.length === 0 ? undefined : unenforced.map(({ limit }) => limit).join(', ')],
    ['runs', String(usage.runs)],
  ]
  const line = ([label, value]: [string, string | undefined]): string =>
    value === undefined ? '' : `${colors.dim(label.padEnd(labelWidth))}${escapeControls(value)}\n`
  const kept = processes.length === 0 ? '' : `\n${tableOf(processHeads, processes.map(processCells))}`
  return `${colors.bold(escapeControls(spec.name ?? id))}\n${rows.map(line).join('')}${kept}`
}

/** '12 MiB of 512 MiB'. */
export function beside(used: number | null, most: number | undefined): string {
  return `${used === null ? '?' : bytesInWords(used)} of ${most === undefined ? 'any' : bytesInWords(most)}`
}

function networkInWords({ spec: { network } }: SandboxInfo): string {
  if (network === false) return 'none'
  const hosts = (network.allow ?? []).map((entry) => (typeof entry === 'string' ? entry : (entry.host ?? entry.cidr ?? '')))
  return hosts.length === 0 ? 'to nowhere' : `to ${hosts.join(', ')}`
}

const processHeads = ['PID', 'TAG', 'STATE', 'CPU', 'MEMORY', 'COMMAND']
const mostCommand = 60

function processCells({ pid, tag, state, cpuMs, memoryBytes, command, ending }: ProcessInfo): string[] {
  const how = ending === undefined ? state : `${ending.outcome.kind} ${exitCodeOf(ending.outcome)}`
  const words = typeof command === 'string' ? command : command.join(' ')
  const shown = words.length > mostCommand ? `${words.slice(0, mostCommand)}…` : words
  return [String(pid), tag ?? '-', how, durationInWords(cpuMs), ending === undefined ? bytesInWords(memoryBytes) : '-', shown]
}
